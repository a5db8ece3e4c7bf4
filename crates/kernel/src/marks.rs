//! Ownership marks: the comment of a role or a database names the object that owns it.
//!
//! The mark `[stanchion KIND NAMESPACE/NAME UID created|adopted SEAL]` is at the end of the comment, after any text
//! that people wrote. The seal is an HMAC with the installation's key ([`FingerprintKey::mac`]) over the whole mark and
//! the name of the role or database, so nobody else can write a mark, and a mark cannot be moved to another role or
//! database.
//!
//! Marks of earlier versions have no seal ([`Seal::Missing`]), and the seal of another installation, or of a lost key,
//! cannot be verified ([`Seal::Foreign`]). Both exclude other objects; for its own object such a mark is proof only
//! together with another one.

use std::sync::Arc;

use crate::redact::{FingerprintKey, Verdict};

const BEGIN: &str = "[stanchion ";
const END: char = ']';
const PURPOSE: &str = "mark of ownership";

/// The object that a role or a database belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Kind of the object.
    pub kind: String,
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// Uid of the object.
    pub uid: String,
}

/// How an object came to own a role or a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The operator created it for the object, and may drop it.
    Created,
    /// It existed before.
    Adopted,
}

impl Origin {
    const fn word(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Adopted => "adopted",
        }
    }
}

/// An ownership mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The owner.
    pub owner: Owner,
    /// Whether it was created or adopted.
    pub origin: Origin,
}

/// The role or database with the mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bearer<'a> {
    /// The role with this name.
    Role(&'a str),
    /// The database with this name.
    Database(&'a str),
}

impl<'a> Bearer<'a> {
    const fn parts(self) -> [&'a str; 2] {
        match self {
            Self::Role(name) => ["role", name],
            Self::Database(name) => ["database", name],
        }
    }
}

/// Whether a mark can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seal {
    /// This installation wrote it, for this role or database.
    Valid,
    /// It has no seal: an earlier version wrote it, or anybody else.
    Missing,
    /// Another installation sealed it, or this one with a lost key.
    Foreign,
    /// It has a seal of this installation for another role, database or mark.
    Forged,
}

/// A mark that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The content of the mark.
    pub mark: Mark,
    /// Whether the mark can be trusted.
    pub seal: Seal,
}

impl Found {
    /// Whether it belongs to an object in this namespace, as far as can be verified. A namespace of the same name in
    /// another installation is another one.
    pub fn is_of(&self, namespace: &str) -> bool {
        matches!(self.seal, Seal::Valid | Seal::Missing) && self.mark.owner.namespace == namespace
    }

    /// Whether a second proof is necessary that this installation wrote it.
    pub fn is_unproven(&self) -> bool {
        matches!(self.seal, Seal::Missing | Seal::Foreign)
    }
}

/// Whether a text looks like a mark. Text that people write into a comment must not.
pub fn looks_marked(text: &str) -> bool {
    text.contains(BEGIN)
}

/// Writes and reads marks. Clones share the key.
#[derive(Clone, Debug)]
pub struct Marks(Arc<FingerprintKey>);

impl Marks {
    /// Marks of the installation with this key.
    pub fn new(key: Arc<FingerprintKey>) -> Self {
        Self(key)
    }

    /// A comment: the text of people, and the mark.
    pub fn join(&self, text: &str, mark: &Mark, bearer: Bearer<'_>) -> String {
        let Owner {
            kind,
            namespace,
            name,
            uid,
        } = &mark.owner;
        let (origin, seal) = (mark.origin.word(), self.seal(mark, bearer));
        let space = if text.is_empty() { "" } else { " " };
        format!("{text}{space}{BEGIN}{kind} {namespace}/{name} {uid} {origin} {seal}{END}")
    }

