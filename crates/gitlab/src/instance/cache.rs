//! Caches what earlier reconciles read for an instance. What no watch has reported as changed is not read again.
//!
//! No secret is kept. Of a Secret only its shape is kept: its keys, and the values that are not secret, such as a host.
//! A reconcile that needs more reads the Secret again.

use std::collections::{BTreeMap, HashMap};

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::core::DynamicObject;
use parking_lot::{Mutex, MutexGuard};
use stanchion_api::gitlab::{GitlabProfileSpec, GitlabVersionMapSpec};

use super::apply::Applied;
use super::observe::{Backends, Current};
use super::target::Wanted;
use crate::account;
use crate::backends::percona;
use crate::flux::{self, HELM_REPOSITORY};
use crate::record;
use crate::storage::Derived;
use crate::values::Checksums;

/// The keys of Secrets whose values are not secret, in addition to the names of buckets.
const PLAIN: [&str; 14] = [
    "host",
    "port",
    "database",
    "username",
    "dbname",
    "user",
    "pgbouncer-host",
    "pgbouncer-port",
    "endpoint",
    "region",
    "from",
    "replyTo",
    "authentication",
    "starttls",
];

/// The cache of each instance, by its uid.
#[derive(Default)]
pub(crate) struct InstanceCache(Mutex<HashMap<String, Cached>>);

/// The cache of an instance: `None` means that the object does not exist.
pub(crate) struct Cached {
    pub map: Option<GitlabVersionMapSpec>,
    pub profile: Option<GitlabProfileSpec>,
    pub account: account::Found,
    /// The record of the last version.
    pub record: Option<ConfigMap>,
    /// The initial statements of the database.
    pub init: Option<ConfigMap>,
    /// The chart repository.
    pub repository: Option<DynamicObject>,
    /// The objects that other operators run.
    pub backends: Backends,
    /// Whether Helm itself has deployed a release.
    pub has_predecessor: bool,
    /// The Secrets, if everything that is derived from them was up to date.
    pub secrets: Option<Shapes>,
}

/// The shapes of an instance's Secrets.
#[derive(Clone)]
pub(crate) struct Shapes {
    /// The roles of the Secrets in the spec: in another field, a Secret has another meaning.
    pub named: [Option<String>; 5],
    /// The existing ones.
    pub secrets: BTreeMap<String, Secret>,
    /// Fingerprints that show changes.
    pub checksums: Checksums,
}

impl InstanceCache {
    /// Takes the cache out: only a completed pass leaves one. A pass that fails has read changes that the watches do not
    /// report again, so the next one reads everything.
    pub(crate) fn take(&self, uid: &str) -> Option<Cached> {
        self.lock().remove(uid)
    }

    /// Removes a deleted instance.
    pub(crate) fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    /// Called after the whole plan was written.
    pub(crate) fn remember(&self, wanted: &Wanted, current: &Current, applied: &Applied) {
        let instance = wanted.name.as_str();
        let written = &applied.written;
        let removed = ["Secret", "ServiceAccount", "RoleBinding"];
        if removed
            .iter()
            .any(|kind| written.deletions(kind).next().is_some())
        {
            return;
        }
        let account = account::name(instance);
        let map = |name: &str, current: &Option<ConfigMap>| written.get(name).or_else(|| current.clone());
        let cached = Cached {
            map: current.map.clone(),
            profile: current.profile.clone(),
            account: account::Found {
                account: written.get(&account).or_else(|| current.account.account.clone()),
                binding: written.get(&account).or_else(|| current.account.binding.clone()),
            },
            record: map(&record::name(instance), &current.record),
            init: map(&percona::init_name(instance), &current.init),
            repository: written
                .object(HELM_REPOSITORY.kind, &flux::name(instance))
                .or(current.flux.repository.as_ref())
                .cloned(),
            backends: current.backends.after(written),
            has_predecessor: current.helm.is_some(),
            secrets: shapes(wanted, current, applied),
        };
        self.lock().insert(current.parent.uid.clone(), cached);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Cached>> {
        self.0.lock()
    }
}

/// Only if nothing but the Secrets of the buckets was written: the rest is read again.
fn shapes(wanted: &Wanted, current: &Current, applied: &Applied) -> Option<Shapes> {
    let made = Derived::names(&wanted.name);
    let written = &applied.written;
    let is_made = |name: &str| made.iter().any(|made| made == name);
    if !applied.storage_resolved || !written.names("Secret").all(is_made) {
        return None;
    }
    let mut shapes: BTreeMap<String, Secret> = current
        .secrets
        .iter()
        .map(|(name, secret)| (name.clone(), shape(secret)))
        .collect();
    for name in made {
        if let Some(secret) = written.get(&name) {
            shapes.insert(name, shape(&secret));
        }
    }
    Some(Shapes {
        named: wanted.named_secrets(),
        secrets: shapes,
        checksums: current.checksums.clone(),
    })
}

/// A Secret without its secret values.
fn shape(secret: &Secret) -> Secret {
    let is_plain = |key: &str| PLAIN.contains(&key) || key.starts_with("bucket.");
    let data = secret.data.iter().flatten().map(|(key, value)| {
        let value = if is_plain(key) {
            value.clone()
        } else {
            sealed(value)
        };
        (key.clone(), value)
    });
    let mut shape = Secret {
        data: Some(data.collect()),
        type_: secret.type_.clone(),
        ..Secret::default()
    };
    shape.metadata = secret.metadata.clone();
    shape.metadata.managed_fields = None;
    shape
}

/// A placeholder that validates like the value, and reveals nothing else about it.
fn sealed(value: &ByteString) -> ByteString {
    let stands_for: &[u8] = match std::str::from_utf8(&value.0) {
        Err(_) => b"\xff",
        Ok("") => b"",
        Ok(text) if text.trim().is_empty() => b" ",
        Ok(text) if text.trim().starts_with('$') || text.trim().chars().any(char::is_control) => b"$",
        Ok(_) => b"-",
    };
    ByteString(stands_for.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(values: &[(&str, &[u8])]) -> Secret {
        let data = values
            .iter()
            .map(|(key, value)| ((*key).to_owned(), ByteString(value.to_vec())));
        Secret {
            data: Some(data.collect()),
            ..Secret::default()
        }
    }

    #[test]
    fn no_secret_is_kept_and_what_is_kept_is_judged_the_same() {
        let whole = secret(&[
            ("host", b"db.example.com"),
            ("bucket.lfs", b"b-lfs"),
            ("password", b"canary-1"),
            ("accessKey", b"$canary-2"),
            ("secretKey", b"canary-3\n"),
            ("license", b"canary-4"),
            ("uri", b"postgres://canary-5"),
            ("config", b"\xffcanary-6"),
            ("none", b""),
        ]);
        let cached = shape(&whole);
        let text = format!("{cached:?}{}", serde_json::to_string(&cached).unwrap());
        let bytes: Vec<u8> = cached
            .data
            .iter()
            .flatten()
            .flat_map(|(_, value)| value.0.clone())
            .collect();
        assert!(!text.contains("canary") && !String::from_utf8_lossy(&bytes).contains("canary"));
        let value = |key: &str| cached.data.as_ref().unwrap()[key].0.clone();
        assert_eq!(value("host"), b"db.example.com");
        assert_eq!(value("bucket.lfs"), b"b-lfs");
        assert_eq!(value("accessKey"), b"$");
        assert_eq!(value("secretKey"), b"-", "the end of a line is no part of it");
        assert_eq!(value("config"), b"\xff");
        assert_eq!(value("none"), b"");
        assert_eq!(shape(&cached), cached, "again is the same");
    }
}
