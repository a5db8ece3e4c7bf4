//! The mark in the comment of a login: its project and database.
//!
//! Roles belong to the server, so the database alone cannot show that a login belongs to another project on the same
//! server. The rest of the comment stays. A mark is sealed with the installation's key, because others can write
//! comments; a mark of an earlier version has no seal, and gets one when its project is reconciled.

use stanchion_kernel::redact::{FingerprintKey, Verdict};

const BEGIN: &str = "[stanchion SupabaseProject ";
const END: char = ']';
/// The purpose of the seal.
const PURPOSE: &str = "mark of a login of a SupabaseProject";

/// Finds the database's oid in a comment, so that the server can check whether that database still exists.
pub(super) const PATTERN: &str = r"\[stanchion SupabaseProject \S+ (\d+)(?: \S+)?\]$";

/// The owner of a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) project: String,
    pub(super) database_oid: u32,
    seal: Option<String>,
}

impl Mark {
    /// The sealed mark of a role.
    pub(super) fn new(project: &str, database_oid: u32, role: &str, key: &FingerprintKey) -> Self {
        let seal = key.mac(PURPOSE, &[role, project, &database_oid.to_string()]);
        Self {
            project: project.to_owned(),
            database_oid,
            seal: Some(seal),
        }
    }

    /// Whether it claims to be of this installation but is not. One without a seal, or of another installation, may be
    /// genuine.
    pub(super) fn is_forged(&self, role: &str, key: &FingerprintKey) -> bool {
        let parts = [role, &self.project, &self.database_oid.to_string()];
        let seal = self.seal.as_deref();
        seal.is_some_and(|seal| key.verify(seal, PURPOSE, &parts) == Verdict::Changed)
    }
}

/// The user's part of a comment, and the mark.
pub(super) fn split(comment: &str) -> (&str, Option<Mark>) {
    let parsed = comment.rsplit_once(BEGIN).and_then(|(text, rest)| {
        let (project, rest) = rest.strip_suffix(END)?.split_once(' ')?;
        let (oid, seal) = match rest.split_once(' ') {
            Some((oid, seal)) => (oid, Some(seal.to_owned())),
            None => (rest, None),
        };
        let mark = Mark {
            project: project.to_owned(),
            database_oid: oid.parse().ok()?,
            seal,
        };
        Some((text.trim_end(), mark))
    });
    match parsed {
        Some((text, mark)) => (text, Some(mark)),
        None => (comment, None),
    }
}

/// The comment with the mark.
pub(super) fn join(text: &str, mark: &Mark) -> String {
    let space = if text.is_empty() { "" } else { " " };
    let seal = mark
        .seal
        .as_ref()
        .map(|seal| format!(" {seal}"))
        .unwrap_or_default();
    format!(
        "{text}{space}{BEGIN}{} {}{seal}{END}",
        mark.project, mark.database_oid
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_wrote_stays() {
        let key = FingerprintKey::generate();
        let mark = Mark::new("shop/main", 16384, "authenticator", &key);
        for text in ["", "the API's login", "[see wiki]"] {
            let comment = join(text, &mark);
            assert_eq!(split(&comment), (text, Some(mark.clone())));
        }
        assert_eq!(split("no mark"), ("no mark", None));
        let broken = "[stanchion SupabaseProject shop/main x]";
        assert_eq!(split(broken), (broken, None));
    }

    #[test]
    fn a_seal_is_of_one_role_one_project_and_one_database() {
        let key = FingerprintKey::generate();
        let mark = Mark::new("shop/main", 16384, "authenticator", &key);
        assert!(!mark.is_forged("authenticator", &key));
        assert!(mark.is_forged("dashboard_user", &key));
        let moved = Mark {
            database_oid: 16385,
            ..mark.clone()
        };
        assert!(moved.is_forged("authenticator", &key));
        // Of another installation, or of an earlier version: undecidable.
        assert!(!mark.is_forged("authenticator", &FingerprintKey::generate()));
        let (_, old) = split("[stanchion SupabaseProject shop/main 16384]");
        assert!(!old.unwrap().is_forged("authenticator", &key));
    }
}
