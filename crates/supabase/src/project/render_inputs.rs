//! The inputs of the children, besides the spec. It contains no value of a Secret, so it may be cached: a change of the
//! spec that takes nothing else from Secrets is applied without reading one.

use secrecy::ExposeSecret as _;
use stanchion_api::supabase::KeysStatus;

use super::secrets::Read;
use super::target::Wanted;
use crate::components::{Address, Bucket, ConfigMaps, Project, SecretDigests, SecretHasher};
use crate::database::Names;
use crate::keys::{Keys, names as key};

/// The inputs of the children, besides the spec.
pub struct RenderInputs {
    database: Address,
    bucket: Bucket,
    /// Digests of the Secrets that pods use.
    secrets: SecretDigests,
    /// Values of the user's `ConfigMaps`.
    config: ConfigMaps,
    pub keys: KeysStatus,
}

impl RenderInputs {
    /// Built from what was read, and the complete keys.
    pub fn new(wanted: &Wanted, read: &Read, keys: &Keys) -> Self {
        let mut hasher = SecretHasher::new(keys.get(key::MARK));
        // An empty value counts as missing.
        let own = keys.iter().filter(|(name, _)| keys.get(name).is_some());
        hasher.add(&wanted.key_secret(), own);
        for (name, values) in &read.others {
            hasher.add(name, values.iter().map(|(key, value)| (key.as_str(), value)));
        }
        Self {
            database: read.address.clone(),
            bucket: read.bucket.clone(),
            secrets: hasher.finish(),
            config: read.config.clone(),
            keys: KeysStatus {
                rotated_at: keys.time(key::ROTATED_AT),
                previous_until: keys.time(key::PREVIOUS_UNTIL),
                published_at: keys.time(key::PUBLISHED_AT),
                // The value of an annotation, which is not secret, although it is stored in the Secret.
                rotated_at_request: keys
                    .get(key::ROTATION_REQUEST)
                    .map(|request| request.expose_secret().to_owned()),
            },
        }
    }

    /// The input of the components.
    pub fn project<'a>(&'a self, wanted: &'a Wanted, logins: &'a Names) -> Project<'a> {
        Project {
            name: &wanted.name,
            spec: &wanted.spec,
            database: &self.database,
            logins,
            bucket: &self.bucket,
            secrets: &self.secrets,
            config: &self.config,
        }
    }
}
