//! Conditions of the instance's dependencies and of Flux.

use stanchion_api::gitlab::{Edition, condition};
use stanchion_kernel::condition::{Conditions, Truth};
use stanchion_kernel::external::ExternalKind;

use super::super::observe::Current;
use super::super::prerequisites::{Check, ObjectStore, Prerequisites};
use super::super::target::Wanted;
use crate::backends::kinds::{ELASTICSEARCH, PERCONA, REDIS, REDIS_REPLICATION};
use crate::flux::{Progress, Release};

/// The message about what only values configure.
const IN_VALUES: &str = "the chart's values say where it is";

/// Conditions of the dependencies.
///
/// While the version or the profile is unknown, it is also unknown what to create. What exists was observed nevertheless.
pub(super) fn backends(
    conditions: &mut Conditions,
    wanted: &Wanted,
    current: &Current,
    prerequisites: &Prerequisites,
) {
    let spec = &wanted.spec;
    let is_there = |kinds: &[&'static ExternalKind]| {
        let mut kinds = kinds.iter();
        kinds.any(|kind| current.backends.of(kind).object.is_some())
    };
    let how = |managed: bool, secret: bool| match (managed, secret) {
        (true, _) => "Provisioned",
        (_, true) => "Provided",
        _ => "InValues",
    };
    let known = prerequisites.for_backends().is_ok();
    if known || !spec.postgres.managed || is_there(&[&PERCONA]) {
        let how = how(spec.postgres.managed, spec.postgres.credentials_secret.is_some());
        state(
            conditions,
            condition::POSTGRES_READY,
            &prerequisites.postgres,
            how,
        );
    }
    if known || !spec.redis.managed || is_there(&[&REDIS, &REDIS_REPLICATION]) {
        let how = how(spec.redis.managed, spec.redis.credentials_secret.is_some());
        state(conditions, condition::REDIS_READY, &prerequisites.redis, how);
    }
    match (spec.elasticsearch.managed, spec.edition) {
        (false, _) => conditions.clear(condition::ELASTICSEARCH_READY),
        (true, Edition::Ce) => conditions.set(
            condition::ELASTICSEARCH_READY,
            Truth::False,
            "EnterpriseOnly",
            "only the Enterprise Edition can use Elasticsearch, so the operator creates none",
        ),
        (true, Edition::Ee) if known || is_there(&[&ELASTICSEARCH]) => {
            state(
                conditions,
                condition::ELASTICSEARCH_READY,
                &prerequisites.elasticsearch,
                "Provisioned",
            );
        }
        (true, Edition::Ee) => {}
    }
    let kind = condition::OBJECT_STORAGE_READY;
    match &prerequisites.stored {
        Ok(ObjectStore::Provided) => state(conditions, kind, &prerequisites.storage, "Provided"),
        Ok(ObjectStore::InValues) => conditions.set(kind, Truth::Unknown, "InValues", IN_VALUES),
        Ok(ObjectStore::Bundled) => conditions.set(
            kind,
            Truth::False,
            "Bundled",
            "no objectStorage.credentialsSecret: the chart's own MinIO is used, which is not for production",
        ),
        Err(blocker) => conditions.set(kind, Truth::False, blocker.reason, &blocker.message),
    }
}

fn state<T>(conditions: &mut Conditions, kind: &str, finding: &Check<Option<T>>, how: &str) {
    match finding {
        Ok(Some(_)) => conditions.set(kind, Truth::True, how, ""),
        Ok(None) => conditions.set(kind, Truth::Unknown, how, IN_VALUES),
        Err(blocker) => conditions.set(kind, Truth::False, blocker.reason, &blocker.message),
    }
}

pub(super) fn released(conditions: &mut Conditions, release: Option<&Release>) {
    let Some(release) = release else {
        conditions.clear(condition::RELEASED);
        return;
    };
    match &release.progress {
        Progress::Done => conditions.set(condition::RELEASED, Truth::True, "Released", ""),
        Progress::Working(words) => conditions.set(condition::RELEASED, Truth::Unknown, "Working", words),
        Progress::Waiting { reason, message, .. } => {
            conditions.set(condition::RELEASED, Truth::Unknown, reason, message);
        }
        Progress::Failed { reason, message, .. } => {
            conditions.set(condition::RELEASED, Truth::False, reason, message);
        }
    }
}
