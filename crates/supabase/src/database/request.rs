//! The request to the database, and its result.

use std::collections::BTreeMap;
use std::sync::Arc;

use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};
use stanchion_kernel::redact::FingerprintKey;

use super::roles::{Login, Names};

/// What a project needs in its database.
#[derive(Debug, Clone)]
pub struct Request {
    /// The project as `namespace/name`. Recorded there, so that two projects do not share a database by accident.
    pub project: String,
    /// The project's uid, for the mark of its databases.
    pub uid: String,
    /// The services that log in, and their passwords. Analytics or the pooler also require the internal database.
    pub passwords: BTreeMap<Login, SecretString>,
    /// Seals the marks of the project's logins.
    pub key: Arc<FingerprintKey>,
}

impl Request {
    /// Whether the internal database is needed.
    pub(super) fn wants_internal_database(&self) -> bool {
        [Login::Analytics, Login::Pooler]
            .iter()
            .any(|login| self.passwords.contains_key(login))
    }
}

/// A database with everything that was requested, as far as the server allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The role of each service.
    pub names: Names,
    /// The names of the steps that ran now. Empty if everything existed.
    pub ran: Vec<&'static str>,
    /// What this server does not allow or have.
    pub notes: Vec<Note>,
    /// Proof that the stored passwords match, for the next check.
    pub verified: VerifiedPasswords,
}

/// Something that does not work in this project, and why.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Note {
    /// The step, role, extension or parameter.
    pub about: String,
    /// What does not work and what to do, as a sentence.
    pub message: String,
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.about, self.message)
    }
}

/// A digest of the verifiers of all roles when they matched: a check takes thousands of hashes for each role, and a
/// converged project is checked repeatedly. It is valid only together with the same passwords, which the caller must
/// compare.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VerifiedPasswords([u8; 32]);

impl VerifiedPasswords {
    /// The digest of the stored verifiers, by role.
    pub(super) fn of(verifiers: &BTreeMap<String, SecretString>) -> Self {
        let mut digest = Sha256::new();
        for (role, verifier) in verifiers {
            for text in [role.as_str(), verifier.expose_secret()] {
                digest.update(text.len().to_be_bytes());
                digest.update(text);
            }
        }
        Self(digest.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_role_or_verifier_changes_the_digest() {
        let of = |pairs: &[(&str, &str)]| {
            let verifiers = pairs
                .iter()
                .map(|(role, text)| ((*role).to_owned(), (*text).into()));
            VerifiedPasswords::of(&verifiers.collect())
        };
        let verified = of(&[("auth", "a"), ("rest", "b")]);
        assert_eq!(of(&[("rest", "b"), ("auth", "a")]), verified);
        for other in [
            of(&[("auth", "a")]),
            of(&[("auth", "b"), ("rest", "a")]),
            of(&[("auth", "ar"), ("est", "b")]),
            of(&[("auth", "a"), ("rest", "b"), ("meta", "c")]),
        ] {
            assert_ne!(other, verified);
        }
    }
}
