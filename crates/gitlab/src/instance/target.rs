//! What a `GitlabInstance` requests, validated.

use stanchion_api::gitlab::{Edition, GitlabInstanceSpec, ProfileDefaults};

use crate::backends::request::BackendRequest;
use crate::backends::{percona, redis};
use crate::versions::Version;

/// A valid instance.
pub struct Wanted {
    pub name: String,
    pub namespace: String,
    pub spec: GitlabInstanceSpec,
    /// The derived Secrets in the status, of this operator or a predecessor.
    pub secrets: Vec<String>,
    /// The last version in the status.
    pub installed: Option<Version>,
    /// Whether GitLab has run, also if another operator installed it.
    pub has_run: bool,
}

impl Wanted {
    /// Adds the profile, which configures the backends, too.
    pub fn requests<'a>(&'a self, profile: Option<&'a ProfileDefaults>) -> BackendRequest<'a> {
        BackendRequest {
            instance: &self.name,
            namespace: &self.namespace,
            spec: &self.spec,
            profile,
        }
    }

    /// The Secrets that the spec names or implies, by role: license, database, Redis, buckets, mail.
    pub(crate) fn named_secrets(&self) -> [Option<String>; 5] {
        [
            self.spec.license_secret.clone(),
            self.postgres_secret(),
            self.redis_secret(),
            self.spec.object_storage.credentials_secret.clone(),
            self.spec.smtp.credentials_secret.clone(),
        ]
    }

    /// The Secret of the database, provided or managed; `None` if only the chart's values configure it.
    pub(crate) fn postgres_secret(&self) -> Option<String> {
        let spec = &self.spec.postgres;
        let made = spec.managed.then(|| percona::secret_name(&self.name));
        spec.credentials_secret.clone().or(made)
    }

    /// The Secret of Redis, likewise.
    pub(crate) fn redis_secret(&self) -> Option<String> {
        let spec = &self.spec.redis;
        let made = spec.managed.then(|| redis::auth_name(&self.name));
        spec.credentials_secret.clone().or(made)
    }

    /// The schedule of backups; `None` without backups.
    pub(crate) fn backup_schedule<'a>(&'a self, profile: Option<&'a ProfileDefaults>) -> Option<&'a str> {
        let own = self.spec.backup_schedule.as_deref();
        own.or(profile.and_then(|profile| profile.backup_schedule.as_deref()))
    }

    /// Whether Elasticsearch is created: the Community Edition cannot use it.
    pub(crate) fn needs_elasticsearch(&self) -> bool {
        self.spec.elasticsearch.managed && self.spec.edition == Edition::Ee
    }
}

#[cfg(test)]
impl Wanted {
    /// The instance `shop` with this spec and no status, for tests to add to.
    pub(crate) fn shop(spec: serde_json::Value) -> Self {
        Self {
            name: "shop".into(),
            namespace: "gl".into(),
            spec: serde_json::from_value(spec).unwrap(),
            secrets: Vec::new(),
            installed: None,
            has_run: false,
        }
    }
}
