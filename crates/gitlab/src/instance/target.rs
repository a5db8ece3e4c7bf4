//! What shall be there.

use stanchion_api::gitlab::{Edition, GitlabInstanceSpec, ProfileDefaults};

use crate::backends::wish::Asking;
use crate::backends::{percona, redis};
use crate::versions::Version;

/// What shall be there.
pub enum Target {
    /// This instance.
    Instance(Box<Wanted>),
    /// Nothing is touched.
    Suspended,
    /// Nothing any more.
    Leaving(Leaving),
}

/// An instance that cannot be invalid.
pub struct Wanted {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its spec.
    pub spec: GitlabInstanceSpec,
    /// The Secrets that were made for it, as far as the status knows: by this operator, or by a predecessor.
    pub secrets: Vec<String>,
    /// The last version that ran, as far as the status knows.
    pub installed: Option<Version>,
}

/// An instance that goes.
pub struct Leaving {
    /// Its name.
    pub name: String,
    /// The Secrets that were made for it.
    pub secrets: Vec<String>,
}

impl Wanted {
    /// With everything that says something about its backends.
    pub fn asking<'a>(&'a self, profile: Option<&'a ProfileDefaults>) -> Asking<'a> {
        Asking {
            instance: &self.name,
            namespace: &self.namespace,
            spec: &self.spec,
            profile,
        }
    }

    /// The Secrets that the spec names or implies, each in its place: license, database, Redis, buckets, mail.
    pub fn named_secrets(&self) -> [Option<String>; 5] {
        [
            self.spec.license_secret.clone(),
            self.postgres_secret(),
            self.redis_secret(),
            self.spec.object_storage.credentials_secret.clone(),
            self.spec.smtp.credentials_secret.clone(),
        ]
    }

    /// The Secret of the database, brought along or made for a managed one; none where only the chart's values know it.
    pub fn postgres_secret(&self) -> Option<String> {
        let spec = &self.spec.postgres;
        let made = spec.managed.then(|| percona::secret_name(&self.name));
        spec.credentials_secret.clone().or(made)
    }

    /// That of Redis, likewise.
    pub fn redis_secret(&self) -> Option<String> {
        let spec = &self.spec.redis;
        let made = spec.managed.then(|| redis::auth_name(&self.name));
        spec.credentials_secret.clone().or(made)
    }

    /// Whether an Elasticsearch is to be made: the Community Edition cannot use one.
    pub fn needs_elasticsearch(&self) -> bool {
        self.spec.elasticsearch.managed && self.spec.edition == Edition::Ee
    }
}
