//! Fingerprints that show changes of Secrets without revealing them, and generated passwords.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use rand::SeedableRng as _;
use rand::distr::{Alphanumeric, SampleString as _};
use rand::rngs::StdRng;
use secrecy::SecretString;
use stanchion_kernel::Problem;
use stanchion_kernel::redact::FingerprintKey;

use super::target::Wanted;
use crate::values::Checksums;

/// Length of a generated password of letters and digits.
const LENGTH: usize = 32;

/// Generates a password.
pub fn password() -> Result<SecretString, Problem> {
    let mut random = StdRng::try_from_os_rng().map_err(|error| {
        Problem::transient("NoRandomness", "the system gives no random numbers").caused_by(error)
    })?;
    Ok(Alphanumeric.sample_string(&mut random, LENGTH).into())
}

/// The fingerprints of the Secrets that each of GitLab's parts reads. They are keyed, so they reveal nothing.
pub fn checksums(
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
    use secrecy::ExposeSecret as _;
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
        let wanted = Wanted {
            name: "shop".into(),
            namespace: "gl".into(),
            installed: None,
            secrets: Vec::new(),
            spec: serde_json::from_value(json!({
                "domains": { "gitlab": "git.example.com" },
                "postgres": { "credentialsSecret": "pg" },
                "objectStorage": { "credentialsSecret": "s3" },
            }))
            .unwrap(),
        };
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

    #[test]
    fn a_password_is_long_and_new() {
        let (one, other) = (password().unwrap(), password().unwrap());
        assert_eq!(one.expose_secret().len(), LENGTH);
        assert_ne!(one.expose_secret(), other.expose_secret());
    }
}
