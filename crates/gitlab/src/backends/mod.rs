//! What other operators run for an instance, and how GitLab logs in to it: rendering and reading, no I/O.
//!
//! | module | subject |
//! |---|---|
//! | [`wish`] | what is asked for: the spec over the profile over what is built in |
//! | [`kinds`] | the custom resources of the other operators |
//! | [`percona`] | PostgreSQL: a `PerconaPGCluster` |
//! | [`redis`] | Redis: a `Redis`, or a `RedisReplication` with a `RedisSentinel` |
//! | [`elasticsearch`] | Elasticsearch: an `Elasticsearch` |
//! | [`brought`] | what is brought along instead, and the mail server: the user's Secrets |
//! | [`keys`] | reading a Secret so that everything that is wrong with it is said at once |
//!
//! Nothing here is owned by the instance: databases outlive it.

#![allow(
    clippy::indexing_slicing,
    reason = "JSON is indexed by key, and only where it was made an object by the line before"
)]

pub mod brought;
pub mod elasticsearch;
pub mod keys;
pub mod kinds;
pub mod percona;
mod pods;
pub mod redis;
pub mod wish;

use kube::core::DynamicObject;
use serde_json::Value;

/// GitLab's database, unless somebody brings one of another name.
pub const DATABASE: &str = "gitlabhq_production";
/// GitLab's role, unless somebody brings one of another name.
pub const USERNAME: &str = "gitlab";

/// Whether something can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It can.
    Ready,
    /// Not yet; the sentence says what is missing.
    NotYet(String),
}

impl Readiness {
    /// Ready only if both are; the first that is not says why.
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

/// Whether what a controller says in the status is about the spec as it is now. One that does not say is believed.
fn observed(object: &DynamicObject) -> bool {
    let observed = object
        .data
        .pointer("/status/observedGeneration")
        .and_then(Value::as_i64);
    observed.is_none() || observed >= object.metadata.generation
}

/// A text of an object, by its path.
fn text<'a>(object: &'a DynamicObject, path: &str) -> Option<&'a str> {
    object.data.pointer(path).and_then(Value::as_str)
}