    /// Splits a comment into the text of people and the mark.
    pub fn read<'c>(&self, comment: &'c str, bearer: Bearer<'_>) -> (&'c str, Option<Found>) {
        let Some((text, rest)) = comment.rsplit_once(BEGIN) else {
            return (comment, None);
        };
        let Some((mark, seal)) = parse(rest) else {
            return (comment, None);
        };
        let seal = match seal {
            None => Seal::Missing,
            Some(seal) => match self.0.verify(seal, PURPOSE, &parts(&mark, bearer)) {
                Verdict::Same => Seal::Valid,
                Verdict::Changed => Seal::Forged,
                Verdict::Unknown => Seal::Foreign,
            },
        };
        (text.trim_end(), Some(Found { mark, seal }))
    }

    /// The key of the seals.
    pub fn key(&self) -> &FingerprintKey {
        &self.0
    }

    fn seal(&self, mark: &Mark, bearer: Bearer<'_>) -> String {
        self.0.mac(PURPOSE, &parts(mark, bearer))
    }
}

fn parts<'a>(mark: &'a Mark, bearer: Bearer<'a>) -> [&'a str; 7] {
    let Owner {
        kind,
        namespace,
        name,
        uid,
    } = &mark.owner;
    let [what, which] = bearer.parts();
    [kind, namespace, name, uid, mark.origin.word(), what, which]
}

fn parse(text: &str) -> Option<(Mark, Option<&str>)> {
    let mut words = text.strip_suffix(END)?.split(' ');
    let kind = words.next()?;
    let (namespace, name) = words.next()?.split_once('/')?;
    let uid = words.next()?;
    let origin = match words.next()? {
        "created" => Origin::Created,
        "adopted" => Origin::Adopted,
        _ => return None,
    };
    let seal = words.next();
    words.next().is_none().then(|| {
        let mark = Mark {
            owner: Owner {
                kind: kind.into(),
                namespace: namespace.into(),
                name: name.into(),
                uid: uid.into(),
            },
            origin,
        };
        (mark, seal)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks() -> Marks {
        Marks::new(Arc::new(FingerprintKey::generate()))
    }

    fn mark(origin: Origin) -> Mark {
        let owner = Owner {
            kind: "PostgresUser".into(),
            namespace: "ns".into(),
            name: "alice".into(),
            uid: "u-1".into(),
        };
        Mark { owner, origin }
    }

    fn found(seal: Seal) -> Found {
        let mark = mark(Origin::Created);
        Found { mark, seal }
    }

    #[test]
    fn what_was_joined_can_be_read() {
        let marks = marks();
        for text in ["", "the app's user", "odd [stanchion PostgresUser text]"] {
            for origin in [Origin::Created, Origin::Adopted] {
                let bearer = Bearer::Role("alice");
                let comment = marks.join(text, &mark(origin), bearer);
                let seal = Seal::Valid;
                let mark = mark(origin);
                assert_eq!(
                    marks.read(&comment, bearer),
                    (text, Some(Found { mark, seal })),
                    "{comment}"
                );
            }
        }
    }

    #[test]
    fn a_mark_belongs_to_one_role_or_database() {
        let marks = marks();
        let comment = marks.join("", &mark(Origin::Created), Bearer::Role("alice"));
        for bearer in [Bearer::Role("bob"), Bearer::Database("alice")] {
            assert_eq!(marks.read(&comment, bearer).1, Some(found(Seal::Forged)));
        }
        let other = comment.replace("ns/alice", "ns/mallory");
        let (_, read) = marks.read(&other, Bearer::Role("alice"));
        assert_eq!(read.map(|read| read.seal), Some(Seal::Forged));
    }

    #[test]
    fn marks_of_earlier_versions_and_of_other_installations_are_unproven() {
        let old = "text [stanchion PostgresUser ns/alice u-1 created]";
        let bearer = Bearer::Role("alice");
        assert_eq!(marks().read(old, bearer), ("text", Some(found(Seal::Missing))));
        let theirs = marks().join("text", &mark(Origin::Created), bearer);
        assert_eq!(
            marks().read(&theirs, bearer),
            ("text", Some(found(Seal::Foreign)))
        );
    }

    #[test]
    fn what_only_looks_like_a_mark_is_a_comment() {
        for comment in [
            "",
            "x",
            "[stanchion PostgresUser a/b u created] and more",
            "[stanchion PostgresUser a]",
            "[stanchion PostgresUser a/b u created s more]",
        ] {
            assert_eq!(marks().read(comment, Bearer::Role("a")), (comment, None));
        }
        assert!(looks_marked("x [stanchion PostgresUser") && !looks_marked("stanchion"));
    }
}
