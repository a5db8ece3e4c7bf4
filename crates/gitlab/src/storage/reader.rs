//! Reads a whole Secret and collects all errors, so that the user sees them at once.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;

use super::{Endpoint, Unusable};

pub(super) struct Reader<'a> {
    data: &'a BTreeMap<String, ByteString>,
    missing: Vec<&'static str>,
    refused: Option<Unusable>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(data: &'a BTreeMap<String, ByteString>) -> Self {
        Self {
            data,
            missing: Vec::new(),
            refused: None,
        }
    }

    /// The text under a key without surrounding white space: an editor's trailing line break is not part of a password.
    pub(super) fn optional(&mut self, key: &'static str) -> Option<String> {
        let bytes = &self.data.get(key)?.0;
        let Ok(text) = std::str::from_utf8(bytes) else {
            self.refuse(Unusable::NotText(key));
            return Some(String::new());
        };
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// A required text.
    pub(super) fn text(&mut self, key: &'static str) -> String {
        self.optional(key).unwrap_or_else(|| {
            self.missing.push(key);
            String::new()
        })
    }

    /// A text that is required if a part is on.
    pub(super) fn text_if(&mut self, needed: bool, key: &'static str) -> Option<String> {
        if needed {
            Some(self.text(key))
        } else {
            self.optional(key)
        }
    }

    /// A text that the configuration of the backup tool can express.
    pub(super) fn line(&mut self, key: &'static str) -> String {
        let text = self.text(key);
        if text.starts_with('$') || text.chars().any(char::is_control) {
            self.refuse(Unusable::Unfit(key));
        }
        text
    }

    pub(super) fn endpoint(&mut self, key: &'static str) -> Endpoint {
        let text = self.text(key);
        text.parse().unwrap_or_else(|_| {
            self.refuse(Unusable::Endpoint);
            Endpoint::default()
        })
    }

    /// Missing keys are reported first: other errors may follow from them.
    pub(super) fn verdict(mut self) -> Result<(), Unusable> {
        if !self.missing.is_empty() {
            self.missing.sort_unstable();
            return Err(Unusable::Missing(self.missing));
        }
        self.refused.map_or(Ok(()), Err)
    }

    fn refuse(&mut self, why: Unusable) {
        self.refused.get_or_insert(why);
    }
}
