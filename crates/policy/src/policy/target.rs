//! What a `PostgresPolicy` requests, validated.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use stanchion_api::policy::{ConfigMapKey, DeletionPolicy, Mode, PostgresPolicySpec, PostgresPolicyStatus};
use stanchion_kernel::watch::dependencies::Key;
use stanchion_roles::expand::Desired;
use stanchion_roles::plan;

use crate::connection::ConnectionRequest;
use crate::passwords::PasswordRequest;

/// A policy's key and uid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyId {
    /// Its name.
    pub key: Key,
    /// Its uid: another policy may have the same name later.
    pub uid: String,
}

/// An active policy.
pub struct Wanted {
    /// The policy's key and uid.
    pub who: PolicyId,
    /// Creation time.
    pub created: Option<Timestamp>,
    pub generation: i64,
    /// The annotation that requests a reconcile.
    pub requested: Option<String>,
    /// The connection to the database.
    pub connection: ConnectionRequest,
    /// The desired state, if it depends on nothing that must be read.
    pub content: Option<Content>,
    /// Sources of shared profiles.
    pub profiles_from: Vec<ConfigMapKey>,
    /// The spec, to combine with shared profiles.
    pub spec: Arc<PostgresPolicySpec>,
    /// Roles with passwords, and the sources.
    pub passwords: Vec<PasswordRequest>,
    /// Time between reconciles.
    pub interval: Duration,
    /// Whether changes are applied.
    pub mode: Mode,
    /// The reconciliation mode, which limits changes.
    pub reach: plan::Mode,
    /// Whether plans need approval.
    pub needs_approval: bool,
    /// How many finished plans are kept.
    pub history: usize,
    /// The status of earlier reconciles.
    pub before: PostgresPolicyStatus,
}

/// The desired state and its warnings.
#[derive(Clone)]
pub struct Content {
    /// The desired state.
    pub desired: Arc<Desired>,
    /// Findings that do not stop.
    pub warnings: Vec<String>,
}

/// A policy that is being deleted.
pub struct CleanupTarget {
    /// The policy's key and uid.
    pub who: PolicyId,
    /// Whether its grants are revoked.
    pub policy: DeletionPolicy,
    /// Its validated spec; `None` if it is invalid.
    pub wanted: Option<Wanted>,
}
