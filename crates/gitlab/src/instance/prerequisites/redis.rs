//! Redis: managed by OT-CONTAINER-KIT's operator, provided, or configured in the chart's values.

use super::super::observe::Current;
use super::super::target::Wanted;
use super::{Blocker, Check, named};
use crate::backends::request::BackendRequest;
use crate::backends::{Readiness, external, redis};
use crate::login::RedisLogin;

/// The login to Redis.
pub(super) fn find(
    wanted: &Wanted,
    current: &Current,
    requests: &BackendRequest<'_>,
) -> Check<Option<RedisLogin>> {
    let spec = &wanted.spec.redis;
    if spec.managed {
        return managed(wanted, current, requests).map(Some);
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
fn managed(wanted: &Wanted, current: &Current, requests: &BackendRequest<'_>) -> Check<RedisLogin> {
    let request = requests.redis();
    let kinds = redis::kinds(request.topology);
    if kinds.iter().any(|kind| current.backend(kind).served.is_none()) {
        return Err(Blocker::operator_missing("RedisOperatorMissing", "redis", kinds));
    }
    let auth = redis::auth_name(&wanted.name);
    let is_theirs = kinds.iter().any(|kind| current.backend(kind).is_somebody_elses());
    if is_theirs && !current.secrets.contains_key(&auth) {
        let words = format!(
            "Redis {} was not made here: create Secret {auth} with its password under the key password",
            redis::name(&wanted.name)
        );
        return Err(Blocker::pending("RedisSecretMissing", words));
    }
    let sets = redis::stateful_sets(&wanted.name, request.topology);
    let mut readiness = Readiness::Ready;
    for name in &sets {
        readiness = readiness.and(|| redis::readiness(name, current.stateful_sets.get(name)));
    }
    match readiness {
        Readiness::Ready => Ok(redis::login(&request)),
        Readiness::NotYet(why) => Err(Blocker::provisioning("RedisProvisioning", why)),
    }
}
