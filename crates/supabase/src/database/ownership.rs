//! The mark in the comment of the project's databases, in the form of the kernel: `PostgresUser` objects of other
//! namespaces recognise it, and get nothing there. The user's part of the comment stays.

use std::sync::Arc;

use stanchion_kernel::marks::{Bearer, Mark, Marks, Origin, Owner, Seal};
use stanchion_kernel::redact::FingerprintKey;
use stanchion_postgres::Statement;

use super::request::Request;

const KIND: &str = "SupabaseProject";

/// The statement that marks a database with this comment, unless it is marked. A project of the same name takes over what
/// an earlier one has left, and its mark, as it does with the record. A database that a `PostgresUser` created
/// keeps that mark, which excludes others as well.
pub(super) fn mark(database: &str, comment: &str, request: &Request) -> Option<Statement> {
    let marks = Marks::new(Arc::clone(&request.key));
    let bearer = Bearer::Database(database);
    let (namespace, name) = request.project.split_once('/')?;
    let owner = Owner {
        kind: KIND.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        uid: request.uid.clone(),
    };
    let (text, found) = marks.read(comment, bearer);
    let is_of = |found: &Owner| {
        found.kind != KIND || (&found.namespace, &found.name) == (&owner.namespace, &owner.name)
    };
    let is_marked = found.is_some_and(|found| found.seal == Seal::Valid && is_of(&found.mark.owner));
    let mark = Mark {
        owner,
        origin: Origin::Adopted,
    };
    (!is_marked).then(|| comment_on(database, &marks.join(text, &mark, bearer)))
}

/// The statement that removes the project's mark from the comment of a database, if it has one.
pub(super) fn unmark(
    database: &str,
    comment: &str,
    project: &str,
    key: &Arc<FingerprintKey>,
) -> Option<Statement> {
    let marks = Marks::new(Arc::clone(key));
    let (text, found) = marks.read(comment, Bearer::Database(database));
    let Owner {
        kind,
        namespace,
        name,
        ..
    } = found?.mark.owner;
    let is_ours = kind == KIND && Some((namespace.as_str(), name.as_str())) == project.split_once('/');
    is_ours.then(|| comment_on(database, text))
}

fn comment_on(database: &str, comment: &str) -> Statement {
    let statement = Statement::new("COMMENT ON DATABASE ").ident(database);
    statement.sql(" IS ").literal(comment)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(key: &Arc<FingerprintKey>, uid: &str) -> Request {
        Request {
            project: "default/shop".to_owned(),
            uid: uid.to_owned(),
            passwords: [].into(),
            key: Arc::clone(key),
        }
    }

    /// The comment that a statement writes.
    fn written(statement: &Statement) -> String {
        let text = statement.to_string();
        let (_, comment) = text.split_once(" IS '").unwrap();
        comment.strip_suffix('\'').unwrap().to_owned()
    }

    #[test]
    fn a_database_is_marked_once_and_keeps_what_people_wrote() {
        let key = Arc::new(FingerprintKey::generate());
        let mine = request(&key, "uid-1");
        let comment = written(&mark("shop", "see the wiki", &mine).unwrap());
        assert!(
            comment.starts_with("see the wiki [stanchion SupabaseProject default/shop uid-1 adopted v"),
            "{comment}"
        );
        assert!(mark("shop", &comment, &mine).is_none());
        let (_, found) = Marks::new(Arc::clone(&key)).read(&comment, Bearer::Database("shop"));
        let found = found.unwrap();
        assert_eq!(
            ["default", "other"].map(|namespace| found.is_of(namespace)),
            [true, false]
        );
        assert!(mark("shop", &comment, &request(&key, "uid-2")).is_none());
        // Moved from another database, or of another project.
        assert!(mark("other", &comment, &mine).is_some());
        let other = Request {
            project: "default/other".to_owned(),
            ..mine.clone()
        };
        assert!(mark("shop", &comment, &other).is_some());
        let bare = written(&unmark("shop", &comment, "default/shop", &key).unwrap());
        assert_eq!(bare, "see the wiki");
        assert!(unmark("shop", &comment, "default/other", &key).is_none());
    }

    #[test]
    fn only_a_sealed_mark_of_a_user_stays() {
        let key = Arc::new(FingerprintKey::generate());
        let owner = Owner {
            kind: "PostgresUser".to_owned(),
            namespace: "evil".to_owned(),
            name: "eve".to_owned(),
            uid: "uid-3".to_owned(),
        };
        let of_user = Mark {
            owner,
            origin: Origin::Created,
        };
        let sealed = Marks::new(Arc::clone(&key)).join("", &of_user, Bearer::Database("shop"));
        let mine = request(&key, "uid-1");
        assert!(mark("shop", &sealed, &mine).is_none());
        let unsealed = "[stanchion PostgresUser evil/eve uid-3 created]";
        assert!(mark("shop", unsealed, &mine).is_some());
    }
}
