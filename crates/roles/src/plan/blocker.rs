//! Reasons why a plan cannot be applied.

use serde::Serialize;

/// The check that found a blocker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// Whether the executor may apply the plan, and keeps the permission to.
    ExecutorAuthority,
    /// Whether a role can be dropped.
    RoleDropSafety,
    /// Whether a schema's owner may change.
    SchemaOwnerTransfer,
    /// Whether the server supports the change.
    ServerCompatibility,
}

/// A reason why a plan cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocker {
    /// The check that found it.
    pub check: Check,
    /// A code for programs.
    pub code: &'static str,
    /// The role that it concerns.
    pub role: Option<String>,
    /// What blocks the plan and what to do about it.
    pub message: String,
}

impl std::fmt::Display for Blocker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}
