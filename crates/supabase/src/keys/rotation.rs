//! New keys in the place of old ones, with a time in which both are good.

use jiff::Timestamp;
use secrecy::ExposeSecret as _;

use super::names as key;
use super::signing::SigningKey;
use super::{Keys, Request};

/// What is replaced, and where the old value goes.
const REPLACED: &[(&str, &str)] = &[
    (key::JWT_SECRET, key::PREVIOUS_SECRET),
    (key::ANON, key::PREVIOUS_ANON),
    (key::SERVICE, key::PREVIOUS_SERVICE),
    (key::PUBLISHABLE, key::PREVIOUS_PUBLISHABLE),
    (key::SECRET, key::PREVIOUS_SECRET_KEY),
];

/// Ends the time of the old keys.
pub(super) fn expire(keys: &mut Keys, now: Timestamp) {
    if keys.time(key::PREVIOUS_UNTIL).is_some_and(|until| until <= now) {
        for (_, previous) in REPLACED {
            keys.take(previous);
        }
        keys.take(key::PREVIOUS_PUBLIC);
        keys.take(key::PREVIOUS_UNTIL);
    }
}

/// Puts the keys aside if somebody asked for new ones, or brought another secret. The request is remembered beside
/// them, so that it is acted on once, whenever the process is killed.
pub(super) fn replace_if_asked(keys: &mut Keys, request: &Request<'_>, now: Timestamp) {
    let done = keys
        .get(key::ROTATION_REQUEST)
        .map(|value| value.expose_secret().to_owned());
    let asked = request.rotate.filter(|asked| done.as_deref() != Some(asked));
    if let Some(asked) = asked {
        keys.set(key::ROTATION_REQUEST, asked.to_owned());
    }
    let exchanged = match (&request.own_secret, keys.get(key::JWT_SECRET)) {
        (Some(own), Some(known)) => own.expose_secret() != known.expose_secret(),
        _ => false,
    };
    // A request that stands on an object when its keys are first made is fulfilled by making them.
    let first = keys.get(key::JWT_SECRET).is_none();
    if first || !(asked.is_some() || exchanged) {
        keys.add(key::ROTATED_AT, || now.to_string().into());
        return;
    }
    if let Some(pair) = keys
        .take(key::SIGNING)
        .and_then(|pair| SigningKey::parse(pair.expose_secret()))
    {
        keys.set(key::PREVIOUS_PUBLIC, pair.public().to_string());
    }
    for (current, previous) in REPLACED {
        // A secret that the user brings stays until the user exchanges it.
        if *current == key::JWT_SECRET && request.own_secret.is_some() && !exchanged {
            continue;
        }
        if let Some(value) = keys.take(current) {
            keys.set(previous, value);
        }
    }
    let until = now.saturating_add(request.grace).unwrap_or(Timestamp::MAX);
    keys.set(key::PREVIOUS_UNTIL, until.to_string());
    keys.set(key::ROTATED_AT, now.to_string());
}
