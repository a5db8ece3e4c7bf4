//! The plan: ordered changes, blockers and warnings.

mod blocker;
mod change;
mod mode;
mod summary;

pub use blocker::{Blocker, Check};
pub use change::{Change, DefaultPrivilege, DefaultScope, Grant, GrantTarget, Password, Revoke};
pub use mode::Mode;
pub use summary::Summary;

use sha2::{Digest, Sha256};

/// The changes, what blocks them, and warnings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// The changes, in an order that works from any starting state.
    pub changes: Vec<Change>,
    /// Reasons why the plan cannot be applied.
    pub blockers: Vec<Blocker>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// What managed roles hold outside of the manifest's scope.
    pub holdings: Vec<String>,
    /// The inspecting role, which statements reset to after acting as another.
    pub executor: String,
    /// The server's version: some statements differ for older servers.
    pub version: u32,
}

impl Plan {
    /// The number of changes by kind.
    pub fn summary(&self) -> Summary {
        Summary::of(&self.changes)
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The reasons why the plan cannot be applied, one line each.
    pub fn refusal(&self) -> String {
        let lines: Vec<_> = self.blockers.iter().map(ToString::to_string).collect();
        lines.join("\n")
    }

    /// The plan's identity: its statements, independent of the time and the text of the manifest. Setting a password
    /// counts; the password and its salt do not.
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for change in &self.changes {
            for statement in crate::render::display(change, self) {
                hash.update(statement.as_bytes());
                hash.update([0]);
            }
        }
        format!("sha256:{:x}", hash.finalize())
    }
}
