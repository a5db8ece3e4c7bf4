//! Composes the chart's values.
//!
//! | layer | contains |
//! |---|---|
//! | `backends::BUNDLED` | switches off what the chart bundles and the cluster provides, unless a later layer enables it |
//! | the profile | values that instances share |
//! | the version map | values that the chart of one version needs |
//! | the subjects below | the values for the fields of the spec |
//! | `spec.helm.values` | anything that the spec has no field for; overrides the rest |
//!
//! The chart changes between versions: it refuses values that it no longer knows, or installs its own database if a
//! value is missing. Everything that depends on the version uses [`ChartVersion`].
//!
//! The values contain no secret: everybody who may read a `HelmRelease` may read them.

mod backends;
mod chart;
mod checksums;
mod merge;
mod named;
mod spec;

use serde_json::Value;
use stanchion_api::gitlab::{GitlabInstanceSpec, ProfileDefaults, Values};

use crate::login::{Mail, Psql, RedisLogin};
use crate::storage::Buckets;

pub(crate) use chart::ChartVersion;
pub(crate) use checksums::Checksums;
pub(crate) use merge::merge;
use merge::{merge_all, tidy};
pub(crate) use named::{names_object_storage, names_redis, psql_host, schedule_backups, written};

/// The inputs of the values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input<'a> {
    /// The instance's name.
    pub name: &'a str,
    pub spec: &'a GitlabInstanceSpec,
    /// The defaults of its profile; empty without a profile.
    pub profile: &'a ProfileDefaults,
    /// The values of the version map for this version.
    pub step_values: &'a Values,
    /// The values of the profile, the version map and the spec, merged.
    pub written: &'a Values,
    pub chart: &'a ChartVersion,
    /// The database, unless `spec.helm.values` configures it.
    pub psql: Option<&'a Psql>,
    /// Redis, unless `spec.helm.values` configures it.
    pub redis: Option<&'a RedisLogin>,
    /// The buckets. Without them a chart with a bundled `MinIO` uses that.
    pub buckets: Option<&'a Buckets>,
    /// The mail server.
    pub mail: Option<&'a Mail>,
    /// The fingerprints of the pods' Secrets.
    pub checksums: &'a Checksums,
}

/// The values of the spec by subject. Subjects do not overlap, so their order does not matter.
const SUBJECTS: [fn(&Input<'_>) -> Value; 9] = [
    spec::edition,
    spec::hosts,
    backends::psql,
    backends::redis,
    backends::buckets,
    spec::mail,
    spec::backups,
    spec::placement,
    checksums::values,
];

/// The values for an instance.
pub(crate) fn compose(input: &Input<'_>) -> Values {
    let mut values = Values::new();
    merge_all(&mut values, backends::BUNDLED.map(|part| part(input)));
    merge(&mut values, &input.profile.values);
    merge(&mut values, input.step_values);
    merge_all(&mut values, SUBJECTS.map(|subject| subject(input)));
    merge(&mut values, &input.spec.helm.values);
    tidy(&mut values);
    values
}

#[cfg(test)]
mod tests;
