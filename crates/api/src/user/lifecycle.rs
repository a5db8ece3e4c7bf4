//! How an object begins, is watched over, and ends.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::password::yes;
use crate::duration;

/// What to do when the role exists already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum ExistingRolePolicy {
    Adopt,
    #[default]
    Fail,
}

/// What becomes of the role when the object is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum DeletionPolicy {
    #[default]
    Delete,
    Retain,
    Disable,
}

/// What becomes of what the role owns when it is dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OnDelete {
    /// Given to another role, a reason not to drop the role, or dropped with it.
    #[serde(default)]
    pub owned_objects: OwnedObjects,
    /// Who gets them: a role of an object of this namespace, or one that the instance opens. By default a role that
    /// cannot log in and has no rights, one for each database and namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub reassign_to: Option<String>,
    /// Ends the role's sessions.
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

/// What becomes of objects that the role owns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum OwnedObjects {
    #[default]
    Reassign,
    Block,
    Drop,
}

/// What to do about changes by hand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DriftPolicy {
    /// Undo them, say so, or look away.
    #[serde(default)]
    pub mode: DriftMode,
    /// How often to look.
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

/// What to do about a change by hand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum DriftMode {
    #[default]
    Correct,
    Report,
    Ignore,
}

/// Whether statements are run or shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum Mode {
    #[default]
    Apply,
    Plan,
}
