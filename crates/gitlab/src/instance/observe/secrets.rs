//! Reads the Secrets of an instance, with fingerprints that show their changes without revealing them.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Secret;
use secrecy::SecretString;
use stanchion_kernel::redact::FingerprintKey;
use stanchion_kernel::{Problem, Reader};

use super::super::cache::{Cached, Shapes};
use super::super::target::Wanted;
use crate::storage::Derived;
use crate::values::Checksums;

/// The Secrets that the instance names, those that other operators create for it, and those that are derived here.
///
/// If none of them has changed since everything derived from them was up to date, only their shapes are known.
pub(super) async fn secrets(
    key: &FingerprintKey,
    cached: Option<&Cached>,
    read: &Reader,
    wanted: &Wanted,
) -> Result<(Shapes, bool), Problem> {
    let mentioned = wanted.named_secrets();
    let mut names: BTreeSet<String> = mentioned
        .iter()
        .flatten()
        .filter(|name| !name.is_empty())
        .cloned()
        .collect();
    // The Secrets of a storage that is no longer named exist until nothing reads them.
    let made = Derived::names(&wanted.name);
    let has_storage = wanted.spec.object_storage.credentials_secret.is_some();
    names.extend(
        made.into_iter()
            .filter(|name| has_storage || wanted.secrets.contains(name)),
    );
    // Check each one, so that each stays registered as a dependency.
    let changed = names
        .iter()
        .filter(|name| !read.is_unchanged::<Secret>(name))
        .count();
    let cached = cached.and_then(|cached| cached.secrets.as_ref());
    if let (Some(shapes), 0) = (cached.filter(|cached| cached.named == mentioned), changed) {
        return Ok((shapes.clone(), true));
    }
    let found = try_join_all(names.into_iter().map(async |name| {
        let secret: Option<Secret> = read.get(&name).await?;
        Ok::<_, Problem>(secret.map(|secret| (name, secret)))
    }))
    .await?;
    let secrets = found.into_iter().flatten().collect();
    let checksums = checksums(key, &read.parent().uid, wanted, &secrets);
    let read = Shapes {
        named: mentioned,
        secrets,
        checksums,
    };
    Ok((read, false))
}

/// The fingerprints of the Secrets that each of GitLab's parts reads. They are keyed, so they reveal nothing.
fn checksums(
    key: &FingerprintKey,
    uid: &str,
    wanted: &Wanted,
    secrets: &BTreeMap<String, Secret>,
) -> Checksums {
    let spec = &wanted.spec;
    let storage = spec.object_storage.credentials_secret.clone();
    let (postgres, redis) = (wanted.postgres_secret(), wanted.redis_secret());
    let mark = |part: &str, names: &[&Option<String>]| {
        let values: Vec<SecretString> = names
            .iter()
            .filter_map(|name| secrets.get(name.as_ref()?))
            .flat_map(|secret| secret.data.iter().flatten())
            .map(|(name, value)| format!("{name}={}", String::from_utf8_lossy(&value.0)).into())
            .collect();
        let values: Vec<&SecretString> = values.iter().collect();
        (!values.is_empty()).then(|| key.fingerprint(uid, part, &values))
    };
    Checksums {
        rails: mark(
            "rails",
            &[&storage, &postgres, &redis, &spec.smtp.credentials_secret],
        ),
        registry: mark("registry", &[&storage]),
        toolbox: mark("toolbox", &[&storage, &postgres, &redis]),
        kas: mark("kas", &[&redis]),
        exporter: mark("exporter", &[&postgres, &redis]),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;
    use serde_json::json;

    use super::*;

    fn secret(password: &str) -> Secret {
        Secret {
            data: Some([("password".to_owned(), ByteString(password.into()))].into()),
            ..Secret::default()
        }
    }

    #[test]
    fn a_checksum_changes_only_for_readers_of_the_secret() {
        let key = FingerprintKey::generate();
        let wanted = Wanted::shop(json!({
            "domains": { "gitlab": "git.example.com" },
            "postgres": { "credentialsSecret": "pg" },
            "objectStorage": { "credentialsSecret": "s3" },
        }));
        let marks = |pg: &str, s3: &str| {
            let secrets = [("pg".to_owned(), secret(pg)), ("s3".to_owned(), secret(s3))].into();
            checksums(&key, "uid", &wanted, &secrets)
        };
        let before = marks("canary", "two");
        assert_eq!(marks("canary", "two"), before);
        assert_eq!(marks("other", "two").registry, before.registry);
        assert_ne!(marks("other", "two").rails, before.rails);
        assert_ne!(marks("canary", "other").registry, before.registry);
        assert_ne!(marks("other", "two").exporter, before.exporter);
        assert_eq!(marks("canary", "other").exporter, before.exporter);
        assert_eq!(before.kas, None, "it has no Redis of ours");
        assert!(!format!("{before:?}").contains("canary"));
    }
}
