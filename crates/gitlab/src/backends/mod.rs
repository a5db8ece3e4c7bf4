//! Backends that other operators run for an instance, and GitLab's logins to them: rendering and reading, no I/O.
//!
//! | module | subject |
//! |---|---|
//! | [`request`] | the requested backends: the spec overrides the profile, which overrides the defaults |
//! | [`kinds`] | the custom resources of the other operators |
//! | [`percona`] | PostgreSQL: a `PerconaPGCluster` |
//! | [`redis`] | Redis: a `Redis`, or a `RedisReplication` with a `RedisSentinel` |
//! | [`elasticsearch`] | Elasticsearch: an `Elasticsearch` |
//! | [`external`] | what users provide instead, and the mail server: the users' Secrets |
//!
//! The instance owns none of these objects: databases outlive it.

#![allow(
    clippy::indexing_slicing,
    reason = "JSON is indexed by key, and only where it was made an object by the line before"
)]

pub mod elasticsearch;
pub(crate) mod external;
pub mod kinds;
pub mod percona;
mod pods;
pub mod redis;
pub mod request;

use kube::core::DynamicObject;
use serde_json::Value;

/// Default name of GitLab's database.
pub(crate) const DATABASE: &str = "gitlabhq_production";
/// Default name of GitLab's role.
pub(crate) const USERNAME: &str = "gitlab";

/// Whether a backend can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It can.
    Ready,
    /// Not yet; the message says what is missing.
    NotYet(String),
}

impl Readiness {
    /// Ready only if both are; the first that is not gives the message.
    #[must_use]
    pub fn and(self, other: impl FnOnce() -> Self) -> Self {
        match self {
            Self::Ready => other(),
            Self::NotYet(_) => self,
        }
    }

    /// Whether it can be used.
    pub fn is_ready(&self) -> bool {
        *self == Self::Ready
    }
}

/// Whether the status is for the current generation. A status without a generation counts as current.
fn observed(object: &DynamicObject) -> bool {
    let observed = object
        .data
        .pointer("/status/observedGeneration")
        .and_then(Value::as_i64);
    observed.is_none() || observed >= object.metadata.generation
}

/// A string field of an object, by its path.
fn text<'a>(object: &'a DynamicObject, path: &str) -> Option<&'a str> {
    object.data.pointer(path).and_then(Value::as_str)
}
