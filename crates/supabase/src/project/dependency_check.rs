//! Checks the database and the bucket.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};
use stanchion_kernel::{Class, Problem, ambient};
use stanchion_postgres::Security;
use tokio::time::Instant;

use super::cache::{Checked, LastCheck};
use super::secrets::Read;
use crate::database::{self, Names, Note, VerifiedPasswords};
use crate::{Setup, dependencies};

/// A prepared database.
#[derive(Clone)]
pub struct Initialised {
    /// The role of each service.
    pub names: Names,
    /// What the server does not allow.
    pub notes: Vec<Note>,
    /// Proof that the stored passwords match.
    pub verified: VerifiedPasswords,
}

impl Initialised {
    /// A database that had these logins, and is checked later.
    pub(crate) fn unchecked(names: Names) -> Self {
        Self {
            names,
            notes: Vec::new(),
            verified: VerifiedPasswords::default(),
        }
    }
}

impl From<database::Outcome> for Initialised {
    fn from(outcome: database::Outcome) -> Self {
        Self {
            names: outcome.names,
            notes: outcome.notes,
            verified: outcome.verified,
        }
    }
}

#[derive(Clone)]
pub enum CheckResult {
    /// It answered.
    Reachable {
        /// How long the answer took.
        latency: Duration,
        /// The security of the connection, if it is a database.
        security: Option<Security>,
    },
    /// It did not answer.
    Failed {
        /// The class of the problem.
        class: Class,
        /// One word.
        reason: &'static str,
        /// A sentence.
        message: String,
        /// When it last answered, if known.
        last: Option<Timestamp>,
        /// Whether it answered, and this project cannot use what is there. Other projects are not concerned.
        refused: bool,
    },
}

impl CheckResult {
    fn of(result: Result<(Duration, Option<Security>), Problem>, before: Option<(&Self, Instant)>) -> Self {
        match result {
            Ok((latency, security)) => Self::Reachable { latency, security },
            Err(problem) => Self::Failed {
                class: problem.class,
                reason: problem.reason,
                message: problem.message,
                last: before.and_then(|(before, at)| before.last(at)),
                refused: false,
            },
        }
    }

    /// When it last answered, if it was checked then.
    fn last(&self, asked: Instant) -> Option<Timestamp> {
        match self {
            Self::Reachable { .. } => ambient::now()
                .checked_sub(SignedDuration::try_from(asked.elapsed()).ok()?)
                .ok(),
            Self::Failed { last, .. } => *last,
        }
    }

    /// Whether it did not answer.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(self, Self::Failed { .. })
    }

    /// Whether this project was refused by a server that answered.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::Failed { refused: true, .. })
    }

    /// Whether it answered.
    pub fn answered(&self) -> bool {
        matches!(self, Self::Reachable { .. })
    }

    /// The problem, if it did not answer.
    pub fn problem(&self, what: &str) -> Option<Problem> {
        match self {
            Self::Failed {
                class,
                reason,
                message,
                ..
            } => Some(Problem::new(*class, reason, format!("{what}: {message}"))),
            Self::Reachable { .. } => None,
        }
    }
}

/// The login passwords that exist.
pub(crate) struct Stored {
    /// The request with them. A login without a password has [`UNSET`].
    pub request: database::Request,
    /// Whether every login has one. If not, the database has to be changed, whatever it says.
    pub complete: bool,
}

/// Stands for a password that is not generated yet.
pub(crate) const UNSET: &str = "not generated yet";

/// The result of a check.
pub struct Check {
    /// What was found.
    pub checked: Checked,
    /// Whether it was checked now; otherwise an earlier result is still valid.
    pub is_new: bool,
}

