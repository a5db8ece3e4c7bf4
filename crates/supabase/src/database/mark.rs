//! The mark in the comment of a login: its project and database.
//!
//! Roles belong to the server, so the database alone cannot show that a login belongs to another project on the same
//! server. The rest of the comment stays. A mark is sealed with the installation's key, because others can write
//! comments; a mark of an earlier version has no seal, and gets one when its project is reconciled.
//!
//! The mark also says whether the operator created the login. The record of that is in the database (`created_objects`),
//! and is lost with it; the login is not.

use stanchion_kernel::redact::{FingerprintKey, Verdict};

const BEGIN: &str = "[stanchion SupabaseProject ";
const END: char = ']';
/// The purpose of the seal.
const PURPOSE: &str = "mark of a login of a SupabaseProject";

/// Finds the database's oid in a comment, so that the server can check whether that database still exists.
pub(super) const PATTERN: &str = r"\[stanchion SupabaseProject \S+ (\d+)(?: created)?(?: \S+)?\]$";
/// In a mark: the operator created the login.
const CREATED: &str = "created";

/// The owner of a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) project: String,
    pub(super) database_oid: u32,
    created: bool,
    seal: Option<String>,
}

impl Mark {
    /// The sealed mark of a role.
    pub(super) fn new(
        project: &str,
        database_oid: u32,
        role: &str,
        created: bool,
        key: &FingerprintKey,
    ) -> Self {
        let unsealed = Self {
            project: project.to_owned(),
            database_oid,
            created,
            seal: None,
        };
        let seal = unsealed.with_parts(role, |parts| key.mac(PURPOSE, parts));
        Self {
            seal: Some(seal),
            ..unsealed
        }
    }

    /// Whether it claims to be of this installation but is not. One without a seal, or of another installation, may be
    /// genuine.
    pub(super) fn is_forged(&self, role: &str, key: &FingerprintKey) -> bool {
        self.verdict(role, key) == Verdict::Changed
    }

    /// Whether it proves that this installation created the role for this project.
    pub(super) fn proves_creation(&self, role: &str, project: &str, key: &FingerprintKey) -> bool {
        self.created && self.project == project && self.verdict(role, key) == Verdict::Same
    }

    fn verdict(&self, role: &str, key: &FingerprintKey) -> Verdict {
        let seal = self.seal.as_deref();
        seal.map_or(Verdict::Unknown, |seal| {
            self.with_parts(role, |parts| key.verify(seal, PURPOSE, parts))
        })
    }

    /// What is sealed.
    fn with_parts<T>(&self, role: &str, of: impl FnOnce(&[&str]) -> T) -> T {
        let oid = self.database_oid.to_string();
        if self.created {
            of(&[role, &self.project, &oid, CREATED])
        } else {
            of(&[role, &self.project, &oid])
        }
    }
}

/// The user's part of a comment, and the mark.
pub(super) fn split(comment: &str) -> (&str, Option<Mark>) {
    let parsed = comment.rsplit_once(BEGIN).and_then(|(text, rest)| {
        let mut words = rest.strip_suffix(END)?.split(' ').peekable();
        let project = words.next()?.to_owned();
        let database_oid = words.next()?.parse().ok()?;
        let created = words.next_if_eq(&CREATED).is_some();
        let seal = words.next().map(str::to_owned);
        let mark = Mark {
            project,
            database_oid,
            created,
            seal,
        };
        words.next().is_none().then_some((text.trim_end(), mark))
    });
    match parsed {
        Some((text, mark)) => (text, Some(mark)),
        None => (comment, None),
    }
}

/// The comment with the mark.
pub(super) fn join(text: &str, mark: &Mark) -> String {
    let space = if text.is_empty() { "" } else { " " };
    let created = if mark.created { " created" } else { "" };
    let seal = mark
        .seal
        .as_ref()
        .map(|seal| format!(" {seal}"))
        .unwrap_or_default();
    format!(
        "{text}{space}{BEGIN}{} {}{created}{seal}{END}",
        mark.project, mark.database_oid
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(created: bool, key: &FingerprintKey) -> Mark {
        Mark::new("shop/main", 16384, "authenticator", created, key)
    }

    #[test]
    fn what_people_wrote_stays() {
        let key = FingerprintKey::generate();
        for mark in [mark(true, &key), mark(false, &key)] {
            for text in ["", "the API's login", "[see wiki]"] {
                let comment = join(text, &mark);
                assert_eq!(split(&comment), (text, Some(mark.clone())));
            }
        }
        assert_eq!(split("no mark"), ("no mark", None));
        for broken in [
            "[stanchion SupabaseProject shop/main x]",
            "[stanchion SupabaseProject shop/main 16384 created v1.a b]",
        ] {
            assert_eq!(split(broken), (broken, None));
        }
    }

    #[test]
    fn a_seal_is_of_one_role_one_project_and_one_database() {
        let key = FingerprintKey::generate();
        let mark = mark(false, &key);
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

    /// Otherwise everyone who can write comments could have a role dropped with the project.
    #[test]
    fn only_a_seal_proves_who_created_a_role() {
        let key = FingerprintKey::generate();
        let proves = |mark: &Mark| mark.proves_creation("authenticator", "shop/main", &key);
        assert!(proves(&mark(true, &key)));
        assert!(!proves(&mark(false, &key)));
        assert!(!proves(&mark(true, &FingerprintKey::generate())));
        let claimed = Mark {
            created: true,
            ..mark(false, &key)
        };
        assert!(!proves(&claimed));
        assert!(claimed.is_forged("authenticator", &key));
        let (_, unsealed) = split("[stanchion SupabaseProject shop/main 16384 created]");
        assert!(!proves(&unsealed.unwrap()));
        assert!(!mark(true, &key).proves_creation("authenticator", "shop/other", &key));
        assert!(!mark(true, &key).proves_creation("dashboard_user", "shop/main", &key));
    }
}
