//! The key of the [fingerprints](super::fingerprint), stored in a Secret in the operator's namespace.

use std::collections::BTreeMap;

use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api,
    api::{ObjectMeta, PostParams},
};
use secrecy::ExposeSecret as _;
use thiserror::Error;

use super::{FingerprintKey, KeyLength};
use crate::rbac::Rule;

const DATA_KEY: &str = "key";

/// Why there is no key.
#[derive(Debug, Error)]
pub enum InstallKeyError {
    /// The API server refused, or did not answer.
    #[error("cannot {verb} the Secret {name} with the key of the fingerprints: {source}")]
    Api {
        /// The attempted action.
        verb: &'static str,
        /// The Secret.
        name: String,
        /// The error.
        source: Box<kube::Error>,
    },
    /// The Secret exists but does not contain a valid key.
    #[error(
        "the Secret {name} contains no valid fingerprint key ({why}); delete it, and the operator creates a new one"
    )]
    Unusable {
        /// The Secret.
        name: String,
        /// The problem.
        why: String,
    },
}

/// The RBAC rules of [`install_key`] in the operator's own namespace.
pub fn install_key_rules() -> Vec<Rule> {
    vec![Rule::new("", &["secrets"], &["get", "create"])]
}

/// Reads the key from the Secret of this name, or creates both. Two operators that start at once agree on one key: the
/// second create fails, and that operator reads the first one's key.
pub async fn install_key(secrets: &Api<Secret>, name: &str) -> Result<FingerprintKey, InstallKeyError> {
    let failed = |verb| {
        let name = name.to_owned();
        move |source| InstallKeyError::Api {
            verb,
            name,
            source: Box::new(source),
        }
    };
    if let Some(secret) = secrets.get_opt(name).await.map_err(failed("read"))? {
        return read(secret, name);
    }
    let key = FingerprintKey::generate();
    match secrets.create(&PostParams::default(), &keep(&key, name)).await {
        Ok(_) => Ok(key),
        Err(kube::Error::Api(status)) if status.code == 409 => {
            read(secrets.get(name).await.map_err(failed("read"))?, name)
        }
        Err(error) => Err(failed("create")(error)),
    }
}

fn keep(key: &FingerprintKey, name: &str) -> Secret {
    Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([(
            DATA_KEY.to_owned(),
            ByteString(key.to_bytes().expose_secret().to_vec()),
        )])),
        immutable: Some(true),
        ..Secret::default()
    }
}

fn read(secret: Secret, name: &str) -> Result<FingerprintKey, InstallKeyError> {
    let unusable = |why: String| InstallKeyError::Unusable {
        name: name.to_owned(),
        why,
    };
    let data = secret.data.unwrap_or_default();
    let ByteString(bytes) = data
        .get(DATA_KEY)
        .ok_or_else(|| unusable(format!("it has no \"{DATA_KEY}\"")))?;
    FingerprintKey::from_bytes(bytes).map_err(|length: KeyLength| unusable(length.to_string()))
}
