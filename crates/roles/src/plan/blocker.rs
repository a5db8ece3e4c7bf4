//! Why a plan cannot be applied.

use serde::Serialize;

/// Which precaution found it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// Whether the one who applies may do it, and still can afterwards.
    ExecutorAuthority,
    /// Whether a role can be dropped.
    RoleDropSafety,
    /// Whether a schema may change hands.
    SchemaOwnerTransfer,
    /// Whether the server can do it at all.
    ServerCompatibility,
}

/// Something that stands in the way of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocker {
    /// Which precaution found it.
    pub check: Check,
    /// A word for programs.
    pub code: &'static str,
    /// The role that it is about.
    pub role: Option<String>,
    /// What is in the way and what to do about it.
    pub message: String,
}

impl std::fmt::Display for Blocker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}
