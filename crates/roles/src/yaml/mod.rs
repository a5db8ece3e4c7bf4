//! YAML with line and column.
//!
//! A document is read into a tree of [`Node`]s that remember where they stood, and a type is read from the
//! tree. That way an error of any kind (a wrong type, an unknown key, a rule of ours that is broken three
//! levels deep) can say where, and all unknown keys are found at once instead of the first one.

mod de;
mod node;

pub use de::{UnknownKey, from_node};
pub use node::{Location, Node, Segment, Value, parse};

/// What kept a document from being read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What is wrong.
    pub message: String,
    /// Where, as far as it is known.
    pub location: Option<Location>,
}
