//! What a `PostgresPolicy` asks for, in a form that cannot be invalid.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use stanchion_api::policy::{ConfigMapKey, DeletionPolicy, Mode, PostgresPolicySpec, PostgresPolicyStatus};
use stanchion_kernel::watch::references::Key;
use stanchion_roles::expand::Desired;
use stanchion_roles::plan;

use crate::connection::Wish as Connection;
use crate::passwords::Wish as Password;

/// What shall be.
pub enum Target {
    /// A database as declared.
    Present(Box<Wanted>),
    /// Nothing is touched until the policy says otherwise.
    Suspended(Who),
    /// No policy.
    Absent(Box<Leaving>),
}

/// A policy, as others know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    /// Its name.
    pub key: Key,
    /// Its uid: another one of the same name is another policy.
    pub uid: String,
}

/// A policy that shall hold.
pub struct Wanted {
    /// Which one.
    pub who: Who,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// Its generation.
    pub generation: i64,
    /// The annotation that asks for a look.
    pub requested: Option<String>,
    /// How to get to the database.
    pub connection: Connection,
    /// What must hold, where nothing has to be read to know it.
    pub content: Option<Content>,
    /// Where shared profiles are.
    pub profiles_from: Vec<ConfigMapKey>,
    /// The spec, for what is put together with shared profiles.
    pub spec: Arc<PostgresPolicySpec>,
    /// Whose passwords are set, and from where.
    pub passwords: Vec<Password>,
    /// How often to look.
    pub interval: Duration,
    /// Whether the database is changed.
    pub mode: Mode,
    /// How far changes may go.
    pub reach: plan::Mode,
    /// Whether a person has to agree.
    pub needs_approval: bool,
    /// How many ended plans are kept.
    pub history: usize,
    /// What earlier passes said.
    pub before: PostgresPolicyStatus,
}

/// What must hold, and what is worth saying about it.
#[derive(Clone)]
pub struct Content {
    /// What must hold.
    pub desired: Arc<Desired>,
    /// Findings that do not stop.
    pub warnings: Vec<String>,
}

/// A policy on its way out.
pub struct Leaving {
    /// Which one.
    pub who: Who,
    /// What becomes of what it granted.
    pub policy: DeletionPolicy,
    /// What it asked for; `None` when that cannot be understood any more.
    pub wanted: Option<Wanted>,
}
