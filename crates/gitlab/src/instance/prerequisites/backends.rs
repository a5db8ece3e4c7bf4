//! The backends, the buckets and the mail server: how GitLab reaches each of them, or what it waits for.

use kube::core::DynamicObject;
use stanchion_api::gitlab::ElasticsearchAddress;

use super::super::observe::Current;
use super::super::target::Wanted;
use super::{Blocker, Check, named};
use crate::backends::kinds::{ELASTICSEARCH, PERCONA};
use crate::backends::request::BackendRequest;
use crate::backends::{Readiness, elasticsearch as es, external, percona, redis as redis_backend};
use crate::login::{Mail, Psql, RedisLogin};
use crate::storage::{Buckets, Parts};

/// The login to the database: managed by Percona's operator, provided, or configured in the chart's values.
pub(super) fn postgres(
    wanted: &Wanted,
    current: &Current,
    requests: &BackendRequest<'_>,
) -> Check<Option<Psql>> {
    let spec = &wanted.spec.postgres;
    if spec.managed {
        return managed_postgres(wanted, current, requests).map(Some);
    }
    let Some(name) = &spec.credentials_secret else {
        return Ok(None);
    };
    let secret = named(&current.secrets, name, "PostgresSecretMissing", "postgres")?;
    external::psql(secret)
        .map(Some)
        .map_err(|error| Blocker::failed("PostgresSecretIncomplete", error.to_string()))
}

fn managed_postgres(wanted: &Wanted, current: &Current, requests: &BackendRequest<'_>) -> Check<Psql> {
    let found = current.backends.of(&PERCONA);
    let Some(served) = &found.served else {
        return Err(Blocker::operator_missing(
            "PostgresOperatorMissing",
            "postgres",
            &[&PERCONA],
        ));
    };
    let waits = |why: String| Blocker::provisioning("PostgresProvisioning", why);
    let name = percona::name(&wanted.name);
    // An object that this reconcile creates is not ready yet.
    let cluster = found
        .object
        .clone()
        .unwrap_or_else(|| DynamicObject::new(&name, &served.resource));
    if let Readiness::NotYet(why) = percona::readiness(&cluster) {
        return Err(waits(why));
    }
    let secret = percona::secret_name(&wanted.name);
    let secret = current.secrets.get(&secret);
    let secret = secret.ok_or_else(|| {
        waits(format!(
            "PerconaPGCluster {name} is ready, and its Secret {} is not there yet",
            percona::secret_name(&wanted.name)
        ))
    })?;
    // Use the actual state of the cluster, not the requested one, which may be ahead.
    let pooled = cluster.data.pointer("/spec/proxy/pgBouncer").is_some() && requests.postgres(0).pgbouncer;
    percona::psql(secret, pooled).map_err(|error| waits(error.to_string()))
}

/// The login to Redis: managed by OT-CONTAINER-KIT's operator, provided, or configured in the chart's values.
pub(super) fn redis(
    wanted: &Wanted,
    current: &Current,
    requests: &BackendRequest<'_>,
) -> Check<Option<RedisLogin>> {
    let spec = &wanted.spec.redis;
    if spec.managed {
        return managed_redis(wanted, current, requests).map(Some);
    }
    let Some(name) = &spec.credentials_secret else {
        return Ok(None);
    };
    let secret = named(&current.secrets, name, "RedisSecretMissing", "redis")?;
    external::redis(secret)
        .map(Some)
        .map_err(|error| Blocker::failed("RedisSecretIncomplete", error.to_string()))
}

/// The custom resources have no status: readiness comes from their `StatefulSets`.
fn managed_redis(wanted: &Wanted, current: &Current, requests: &BackendRequest<'_>) -> Check<RedisLogin> {
    let request = requests.redis();
    let kinds = redis_backend::kinds(request.topology);
    if kinds
        .iter()
        .any(|kind| current.backends.of(kind).served.is_none())
    {
        return Err(Blocker::operator_missing("RedisOperatorMissing", "redis", kinds));
    }
    let auth = redis_backend::auth_name(&wanted.name);
    let is_theirs = kinds
        .iter()
        .any(|kind| current.backends.of(kind).is_somebody_elses());
    if is_theirs && !current.secrets.contains_key(&auth) {
        let words = format!(
            "Redis {} was not made here: create Secret {auth} with its password under the key password",
            redis_backend::name(&wanted.name)
        );
        return Err(Blocker::pending("RedisSecretMissing", words));
    }
    let sets = redis_backend::stateful_sets(&wanted.name, request.topology);
    let mut readiness = Readiness::Ready;
    for name in &sets {
        readiness =
            readiness.and(|| redis_backend::readiness(name, current.backends.stateful_sets.get(name)));
    }
    match readiness {
        Readiness::Ready => Ok(redis_backend::login(&request)),
        Readiness::NotYet(why) => Err(Blocker::provisioning("RedisProvisioning", why)),
    }
}

/// Elasticsearch, which only the Enterprise Edition can use.
pub(super) fn elasticsearch(wanted: &Wanted, current: &Current) -> Check<Option<ElasticsearchAddress>> {
    if !wanted.needs_elasticsearch() {
        return Ok(None);
    }
    let found = current.backends.of(&ELASTICSEARCH);
    let Some(served) = &found.served else {
        return Err(Blocker::operator_missing(
            "ElasticsearchOperatorMissing",
            "elasticsearch",
            &[&ELASTICSEARCH],
        ));
    };
    let made = || DynamicObject::new(&es::name(&wanted.name), &served.resource);
    let readiness = es::readiness(&found.object.clone().unwrap_or_else(made));
    match readiness {
        Readiness::Ready => Ok(Some(es::address(&wanted.name, &wanted.namespace))),
        Readiness::NotYet(why) => Err(Blocker::provisioning("ElasticsearchProvisioning", why)),
    }
}

/// The buckets.
pub(super) fn storage(wanted: &Wanted, current: &Current) -> Check<Option<Buckets>> {
    let Some(name) = &wanted.spec.object_storage.credentials_secret else {
        return Ok(None);
    };
    let secret = named(&current.secrets, name, "S3SecretMissing", "objectStorage")?;
    let data = secret.data.clone().unwrap_or_default();
    Buckets::read(&data, Parts::of(&wanted.spec.domains))
        .map(Some)
        .map_err(|error| {
            Blocker::failed(
                "S3BucketsIncomplete",
                format!("objectStorage: Secret {name}: {error}"),
            )
        })
}

/// The mail server.
pub(super) fn mail(wanted: &Wanted, current: &Current) -> Check<Option<Mail>> {
    let Some(name) = &wanted.spec.smtp.credentials_secret else {
        return Ok(None);
    };
    let secret = named(&current.secrets, name, "SmtpSecretMissing", "smtp")?;
    let mail = external::mail(secret);
    mail.map(Some)
        .map_err(|error| Blocker::failed("SmtpSecretIncomplete", error.to_string()))
}
