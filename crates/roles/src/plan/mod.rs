//! What is to be done, in an order that works from any starting state.

mod blocker;
mod change;
mod mode;
mod summary;

pub use blocker::{Blocker, Check};
pub use change::{Change, DefaultPrivilege, DefaultScope, Grant, Password, Revoke, Target};
pub use mode::Mode;
pub use summary::Summary;

use sha2::{Digest, Sha256};

/// What is to be done, what stands in the way, and what else was seen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// The changes, in the order in which they are made.
    pub changes: Vec<Change>,
    /// Why it cannot be applied.
    pub blockers: Vec<Blocker>,
    /// What should be known.
    pub warnings: Vec<String>,
    /// What managed roles hold outside of what the manifest manages.
    pub holdings: Vec<String>,
    /// The role that looked, and that statements go back to after acting as another.
    pub executor: String,
    /// The server's version: some statements are written differently for older ones.
    pub version: u32,
}

impl Plan {
    /// How much it does.
    pub fn summary(&self) -> Summary {
        Summary::of(&self.changes)
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Why it cannot be applied, a line each.
    pub fn refusal(&self) -> String {
        let lines: Vec<_> = self.blockers.iter().map(ToString::to_string).collect();
        lines.join("\n")
    }

    /// The plan's identity: what it does, statement by statement, and not when or from which text it was made.
    /// A password counts as being set; which one, and with which salt, does not.
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
