//! Adoption, deletion and drift of a `PostgresUser`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::password::yes;
use crate::duration;

/// What to do if the role exists already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum ExistingRolePolicy {
    Adopt,
    #[default]
    Fail,
}

/// What happens to the role when the object is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum DeletionPolicy {
    #[default]
    Delete,
    Retain,
    Disable,
}

/// What happens to the objects that the role owns when it is dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OnDelete {
    /// `Reassign` transfers owned objects to another role, `Block` refuses to drop the role while it owns any, `Drop` drops
    /// them with the role.
    #[serde(default)]
    pub owned_objects: OwnedObjects,
    /// The role that receives the owned objects: a role of an object in this namespace, or a role that the instance opens.
    /// Defaults to a role without login and privileges, one for each database and namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub reassign_to: Option<String>,
    /// Whether to terminate the role's sessions.
    #[serde(default = "yes")]
    pub terminate_sessions: bool,
}

impl Default for OnDelete {
    fn default() -> Self {
        Self {
            owned_objects: OwnedObjects::default(),
            reassign_to: None,
            terminate_sessions: true,
        }
    }
}

/// What happens to objects that the role owns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum OwnedObjects {
    #[default]
    Reassign,
    Block,
    Drop,
}

/// What to do about changes that were made outside of the operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DriftPolicy {
    /// `Correct` reverts changes made outside of the operator; `Report` only reports them; `Ignore` turns drift detection
    /// off.
    #[serde(default)]
    pub mode: DriftMode,
    /// How often to check for drift, for instance `10m`.
    #[serde(default = "default_interval")]
    #[schemars(pattern(duration::PATTERN))]
    pub interval: String,
}

fn default_interval() -> String {
    "10m".into()
}

impl Default for DriftPolicy {
    fn default() -> Self {
        Self {
            mode: DriftMode::default(),
            interval: default_interval(),
        }
    }
}

/// What to do about drift.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum DriftMode {
    #[default]
    Correct,
    Report,
    Ignore,
}

/// Whether the operator runs statements or only shows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum Mode {
    #[default]
    Apply,
    Plan,
}
