//! YAML with line and column.
//!
//! A document is parsed into a tree of [`Node`]s that keep their location, and types are deserialized from the tree. So
//! every error (a wrong type, an unknown key, a violated rule three levels deep) has a location, and all unknown keys
//! are reported at once instead of only the first.

mod de;
mod node;

pub use de::{UnknownKey, from_node};
pub(crate) use node::Segment;
pub use node::{Location, Node, Value, parse};

/// Why a document cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What is wrong.
    pub message: String,
    /// The location, if known.
    pub location: Option<Location>,
}
