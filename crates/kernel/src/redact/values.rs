//! The values of a Kubernetes Secret, in a type that cannot print them.
//!
//! `k8s_openapi`'s `Secret` prints its data with `{:?}`. A controller converts it to [`SecretValues`] right after
//! reading, and passes on only that.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use secrecy::{ExposeSecret as _, SecretSlice};
use thiserror::Error;

use super::SecretString;

/// The data of one Secret.
#[derive(Debug, Default)]
pub struct SecretValues(BTreeMap<String, SecretSlice<u8>>);

/// Why a value cannot be used. Contains the key, never the value.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ValueError {
    /// The key does not exist.
    #[error("has no key \"{key}\" (it has {present})")]
    Missing {
        /// The key.
        key: String,
        /// The existing keys, to help find a misspelling.
        present: String,
    },
    /// The value is not UTF-8.
    #[error("has a value under \"{key}\" that is not text")]
    NotText {
        /// The key.
        key: String,
    },
}

impl From<Secret> for SecretValues {
    fn from(secret: Secret) -> Self {
        let data = secret.data.unwrap_or_default();
        Self(
            data.into_iter()
                .map(|(key, value)| (key, value.0.into()))
                .collect(),
        )
    }
}

impl SecretValues {
    /// The keys, which are not secret.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The value under this key, as stored.
    pub fn bytes(&self, key: &str) -> Result<&SecretSlice<u8>, ValueError> {
        self.0.get(key).ok_or_else(|| {
            let keys: Vec<&str> = self.keys().collect();
            let present = if keys.is_empty() {
                "none".to_owned()
            } else {
                keys.join(", ")
            };
            ValueError::Missing {
                key: key.to_owned(),
                present,
            }
        })
    }

    /// The value under this key, as text.
    pub fn text(&self, key: &str) -> Result<SecretString, ValueError> {
        let text = std::str::from_utf8(self.bytes(key)?.expose_secret());
        text.map(SecretString::from)
            .map_err(|_| ValueError::NotText { key: key.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;

    use super::*;

    fn values(entries: &[(&str, &[u8])]) -> SecretValues {
        let entries = entries
            .iter()
            .map(|(key, value)| ((*key).to_owned(), ByteString(value.to_vec())));
        Secret {
            data: Some(entries.collect()),
            ..Secret::default()
        }
        .into()
    }

    #[test]
    fn text_is_read_by_its_key() {
        let values = values(&[("password", b"hunter2"), ("binary", b"\xff\xfe")]);
        assert_eq!(values.text("password").unwrap().expose_secret(), "hunter2");
        assert_eq!(values.bytes("binary").unwrap().expose_secret(), b"\xff\xfe");
        assert_eq!(
            values.text("binary").unwrap_err(),
            ValueError::NotText { key: "binary".into() }
        );
    }

    #[test]
    fn an_error_names_the_keys_and_no_value() {
        let error = values(&[("pasword", b"hunter2")]).text("password").unwrap_err();
        assert_eq!(error.to_string(), r#"has no key "password" (it has pasword)"#);
        assert_eq!(
            values(&[]).text("x").unwrap_err().to_string(),
            r#"has no key "x" (it has none)"#
        );
    }

    #[test]
    fn printed_it_shows_keys_only() {
        let shown = format!("{:?}", values(&[("password", b"hunter2")]));
        let bytes = format!("{:?}", b"hunter2".as_slice());
        assert!(
            shown.contains("password") && !shown.contains("hunter2") && !shown.contains(&bytes),
            "{shown}"
        );
    }
}
