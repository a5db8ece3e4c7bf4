//! What the chart is told.
//!
//! | layer | says |
//! |---|---|
//! | `bundled` | what the chart brings along and a cluster has already: off, unless a layer above wants it |
//! | the profile | what the instances of a kind share |
//! | the version map | what the chart of one version needs |
//! | the subjects below | what the spec asks for |
//! | `spec.helm.values` | whatever the spec has no field for; it wins |
//!
//! The chart changes from version to version, and refuses values that it no longer knows, or installs a database of its
//! own where it misses one that it still knew. Everything that depends on the version asks [`ChartVersion`].
//!
//! No secret is in the values: everybody who may read a `HelmRelease` may read them.

mod backups;
mod bundled;
mod chart;
mod checksums;
mod edition;
mod hosts;
mod mail;
mod merge;
mod named;
mod placement;
mod psql;
mod redis;
mod storage;

use serde_json::Value;
use stanchion_api::gitlab::{GitlabInstanceSpec, ProfileDefaults, Values};

use crate::login::{Mail, Psql, RedisLogin};
use crate::storage::Buckets;

pub use chart::ChartVersion;
pub use checksums::Checksums;
pub use merge::merge;
use merge::{lay, tidy};
pub use named::{names_object_storage, names_psql, names_redis, psql_host};

/// Everything that the values follow from.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The instance's name.
    pub name: &'a str,
    /// Its spec.
    pub spec: &'a GitlabInstanceSpec,
    /// The defaults of its profile; the empty ones without a profile.
    pub profile: &'a ProfileDefaults,
    /// What the version map tells the chart of this version.
    pub step_values: &'a Values,
    /// The chart's version.
    pub chart: &'a ChartVersion,
    /// The database, unless `spec.helm.values` says where it is.
    pub psql: Option<&'a Psql>,
    /// Redis, unless `spec.helm.values` says where it is.
    pub redis: Option<&'a RedisLogin>,
    /// The buckets. Without them a chart that has a `MinIO` of its own uses it.
    pub buckets: Option<&'a Buckets>,
    /// The mail server.
    pub mail: Option<&'a Mail>,
    /// What the pods' Secrets contain.
    pub checksums: &'a Checksums,
}

/// What the spec asks for, a subject each. None says what another does, so their order does not matter.
const SUBJECTS: [fn(&Input<'_>) -> Value; 9] = [
    edition::values,
    hosts::values,
    psql::values,
    redis::values,
    storage::values,
    mail::values,
    backups::values,
    placement::values,
    checksums::values,
];

/// The values for an instance.
pub fn compose(input: &Input<'_>) -> Values {
    let mut values = Values::new();
    lay(&mut values, bundled::PARTS.map(|part| part(input)));
    merge(&mut values, &input.profile.values);
    merge(&mut values, input.step_values);
    lay(&mut values, SUBJECTS.map(|subject| subject(input)));
    merge(&mut values, &input.spec.helm.values);
    tidy(&mut values);
    values
}

#[cfg(test)]
mod tests;