/// Checks the database and the bucket, unless the last results are still valid.
pub(crate) async fn check(setup: &Setup, before: LastCheck, (read, stored): (&Read, &Stored)) -> Check {
    let inputs = check_inputs(read, &stored.request);
    let known = match before.checked {
        Some(known) if known.inputs == inputs && before.holds => {
            return Check {
                checked: known,
                is_new: false,
            };
        }
        known => known,
    };
    let before = known.as_ref();
    let postgres_before = before.map(|known| (&known.postgres, known.at));
    let s3_before = before.map(|known| (&known.s3, known.at));
    let (postgres, s3) = tokio::join!(
        dependencies::postgres::probe(&setup.pools, &read.target),
        dependencies::s3::probe(&read.store, setup.pools.http()),
    );
    let postgres = postgres.map(|(latency, security)| (latency, Some(security)));
    let mut postgres = CheckResult::of(postgres, postgres_before);
    let s3 = CheckResult::of(s3.map(|latency| (latency, None)), s3_before);
    let mut initialised = None;
    if postgres.answered() {
        let same = before.filter(|known| known.inputs == inputs);
        let verified = same.and_then(|known| Some(known.database.as_ref()?.verified));
        match inspect(setup, read, &stored.request, verified).await {
            Ok(found) => initialised = found.filter(|_| stored.complete),
            Err(problem) => {
                // Any other problem may be the connection's.
                let is_refusal = problem.class == Class::Human;
                postgres = CheckResult::of(Err(problem), postgres_before);
                if let CheckResult::Failed { refused, .. } = &mut postgres {
                    *refused = is_refusal;
                }
            }
        }
    }
    let checked = Checked {
        inputs,
        server: read.target.to_string().to_ascii_lowercase(),
        at: Instant::now(),
        postgres,
        s3,
        database: initialised,
    };
    Check {
        checked,
        is_new: true,
    }
}

async fn inspect(
    setup: &Setup,
    read: &Read,
    request: &database::Request,
    verified: Option<VerifiedPasswords>,
) -> Result<Option<Initialised>, Problem> {
    let session = setup.pools.read_only(&read.target).await?;
    let outcome = database::inspect(&session, request, verified).await?;
    Ok(outcome.map(Initialised::from))
}

/// A digest of all inputs of the check. It stays in memory, and is compared only with itself.
pub(crate) fn check_inputs(read: &Read, request: &database::Request) -> [u8; 32] {
    let mut digest = Sha256::new();
    let mut add = |text: &str| {
        digest.update(text.len().to_be_bytes());
        digest.update(text);
    };
    add(&format!("{:?}", read.target.fingerprint()));
    let store = &read.store;
    for text in [&store.endpoint, &store.region, &store.bucket] {
        add(text);
    }
    let secret = |value: &SecretString| value.expose_secret().to_owned();
    add(&secret(&store.access_key_id));
    add(&secret(&store.secret_access_key));
    add(if store.force_path_style { "path" } else { "host" });
    for (login, password) in &request.passwords {
        add(login.role());
        add(&secret(password));
    }
    digest.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(before: Option<(&CheckResult, Instant)>) -> (CheckResult, Option<Timestamp>) {
        let problem = Problem::transient("ConnectionRefused", "nobody is there".to_owned());
        let contact = CheckResult::of(Err(problem), before);
        let last = match &contact {
            CheckResult::Failed { last, .. } => *last,
            CheckResult::Reachable { .. } => panic!("it did not answer"),
        };
        (contact, last)
    }

    #[test]
    fn the_last_contact_is_the_last_answer_however_often_there_was_none_since() {
        let answered = CheckResult::Reachable {
            latency: Duration::from_millis(3),
            security: None,
        };
        let asked = Instant::now().checked_sub(Duration::from_secs(90)).unwrap();
        let (once, last) = lost(Some((&answered, asked)));
        let ago = Timestamp::now().duration_since(last.unwrap());
        assert!((90..100).contains(&ago.as_secs()), "{ago}");
        let (_, still) = lost(Some((&once, Instant::now())));
        assert_eq!(still, last);
        assert_eq!(lost(None).1, None);
    }
}
