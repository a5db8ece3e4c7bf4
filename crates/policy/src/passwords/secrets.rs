//! Reads Secrets. Only the last one is kept as a whole: a Secret can have a mebibyte, and a policy a thousand of them.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Secret;
use secrecy::{ExposeSecret, SecretString};
use stanchion_kernel::redact::SecretValues;
use stanchion_kernel::{Problem, Reader};

/// Reads Secrets. Several keys of one Secret, one after the other, are one read.
pub(crate) struct Secrets<'a> {
    read: &'a Reader,
    names: BTreeSet<String>,
    last: Option<(String, Option<Secret>)>,
}

impl<'a> Secrets<'a> {
    /// A reader that has read nothing yet.
    pub(crate) fn new(read: &'a Reader) -> Self {
        Self {
            read,
            names: BTreeSet::new(),
            last: None,
        }
    }

    /// The namespace that they are in: the policy's own.
    pub(crate) fn namespace(&self) -> &str {
        &self.read.parent().key.namespace
    }

    /// The value of a key, without a trailing line break.
    pub(crate) async fn value(&mut self, name: &str, key: &str) -> Result<SecretString, Problem> {
        let secret = self.keys(name, &[key]).await?.ok_or_else(|| {
            Problem::dependency("SecretFetchFailed", format!("Secret {name} does not exist"))
        })?;
        let value = SecretValues::from(secret)
            .text(key)
            .map_err(|error| Problem::dependency("SecretMissing", format!("Secret {name} {error}")))?;
        Ok(value.expose_secret().trim_end_matches(['\r', '\n']).into())
    }

    /// A Secret with these keys of its data and no others.
    pub(super) async fn keys(&mut self, name: &str, keys: &[&str]) -> Result<Option<Secret>, Problem> {
        if self.last.as_ref().is_none_or(|(last, _)| last != name) {
            let secret: Option<Secret> = self.read.get(name).await?;
            self.names.insert(name.to_owned());
            self.last = Some((name.to_owned(), secret));
        }
        let last = self.last.as_ref().and_then(|(_, secret)| secret.as_ref());
        Ok(last.map(|secret| Secret {
            data: secret.data.as_ref().map(|data| {
                let named = data.iter().filter(|(key, _)| keys.contains(&key.as_str()));
                named.map(|(key, value)| (key.clone(), value.clone())).collect()
            }),
            metadata: secret.metadata.clone(),
            type_: secret.type_.clone(),
            immutable: secret.immutable,
            string_data: None,
        }))
    }

    /// The names of all Secrets that were read.
    pub(crate) fn names(&self) -> Vec<String> {
        self.names.iter().cloned().collect()
    }
}
