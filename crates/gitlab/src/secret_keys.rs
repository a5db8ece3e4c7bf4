//! Reads a Secret, reports everything that is wrong with it at once, and never shows its values.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;

use crate::login::{Address, SecretKey};

/// A Secret with missing or invalid keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Unusable {
    /// The Secret's name.
    pub secret: String,
    /// The keys that are missing or empty.
    pub missing: Vec<&'static str>,
    /// The keys with invalid values, and what is expected.
    pub wrong: Vec<(&'static str, &'static str)>,
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sentences = Vec::new();
        if !self.missing.is_empty() {
            sentences.push(format!("it lacks {}", self.missing.join(", ")));
        }
        sentences.extend(
            self.wrong
                .iter()
                .map(|(key, expected)| format!("{key} is not {expected}")),
        );
        write!(f, "Secret {}: {}", self.secret, sentences.join("; "))
    }
}

/// The keys of a Secret. Errors are collected while it is read; a value that is read after an error is a placeholder,
/// and only [`Keys::finish`] returns a result.
pub(crate) struct Keys<'a> {
    data: Option<&'a BTreeMap<String, ByteString>>,
    found: Unusable,
}

impl<'a> Keys<'a> {
    pub(crate) fn of(secret: &'a Secret) -> Self {
        Self {
            data: secret.data.as_ref(),
            found: Unusable {
                secret: secret.name_any(),
                missing: Vec::new(),
                wrong: Vec::new(),
            },
        }
    }

    /// An optional text. White space around it is removed: files end with a new line.
    pub(crate) fn optional(&mut self, key: &'static str) -> Option<String> {
        let ByteString(bytes) = self.data?.get(key)?;
        let Ok(text) = std::str::from_utf8(bytes) else {
            self.wrong(key, "text");
            return None;
        };
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// A text that may be required.
    pub(crate) fn text_if(&mut self, required: bool, key: &'static str) -> Option<String> {
        if required {
            Some(self.text(key))
        } else {
            self.optional(key)
        }
    }

    /// A required text.
    pub(crate) fn text(&mut self, key: &'static str) -> String {
        let before = self.found.wrong.len();
        let text = self.optional(key);
        if text.is_none() && self.found.wrong.len() == before {
            self.found.missing.push(key);
        }
        text.unwrap_or_default()
    }

    pub(crate) fn address(&mut self, host: &'static str, port: &'static str) -> Address {
        let host = self.text(host);
        let text = self.text(port);
        let number = text.parse().ok().filter(|number| *number > 0);
        if number.is_none() && !text.is_empty() {
            self.wrong(port, "a port number");
        }
        Address {
            host,
            port: number.unwrap_or_default(),
        }
    }

    /// A required value that only GitLab's pods read.
    pub(crate) fn sealed(&mut self, key: &'static str) -> SecretKey {
        if !self.has(key) {
            self.found.missing.push(key);
        }
        SecretKey {
            secret: self.found.secret.clone(),
            key: key.to_owned(),
        }
    }

    /// Whether the key has a value.
    pub(crate) fn has(&self, key: &str) -> bool {
        let value = self.data.and_then(|data| data.get(key));
        value.is_some_and(|value| !value.0.is_empty())
    }

    /// Records an invalid value.
    pub(crate) fn wrong(&mut self, key: &'static str, expected: &'static str) {
        self.found.wrong.push((key, expected));
    }

    /// The result, if no value was missing or invalid.
    pub(crate) fn finish<T>(self, value: T) -> Result<T, Unusable> {
        if self.found.missing.is_empty() && self.found.wrong.is_empty() {
            Ok(value)
        } else {
            Err(self.found)
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A Secret with these values.
    pub(crate) fn secret(name: &str, values: &[(&str, &str)]) -> Secret {
        let data = values
            .iter()
            .map(|(key, value)| ((*key).to_owned(), ByteString((*value).into())));
        let mut secret = Secret {
            data: Some(data.collect()),
            ..Secret::default()
        };
        secret.metadata.name = Some(name.to_owned());
        secret
    }

    #[test]
    fn everything_that_is_wrong_is_said_and_no_value_is_shown() {
        let secret = secret("pg", &[("port", "hidden"), ("user", "  "), ("password", "")]);
        let mut keys = Keys::of(&secret);
        keys.address("host", "port");
        keys.text("user");
        keys.sealed("password");
        let error = keys.finish(()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Secret pg: it lacks host, user, password; port is not a port number"
        );
        assert!(!format!("{error:?}").contains("hidden"));
    }

    #[test]
    fn a_secret_without_data_misses_everything() {
        let empty = Secret::default();
        let mut keys = Keys::of(&empty);
        keys.text("host");
        assert_eq!(keys.finish(()).unwrap_err().missing, ["host"]);
    }

    #[test]
    fn what_is_no_text_is_not_called_missing() {
        let mut secret = secret("pg", &[]);
        let data = secret.data.as_mut().unwrap();
        data.insert("host".to_owned(), ByteString(vec![0xff]));
        let mut keys = Keys::of(&secret);
        keys.text("host");
        assert_eq!(
            keys.finish(()).unwrap_err().to_string(),
            "Secret pg: host is not text"
        );
    }

    #[test]
    fn the_new_line_at_a_files_end_is_no_part_of_a_value() {
        let secret = secret("pg", &[("host", "db.example.com\n"), ("port", "5432\n")]);
        let address = Keys::of(&secret).address("host", "port");
        assert_eq!((address.host.as_str(), address.port), ("db.example.com", 5432));
    }

    #[test]
    fn no_port_has_the_number_zero() {
        let secret = secret("pg", &[("host", "h"), ("port", "0")]);
        let mut keys = Keys::of(&secret);
        keys.address("host", "port");
        assert_eq!(keys.finish(()).unwrap_err().wrong, [("port", "a port number")]);
    }
}
