//! What an event says, within the limits of the API.

use crate::text::shorten;

/// The API's limits, in bytes: a longer text is refused, and with it the whole event.
const MAX_NOTE: usize = 1024;
const MAX_WORD: usize = 128;

/// The `type` of an Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// Things go as they should.
    Normal,
    /// Somebody may want to look.
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

/// One thing to tell about an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Notice {
    /// Whether this is good news.
    pub kind: Severity,
    /// Why, in one `CamelCase` word.
    pub reason: String,
    /// What the controller was doing, in one `CamelCase` word.
    pub action: String,
    /// The sentence for people.
    pub note: String,
}

impl Notice {
    /// Good news.
    pub fn normal(reason: &str, action: &str, note: impl Into<String>) -> Self {
        Self {
            kind: Severity::Normal,
            reason: reason.into(),
            action: action.into(),
            note: note.into(),
        }
    }

    /// Somebody may want to look.
    pub fn warning(reason: &str, action: &str, note: impl Into<String>) -> Self {
        Self {
            kind: Severity::Warning,
            ..Self::normal(reason, action, note)
        }
    }

    /// The same, short enough for the API.
    pub(super) fn shortened(&self) -> Self {
        Self {
            kind: self.kind,
            reason: shorten(&self.reason, MAX_WORD),
            action: shorten(&self.action, MAX_WORD),
            note: shorten(&self.note, MAX_NOTE),
        }
    }
}

/// A name for an Event that nothing else has: the object's name and 64 random bits.
pub(super) fn unique_name(object: &str) -> String {
    const MAX_NAME: usize = 253;
    let suffix = format!(".{:016x}", crate::ambient::bits());
    let end = object.floor_char_boundary(MAX_NAME - suffix.len());
    // A name must not have "." or "-" before the dot of the suffix.
    let stem = object.get(..end).unwrap_or_default().trim_end_matches(['.', '-']);
    format!("{stem}{suffix}")
}

/// `reportingInstance` has the same limit as the words.
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
