//! The content of an event, within the limits of the API.

use crate::text::shorten;

/// The API's limits in bytes: the API server rejects an event with a longer text.
const MAX_NOTE: usize = 1024;
const MAX_WORD: usize = 128;

/// The `type` of an Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// Expected.
    Normal,
    /// Needs attention.
    Warning,
}

impl Severity {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// An event about an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EventRecord {
    /// Normal or Warning.
    pub kind: Severity,
    /// The reason, in one `CamelCase` word.
    pub reason: String,
    /// What the controller did, in one `CamelCase` word.
    pub action: String,
    /// The message for people.
    pub note: String,
}

impl EventRecord {
    /// A Normal event.
    pub fn normal(reason: &str, action: &str, note: impl Into<String>) -> Self {
        Self {
            kind: Severity::Normal,
            reason: reason.into(),
            action: action.into(),
            note: note.into(),
        }
    }

    /// A Warning event.
    pub fn warning(reason: &str, action: &str, note: impl Into<String>) -> Self {
        Self {
            kind: Severity::Warning,
            ..Self::normal(reason, action, note)
        }
    }

    /// The notice, shortened to the API's limits.
    pub(super) fn shortened(&self) -> Self {
        Self {
            kind: self.kind,
            reason: shorten(&self.reason, MAX_WORD),
            action: shorten(&self.action, MAX_WORD),
            note: shorten(&self.note, MAX_NOTE),
        }
    }
}

/// A unique name for an Event: the object's name and 64 random bits.
pub(super) fn unique_name(object: &str) -> String {
    const MAX_NAME: usize = 253;
    let suffix = format!(".{:016x}", crate::ambient::bits());
    let end = object.floor_char_boundary(MAX_NAME - suffix.len());
    // A name must not have "." or "-" before the dot of the suffix.
    let stem = object.get(..end).unwrap_or_default().trim_end_matches(['.', '-']);
    format!("{stem}{suffix}")
}

/// `reportingInstance` has the same limit as the reason.
pub(super) fn instance(name: &str) -> String {
    name.get(..name.floor_char_boundary(MAX_WORD))
        .unwrap_or_default()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_names_fit_and_differ() {
        let long = format!("{}-.{}", "a".repeat(234), "b".repeat(17));
        let name = unique_name(&long);
        assert!(name.len() <= 253, "{}", name.len());
        assert!(!name.contains("-.") && !name.contains(".."), "{name}");
        assert_ne!(unique_name("x"), unique_name("x"));
    }
}
