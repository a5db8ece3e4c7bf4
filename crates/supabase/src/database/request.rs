//! What is asked of the database, and what came of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use secrecy::SecretString;
use stanchion_kernel::redact::FingerprintKey;

use super::proof::Proof;
use super::roles::{Login, Names};

/// What a project needs in its database.
#[derive(Debug, Clone)]
pub struct Request {
    /// Whose database it is: `namespace/name`. Recorded there, so that two projects do not share one unawares.
    pub project: String,
    /// The services that log in, and their passwords. Analytics or the pooler among them means that their database
    /// is wanted, too.
    pub passwords: BTreeMap<Login, SecretString>,
    /// Seals the marks of the project's logins.
    pub key: Arc<FingerprintKey>,
}

impl Request {
    /// Is the database of analytics and pooler wanted?
    pub(super) fn wants_internal_database(&self) -> bool {
        [Login::Analytics, Login::Pooler]
            .iter()
            .any(|login| self.passwords.contains_key(login))
    }
}

/// A database that has everything that was asked for, as far as the server allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The role that each service logs in as.
    pub names: Names,
    /// The names of the steps that ran now. Empty if everything was there.
    pub ran: Vec<&'static str>,
    /// What this server does not allow, or does not have.
    pub notes: Vec<Note>,
    /// The stored passwords fit: what the next look need not find out again.
    pub proof: Proof,
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
