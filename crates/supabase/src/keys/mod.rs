//! The project's keys and passwords, all in one Secret: generated once, kept, and replaced on request.
//!
//! [`complete`] is a function of the Secret's contents. Existing values stay; missing ones are added; derived values
//! are recomputed and are the same each time. So a Secret of the predecessor is adopted, and the next reconcile
//! completes an interrupted one.
//!
//! An API key that the services would not accept (the predecessor signed other bytes than they verify with) is
//! replaced, and the gateway keeps accepting the old one, so that clients keep working.

pub(crate) mod names;
pub(crate) mod opaque;
pub(crate) mod rotation;
pub mod signing;
pub mod token;

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use rand::{Rng as _, RngCore};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use crate::database::Login;
use names as key;
use signing::{Accepted, SigningKey};
use token::Role;

/// The request for keys.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    /// The signing secret, if the user provides one.
    pub own_secret: Option<SecretString>,
    /// The value of the annotation that requests new keys.
    pub rotate: Option<&'a str>,
    /// How long old keys are accepted.
    pub grace: jiff::SignedDuration,
    /// Whether every pod has the published keys, so that they can be used now.
    pub published: bool,
    /// The logins that need a database password.
    pub logins: &'a [Login],
    /// Additional values that components need.
    pub generated: &'a [&'static Generated],
}

/// A random value that a component needs.
#[derive(Debug)]
pub(crate) struct Generated {
    /// Its key in the Secret.
    pub key: &'static str,
    /// Its format.
    form: Form,
}

impl Generated {
    pub(crate) const fn hex(key: &'static str, bytes: usize) -> Self {
        Self {
            key,
            form: Form::Hex(bytes),
        }
    }

    pub(crate) const fn base64(key: &'static str, bytes: usize) -> Self {
        Self {
            key,
            form: Form::Base64(bytes),
        }
    }
}

/// The format of a random value.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// This many bytes, in hexadecimal.
    Hex(usize),
    /// This many bytes, in base64.
    Base64(usize),
}

/// Every value of the Secret.
#[derive(Clone, Debug, Default)]
pub struct Keys(BTreeMap<String, SecretString>);

impl Keys {
    /// The values of a Secret; values that are not text are not ours and are ignored.
    pub(crate) fn from_data(data: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        let text =
            |(key, value): (String, Vec<u8>)| Some((key, SecretString::from(String::from_utf8(value).ok()?)));
        Self(data.into_iter().filter_map(text).collect())
    }

    /// One value; an empty one counts as missing.
    pub fn get(&self, key: &str) -> Option<&SecretString> {
        self.0.get(key).filter(|value| !value.expose_secret().is_empty())
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &SecretString)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Whether new keys are published and not used yet.
    pub(crate) fn is_rotating(&self) -> bool {
        self.get(key::PUBLISHED_AT).is_some()
    }

    /// A timestamp among the values.
    pub fn time(&self, key: &str) -> Option<Timestamp> {
        self.get(key)?.expose_secret().parse().ok()
    }

    fn set(&mut self, key: &str, value: impl Into<SecretString>) {
        self.0.insert(key.into(), value.into());
    }

    fn take(&mut self, key: &str) -> Option<SecretString> {
        self.0
            .remove(key)
            .filter(|value| !value.expose_secret().is_empty())
    }

    fn add(&mut self, key: &str, make: impl FnOnce() -> SecretString) {
        if self.get(key).is_none() {
            self.0.insert(key.into(), make());
        }
    }
}

/// The keys could not be generated: the operating system has no randomness, or a key in the Secret is invalid.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot generate or read the project's key pair; delete the key \"signing-key\" of its Secret to get a new one"
)]
pub(crate) struct BrokenKey;

/// Completes the keys. The result is unchanged if nothing is missing or due.
pub(crate) fn complete(
    mut keys: Keys,
    request: &Request<'_>,
    random: &mut impl RngCore,
    now: Timestamp,
) -> Result<Keys, BrokenKey> {
    rotation::expire(&mut keys, now);
    if request.published {
        rotation::use_published(&mut keys, request, now);
    }
    rotation::publish_if_asked(&mut keys, request, random, now)?;
    if let Some(own) = &request.own_secret {
        keys.add(key::JWT_SECRET, || own.clone());
    }
    keys.add(key::JWT_SECRET, || base64(random, 32));
    keys.add(key::META_CRYPTO, || base64(random, 32));
    if keys.get(key::SIGNING).is_none() {
        let pair = SigningKey::generate(uuid(random), random).ok_or(BrokenKey)?;
        keys.set(key::SIGNING, pair.private().ok_or(BrokenKey)?);
    }
    api_keys(&mut keys, random, now)?;
    keys.add(key::STORAGE_URL_SIGNING, || base64(random, 32));
    key_sets(&mut keys)?;
    keys.add(key::REALTIME_ENCRYPTION, || hex(random, 8));
    keys.add(key::SECRET_KEY_BASE, || base64(random, 48));
    keys.add(key::DASHBOARD_USERNAME, || "supabase".into());
    keys.add(key::DASHBOARD_PASSWORD, || hex(random, 16));
    keys.add(key::S3_PROTOCOL_ID, || hex(random, 16));
    keys.add(key::S3_PROTOCOL_SECRET, || hex(random, 32));
    keys.add(key::MARK, || base64(random, 32));
    for login in request.logins {
        keys.add(key::password(*login), || password(random));
    }
    for Generated { key, form } in request.generated {
        keys.add(key, || match form {
            Form::Hex(count) => hex(random, *count),
            Form::Base64(count) => base64(random, *count),
        });
    }
    Ok(keys)
}

