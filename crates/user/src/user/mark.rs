//! The mark of ownership in a role's comment.
//!
//! Status can be lost, restored from a backup, or not be written before a crash; the mark is made in the
//! transaction that makes the role. Only a role that carries our object's uid is ever dropped.

use super::target::Identity;

const BEGIN: &str = "[stanchion PostgresUser ";
const END: char = ']';

/// How a role came to be ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// We made it, and may drop it.
    Created,
    /// It was there before.
    Adopted,
}

/// A mark, as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Whose role it is.
    pub owner: Identity,
    /// How it came to be theirs.
    pub origin: Origin,
}

/// Takes a comment apart into what people wrote and the mark.
pub fn split(comment: &str) -> (&str, Option<Mark>) {
    let Some((text, mark)) = comment.rsplit_once(BEGIN) else {
        return (comment, None);
    };
    match parse(mark) {
        Some(mark) => (text.trim_end(), Some(mark)),
        None => (comment, None),
    }
}

/// Puts a comment together.
pub fn join(text: &str, mark: &Mark) -> String {
    let Identity { namespace, name, uid } = &mark.owner;
    let origin = match mark.origin {
        Origin::Created => "created",
        Origin::Adopted => "adopted",
    };
    let space = if text.is_empty() { "" } else { " " };
    format!("{text}{space}{BEGIN}{namespace}/{name} {uid} {origin}{END}")
}

fn parse(mark: &str) -> Option<Mark> {
    let mut words = mark.strip_suffix(END)?.split(' ');
    let (namespace, name) = words.next()?.split_once('/')?;
    let uid = words.next()?;
    let origin = match words.next()? {
        "created" => Origin::Created,
        "adopted" => Origin::Adopted,
        _ => return None,
    };
    words.next().is_none().then(|| Mark {
        owner: Identity {
            namespace: namespace.into(),
            name: name.into(),
            uid: uid.into(),
        },
        origin,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(origin: Origin) -> Mark {
        let owner = Identity {
            namespace: "ns".into(),
            name: "alice".into(),
            uid: "u-1".into(),
        };
        Mark { owner, origin }
    }

    #[test]
    fn what_was_joined_can_be_split() {
        for text in ["", "the app's user", "odd [stanchion PostgresUser text]"] {
            for origin in [Origin::Created, Origin::Adopted] {
                let comment = join(text, &mark(origin));
                assert_eq!(split(&comment), (text, Some(mark(origin))), "{comment}");
            }
        }
    }

    #[test]
    fn what_only_looks_like_a_mark_is_a_comment() {
        for comment in [
            "",
            "x",
            "[stanchion PostgresUser a/b u created] and more",
            "[stanchion PostgresUser a]",
        ] {
            assert_eq!(split(comment), (comment, None));
        }
    }
}
