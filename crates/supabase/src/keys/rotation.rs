//! Key rotation in two stages, with a period in which both keys are accepted.
//!
//! A pod that was not replaced yet has the keys that it started with. So new keys are first *published*: every
//! component accepts them, and none signs with them. Once every component has rolled out they are *used*, and the old
//! ones are accepted for the grace period. The state is in the Secret itself, beside the keys: after a crash the next
//! reconcile continues from there.

use jiff::Timestamp;
use rand::RngCore;
use secrecy::{ExposeSecret as _, SecretString};

use super::names as key;
use super::signing::SigningKey;
use super::token::{self, Role};
use super::{BrokenKey, Keys, Request, base64, opaque, uuid};

/// A replaced value: the keys of the current, the next and the previous one.
struct Replaced {
    current: &'static str,
    next: &'static str,
    previous: &'static str,
}

const fn replaced(current: &'static str, next: &'static str, previous: &'static str) -> Replaced {
    Replaced {
        current,
        next,
        previous,
    }
}

const REPLACED: &[Replaced] = &[
    replaced(key::JWT_SECRET, key::NEXT_SECRET, key::PREVIOUS_SECRET),
    replaced(key::ANON, key::NEXT_ANON, key::PREVIOUS_ANON),
    replaced(key::SERVICE, key::NEXT_SERVICE, key::PREVIOUS_SERVICE),
    replaced(key::PUBLISHABLE, key::NEXT_PUBLISHABLE, key::PREVIOUS_PUBLISHABLE),
    replaced(key::SECRET, key::NEXT_SECRET_KEY, key::PREVIOUS_SECRET_KEY),
];

/// Removes the old keys after the grace period.
pub(super) fn expire(keys: &mut Keys, now: Timestamp) {
    if keys.time(key::PREVIOUS_UNTIL).is_some_and(|until| until <= now) {
        for row in REPLACED {
            keys.take(row.previous);
        }
        keys.take(key::PREVIOUS_PUBLIC);
        keys.take(key::PREVIOUS_UNTIL);
    }
}

/// Publishes new keys if they are requested, or if the user provides another secret. The request is recorded beside
/// them, so that it is fulfilled once. A request that arrives while keys are published and not yet used is fulfilled by
/// those.
pub(super) fn publish_if_asked(
    keys: &mut Keys,
    request: &Request<'_>,
    random: &mut impl RngCore,
    now: Timestamp,
) -> Result<(), BrokenKey> {
    let done = keys
        .get(key::ROTATION_REQUEST)
        .map(|value| value.expose_secret().to_owned());
    let asked = request.rotate.filter(|asked| done.as_deref() != Some(asked));
    if let Some(asked) = asked {
        keys.set(key::ROTATION_REQUEST, asked.to_owned());
    }
    keys.add(key::ROTATED_AT, || now.to_string().into());
    // A request on an object whose keys do not exist yet is fulfilled by generating them.
    if keys.get(key::JWT_SECRET).is_none() {
        return Ok(());
    }
    let differs = |name: &str| {
        let (own, known) = (request.own_secret.as_ref(), keys.get(name));
        own.zip(known)
            .is_some_and(|(own, known)| own.expose_secret() != known.expose_secret())
    };
    let next = if keys.get(key::NEXT_SECRET).is_some() {
        key::NEXT_SECRET
    } else {
        key::JWT_SECRET
    };
    let exchanged = differs(next).then(|| request.own_secret.clone()).flatten();
    if exchanged.is_none() && (asked.is_none() || keys.is_rotating()) {
        return Ok(());
    }
    publish(keys, request, exchanged, random, now)
}

fn publish(
    keys: &mut Keys,
    request: &Request<'_>,
    exchanged: Option<SecretString>,
    random: &mut impl RngCore,
    now: Timestamp,
) -> Result<(), BrokenKey> {
    // A secret of the user stays until the user replaces it.
    let secret = match (exchanged, &request.own_secret) {
        (Some(own), _) => Some(own),
        (None, Some(_)) => None,
        (None, None) => Some(base64(random, 32)),
    };
    let signs = match secret {
        Some(secret) => {
            keys.set(key::NEXT_SECRET, secret.clone());
            secret
        }
        None => keys.get(key::JWT_SECRET).cloned().ok_or(BrokenKey)?,
    };
    if keys.get(key::NEXT_SIGNING).is_none() {
        let pair = SigningKey::generate(uuid(random), random).ok_or(BrokenKey)?;
        keys.set(key::NEXT_SIGNING, pair.private().ok_or(BrokenKey)?);
    }
    keys.set(key::NEXT_ANON, token::symmetric(&signs, Role::Anon, now));
    keys.set(key::NEXT_SERVICE, token::symmetric(&signs, Role::Service, now));
    keys.add(key::NEXT_PUBLISHABLE, || {
        opaque::generate(opaque::PUBLISHABLE, random)
    });
    keys.add(key::NEXT_SECRET_KEY, || opaque::generate(opaque::SECRET, random));
    keys.set(key::PUBLISHED_AT, now.to_string());
    Ok(())
}

/// Whether the keys of the rotation before are still accepted: the next rotation takes their place, so it waits. A
/// shorter grace period in the spec counts, so that a leaked key can be replaced at once.
fn has_grace(keys: &Keys, request: &Request<'_>, now: Timestamp) -> bool {
    let stored = keys.time(key::PREVIOUS_UNTIL);
    let requested = keys
        .time(key::ROTATED_AT)
        .and_then(|at| at.checked_add(request.grace).ok());
    stored.is_some_and(|until| requested.map_or(until, |requested| requested.min(until)) > now)
}

/// Starts to use the published keys, which every component accepts by now.
pub(super) fn use_published(keys: &mut Keys, request: &Request<'_>, now: Timestamp) {
    if !keys.is_rotating() || has_grace(keys, request, now) {
        return;
    }
    if let Some(next) = keys.take(key::NEXT_SIGNING) {
        let old = keys.take(key::SIGNING);
        if let Some(pair) = old.and_then(|pair| SigningKey::parse(pair.expose_secret())) {
            keys.set(key::PREVIOUS_PUBLIC, pair.public().to_string());
        }
        keys.set(key::SIGNING, next);
    }
    for row in REPLACED {
        let Some(next) = keys.take(row.next) else { continue };
        if let Some(value) = keys.take(row.current) {
            keys.set(row.previous, value);
        }
        keys.set(row.current, next);
    }
    keys.take(key::PUBLISHED_AT);
    let until = now.saturating_add(request.grace).unwrap_or(Timestamp::MAX);
    keys.set(key::PREVIOUS_UNTIL, until.to_string());
    keys.set(key::ROTATED_AT, now.to_string());
}
