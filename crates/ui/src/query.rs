//! The query of an address: search and filters are kept there, so that an address can be shared and reloaded.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// What stays as it is.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// Names and values, in their order. Also the body of a form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        let decode = |text: &str| {
            let spaced = text.replace('+', " ");
            percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
        };
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        });
        Self(pairs.collect())
    }

    /// The first value of a name, if it is not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, _)| key == name);
        found
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    #[must_use]
    pub(crate) fn without(&self, name: &str) -> Self {
        Self(self.0.iter().filter(|(key, _)| key != name).cloned().collect())
    }

    /// With this value, or without one.
    #[must_use]
    pub(crate) fn with(&self, name: &str, value: Option<&str>) -> Self {
        let mut changed = self.without(name);
        changed
            .0
            .extend(value.map(|value| (name.to_owned(), value.to_owned())));
        changed
    }

    /// This path with the query.
    pub(crate) fn on(&self, path: &str) -> String {
        let pairs: Vec<String> = self
            .0
            .iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| format!("{}={}", encode(name), encode(value)))
            .collect();
        if pairs.is_empty() {
            path.to_owned()
        } else {
            format!("{path}?{}", pairs.join("&"))
        }
    }
}

/// A value in an address.
pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_and_written_again() {
        let query = Query::parse("q=a+b%26%3Cc&kind=postgresusers&empty=&q=second");
        assert_eq!(query.get("q"), Some("a b&<c"));
        assert_eq!(query.get("empty"), None);
        assert_eq!(query.get("none"), None);
        assert_eq!(
            query.without("q").with("state", Some("Not Ready")).on("/"),
            "/?kind=postgresusers&state=Not%20Ready"
        );
        assert_eq!(query.with("q", None).with("kind", None).on("/o/x"), "/o/x");
    }

    #[test]
    fn bytes_that_are_no_text_do_no_harm() {
        assert_eq!(Query::parse("q=%ff%zz").get("q"), Some("\u{fffd}%zz"));
        assert_eq!(Query::parse("&&=&").get(""), None);
    }
}
