//! The backends, the buckets and the mail server: how GitLab reaches each of them, or what it waits for.

use k8s_openapi::api::core::v1::Secret;
use kube::core::DynamicObject;
use stanchion_api::gitlab::{ElasticsearchAddress, ProfileDefaults, Values};

use super::super::observe::Current;
use super::super::target::Wanted;
use super::{Blocker, Check, named};
use crate::backends::kinds::{ELASTICSEARCH, PERCONA, REDIS_SENTINEL};
use crate::backends::request::BackendRequest;
use crate::backends::{Readiness, elasticsearch as es, external, percona, redis as redis_backend};
use crate::login::{Mail, Psql, RedisLogin};
use crate::secret_keys::Unusable;
use crate::storage::{Buckets, Parts};
use crate::values;

/// A Secret that the user provides: the field that names it, and the reasons if it is missing or incomplete.
struct Provided(&'static str, &'static str, &'static str);

const POSTGRES: Provided = Provided("postgres", "PostgresSecretMissing", "PostgresSecretIncomplete");
const REDIS: Provided = Provided("redis", "RedisSecretMissing", "RedisSecretIncomplete");
const STORAGE: Provided = Provided("objectStorage", "S3SecretMissing", "S3BucketsIncomplete");
const SMTP: Provided = Provided("smtp", "SmtpSecretMissing", "SmtpSecretIncomplete");

impl Provided {
    fn read<T>(
        &self,
        current: &Current,
        name: Option<&String>,
        read: impl FnOnce(&Secret) -> Result<T, Unusable>,
    ) -> Check<Option<T>> {
        let Self(field, missing, incomplete) = self;
        let Some(name) = name else {
            return Ok(None);
        };
        let read = read(named(&current.secrets, name, missing, field)?);
        read.map(Some)
            .map_err(|error| Blocker::failed(incomplete, format!("{field}: {error}")))
    }
}

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
    POSTGRES.read(current, spec.credentials_secret.as_ref(), external::psql)
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
            "PerconaPGCluster {name} is ready, and its Secret {} does not exist yet",
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
    REDIS.read(current, spec.credentials_secret.as_ref(), external::redis)
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
            "Redis {} was not created by the operator: create Secret {auth} with its password under the key password",
            redis_backend::name(&wanted.name)
        );
        return Err(Blocker::pending("RedisSecretMissing", words));
    }
    if let Some(secret) = current.secrets.get(&auth) {
        redis_backend::check_password(secret)
            .map_err(|error| Blocker::failed("RedisSecretIncomplete", format!("redis: {error}")))?;
    }
    let sets = redis_backend::stateful_sets(&wanted.name, request.topology);
    let mut readiness = Readiness::Ready;
    for name in &sets {
        readiness =
            readiness.and(|| redis_backend::readiness(name, current.backends.stateful_sets.get(name)));
    }
    match readiness {
        Readiness::Ready => {
            let sentinels = current.backends.of(&REDIS_SENTINEL).object.as_ref();
            Ok(redis_backend::login(&request, sentinels))
        }
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

pub(super) fn storage(
    wanted: &Wanted,
    current: &Current,
    profile: Option<&ProfileDefaults>,
    written: &Values,
) -> Check<Option<Buckets>> {
    let name = wanted.spec.object_storage.credentials_secret.as_ref();
    let backups = wanted.backup_schedule(profile).is_some() || values::schedule_backups(written);
    STORAGE.read(current, name, |secret| {
        Buckets::read(secret, Parts::of(&wanted.spec.domains, backups))
    })
}

/// The mail server.
pub(super) fn mail(wanted: &Wanted, current: &Current) -> Check<Option<Mail>> {
    SMTP.read(
        current,
        wanted.spec.smtp.credentials_secret.as_ref(),
        external::mail,
    )
}
