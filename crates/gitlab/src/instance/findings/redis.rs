//! Redis: managed by OT-CONTAINER-KIT's operator, provided, or configured in the chart's values.

use super::super::observe::Seen;
use super::super::target::Wanted;
use super::{Finding, Obstacle, named};
use crate::backends::wish::Asking;
use crate::backends::{Readiness, brought, redis};
use crate::login::RedisLogin;

/// The login to Redis.
pub(super) fn find(wanted: &Wanted, seen: &Seen, asking: &Asking<'_>) -> Finding<Option<RedisLogin>> {
    let spec = &wanted.spec.redis;
    if spec.managed {
        return managed(wanted, seen, asking).map(Some);
    }
    let Some(name) = &spec.credentials_secret else {
        return Ok(None);
    };
    let secret = named(&seen.secrets, name, "RedisSecretMissing", "redis")?;
    brought::redis(secret)
        .map(Some)
        .map_err(|error| Obstacle::failed("RedisSecretIncomplete", error.to_string()))
}

/// The custom resources have no status: readiness comes from their `StatefulSets`.
fn managed(wanted: &Wanted, seen: &Seen, asking: &Asking<'_>) -> Finding<RedisLogin> {
    let wish = asking.redis();
    let kinds = redis::kinds(wish.topology);
    if kinds.iter().any(|kind| seen.backend(kind).served.is_none()) {
        return Err(Obstacle::operator_missing("RedisOperatorMissing", "redis", kinds));
    }
    let auth = redis::auth_name(&wanted.name);
    let is_theirs = kinds.iter().any(|kind| seen.backend(kind).is_somebody_elses());
    if is_theirs && !seen.secrets.contains_key(&auth) {
        let words = format!(
            "Redis {} was not made here: create Secret {auth} with its password under the key password",
            redis::name(&wanted.name)
        );
        return Err(Obstacle::pending("RedisSecretMissing", words));
    }
    let sets = redis::stateful_sets(&wanted.name, wish.topology);
    let mut readiness = Readiness::Ready;
    for name in &sets {
        readiness = readiness.and(|| redis::readiness(name, seen.stateful_sets.get(name)));
    }
    match readiness {
        Readiness::Ready => Ok(redis::login(&wish)),
        Readiness::NotYet(why) => Err(Obstacle::provisioning("RedisProvisioning", why)),
    }
}
