//! What the children are made from, beside the spec. It holds no value of a Secret, so it may be kept: a change of the
//! spec that takes nothing else from Secrets is carried out without reading one.

use secrecy::ExposeSecret as _;
use stanchion_api::supabase::KeysStatus;

use super::secrets::Read;
use super::target::Wanted;
use crate::components::{Address, Bucket, ConfigMaps, Project, Sealer, Seals};
use crate::database::Names;
use crate::keys::{Keys, names as key};

/// What the children are made from, beside the spec.
pub struct Standing {
    /// Where the database is.
    database: Address,
    /// Where the files are.
    bucket: Bucket,
    /// The Secrets that pods take values from.
    secrets: Seals,
    /// What the user's `ConfigMaps` hold.
    config: ConfigMaps,
    /// The keys' life.
    pub keys: KeysStatus,
}

impl Standing {
    /// From what was read, and the keys complete.
    pub fn new(wanted: &Wanted, read: &Read, keys: &Keys) -> Self {
        let mut sealer = Sealer::new(keys.get(key::MARK));
        // An empty one is as good as none.
        let own = keys.iter().filter(|(name, _)| keys.get(name).is_some());
        sealer.add(&wanted.key_secret(), own);
        for (name, values) in &read.others {
            sealer.add(name, values.iter().map(|(key, value)| (key.as_str(), value)));
        }
        Self {
            database: read.address.clone(),
            bucket: read.bucket.clone(),
            secrets: sealer.finish(),
            config: read.config.clone(),
            keys: KeysStatus {
                rotated_at: keys.time(key::ROTATED_AT),
                previous_until: keys.time(key::PREVIOUS_UNTIL),
                published_at: keys.time(key::PUBLISHED_AT),
                // The value of an annotation: it is no secret, although it is kept beside them.
                rotated_at_request: keys
                    .get(key::ROTATION_REQUEST)
                    .map(|request| request.expose_secret().to_owned()),
            },
        }
    }

    /// The project as its components see it.
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
