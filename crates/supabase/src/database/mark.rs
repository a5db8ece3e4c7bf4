//! The mark in the comment of a login: which project's it is, in which database.
//!
//! Roles are the server's, so the database alone cannot say that a login belongs to another project on the same
//! server. What people wrote in the comment stays.

const BEGIN: &str = "[stanchion SupabaseProject ";
const END: char = ']';

/// Finds the database's oid in a comment, for the server to see whether that database still exists.
pub(super) const PATTERN: &str = r"\[stanchion SupabaseProject \S+ (\d+)\]$";

/// Whose login it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) project: String,
    pub(super) database_oid: u32,
}

/// What people wrote, and the mark.
pub(super) fn split(comment: &str) -> (&str, Option<Mark>) {
    let parsed = comment.rsplit_once(BEGIN).and_then(|(text, rest)| {
        let (project, oid) = rest.strip_suffix(END)?.split_once(' ')?;
        let mark = Mark {
            project: project.to_owned(),
            database_oid: oid.parse().ok()?,
        };
        Some((text.trim_end(), mark))
    });
    match parsed {
        Some((text, mark)) => (text, Some(mark)),
        None => (comment, None),
    }
}

/// The comment with the mark in it.
pub(super) fn join(text: &str, mark: &Mark) -> String {
    let space = if text.is_empty() { "" } else { " " };
    format!("{text}{space}{BEGIN}{} {}{END}", mark.project, mark.database_oid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_wrote_stays() {
        let mark = Mark {
            project: "shop/main".into(),
            database_oid: 16384,
        };
        for text in ["", "the API's login", "[see wiki]"] {
            let comment = join(text, &mark);
            assert_eq!(split(&comment), (text, Some(mark.clone())));
        }
        assert_eq!(split("no mark"), ("no mark", None));
        let broken = "[stanchion SupabaseProject shop/main x]";
        assert_eq!(split(broken), (broken, None));
    }
}
