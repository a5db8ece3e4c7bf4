//! Reads Secrets, each once in a reconcile.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use secrecy::{ExposeSecret, SecretString};
use stanchion_kernel::redact::SecretValues;
use stanchion_kernel::{Problem, Reader};

/// Reads Secrets, each once in a reconcile.
pub(crate) struct Secrets<'a> {
    read: &'a Reader,
    found: BTreeMap<String, Option<Secret>>,
}

impl<'a> Secrets<'a> {
    /// A reader that has read nothing yet.
    pub(crate) fn new(read: &'a Reader) -> Self {
        Self {
            read,
            found: BTreeMap::new(),
        }
    }

    /// The namespace that they are in: the policy's own.
    pub(crate) fn namespace(&self) -> &str {
        &self.read.parent().key.namespace
    }

    /// The value of a key, without a trailing line break.
    pub(crate) async fn value(&mut self, name: &str, key: &str) -> Result<SecretString, Problem> {
        let secret = self.get(name).await?.cloned().ok_or_else(|| {
            Problem::dependency("SecretFetchFailed", format!("Secret {name} does not exist"))
        })?;
        let value = SecretValues::from(secret)
            .text(key)
            .map_err(|error| Problem::dependency("SecretMissing", format!("Secret {name} {error}")))?;
        Ok(value.expose_secret().trim_end_matches(['\r', '\n']).into())
    }

    pub(super) async fn get(&mut self, name: &str) -> Result<Option<&Secret>, Problem> {
        if !self.found.contains_key(name) {
            let secret: Option<Secret> = self.read.get(name).await?;
            self.found.insert(name.to_owned(), secret);
        }
        Ok(self.found.get(name).and_then(Option::as_ref))
    }

    /// The names of all Secrets that were read.
    pub(crate) fn names(&self) -> Vec<String> {
        self.found.keys().cloned().collect()
    }
}