fn signing_key(keys: &Keys) -> Result<SigningKey, BrokenKey> {
    let pair = keys.get(key::SIGNING).ok_or(BrokenKey)?;
    SigningKey::parse(pair.expose_secret()).ok_or(BrokenKey)
}

/// The clients' keys: two that are tokens, two that stand for tokens, and the tokens that replace all of them behind
/// the gateway.
fn api_keys(keys: &mut Keys, random: &mut impl RngCore, now: Timestamp) -> Result<(), BrokenKey> {
    let secret = keys.get(key::JWT_SECRET).cloned().ok_or(BrokenKey)?;
    let pair = signing_key(keys)?;
    let rows = [
        (Role::Anon, key::ANON, key::PREVIOUS_ANON, key::ANON_ASYMMETRIC),
        (
            Role::Service,
            key::SERVICE,
            key::PREVIOUS_SERVICE,
            key::SERVICE_ASYMMETRIC,
        ),
    ];
    for (role, name, previous, asymmetric) in rows {
        let good = |token: &SecretString| token::is_signed_by(token, secret.expose_secret().as_bytes(), role);
        if !keys.get(name).is_some_and(good) {
            if let Some(unaccepted) = keys.take(name) {
                keys.set(previous, unaccepted);
            }
            keys.set(name, token::symmetric(&secret, role, now));
        }
        let current = keys
            .get(asymmetric)
            .and_then(token::key_id)
            .is_some_and(|id| id == pair.id());
        if !current {
            keys.set(asymmetric, token::asymmetric(&pair, role, now).ok_or(BrokenKey)?);
        }
    }
    keys.add(key::PUBLISHABLE, || opaque::generate(opaque::PUBLISHABLE, random));
    keys.add(key::SECRET, || opaque::generate(opaque::SECRET, random));
    Ok(())
}

/// The derived values.
fn key_sets(keys: &mut Keys) -> Result<(), BrokenKey> {
    let pair = signing_key(keys)?;
    let secrets = [key::JWT_SECRET, key::NEXT_SECRET, key::PREVIOUS_SECRET];
    let next = keys
        .get(key::NEXT_SIGNING)
        .and_then(|pair| SigningKey::parse(pair.expose_secret()));
    let old = keys
        .get(key::PREVIOUS_PUBLIC)
        .and_then(|jwk| serde_json::from_str::<Value>(jwk.expose_secret()).ok());
    let accepted = Accepted {
        secrets: secrets.iter().filter_map(|name| keys.get(name)).collect(),
        public: next.map(|pair| pair.public()).into_iter().chain(old).collect(),
    };
    let private = signing::private_keys(&pair, &accepted).ok_or(BrokenKey)?;
    let set = signing::key_set(&pair, &accepted, None);
    let storage = signing::key_set(&pair, &accepted, keys.get(key::STORAGE_URL_SIGNING));
    keys.set(key::JWT_KEYS, private);
    keys.set(key::JWKS, set);
    keys.set(key::STORAGE_JWKS, storage);
    Ok(())
}

fn bytes(random: &mut impl RngCore, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    random.fill_bytes(&mut bytes);
    bytes
}

fn base64(random: &mut impl RngCore, count: usize) -> SecretString {
    BASE64_STANDARD.encode(bytes(random, count)).into()
}

fn hex(random: &mut impl RngCore, count: usize) -> SecretString {
    hex_text(&bytes(random, count)).into()
}

pub(crate) fn hex_text(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = std::fmt::Write::write_fmt(&mut text, format_args!("{byte:02x}"));
        text
    })
}

/// A random key id.
fn uuid(random: &mut impl RngCore) -> String {
    let text = hex_text(&bytes(random, 16));
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    format!(
        "{}-{}-4{}-a{}-{}",
        part(0, 8),
        part(8, 12),
        part(13, 16),
        part(17, 20),
        part(20, 32)
    )
}

/// Letters and digits: nothing that needs escaping in a URL, a shell, SQL or YAML.
fn password(random: &mut impl RngCore) -> SecretString {
    let characters: String = std::iter::repeat_with(|| char::from(random.sample(rand::distr::Alphanumeric)))
        .take(32)
        .collect();
    characters.into()
}

#[cfg(test)]
mod tests;
