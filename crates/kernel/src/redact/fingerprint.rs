//! A fingerprint of an applied secret for the status, which reveals only whether the secret changed.
//!
//! Many people who may not read the Secret can read a status. With a plain hash of a password, salted or not, each of
//! them could run a dictionary attack. So the fingerprint is an HMAC with a key that stays in a Secret of the operator
//! ([`install_key`](super::install_key)): without the key there is nothing to attack, and everyone who may read the key
//! may read the password. The object's uid and the field's name are part of the input, so equal passwords of two
//! objects have different fingerprints.
//!
//! The fingerprint survives a restart. If the key was lost and created again, [`Verdict::Unknown`] means that the
//! result is not known. A controller treats this as changed: it applies the secret once more.

use aws_lc_rs::{constant_time::verify_slices_are_equal, hmac};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use rand::RngCore as _;
use secrecy::{ExposeSecret as _, SecretBox, SecretSlice};
use thiserror::Error;

use super::SecretString;

const KEY_BYTES: usize = 32;
/// Half of the HMAC: 2^128 guesses are enough, and a status should be short.
const SHOWN_BYTES: usize = 16;

/// The key of this installation's fingerprints.
#[derive(Debug)]
pub struct FingerprintKey(SecretBox<[u8; KEY_BYTES]>);

/// The key does not have the required length.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("a fingerprint key has {KEY_BYTES} bytes, this one has {0}")]
pub struct KeyLength(usize);

/// Whether a secret matches a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is the same secret.
    Same,
    /// It is another secret.
    Changed,
    /// The fingerprint was made with another key, or is malformed.
    Unknown,
}

impl FingerprintKey {
    /// A new key.
    pub fn generate() -> Self {
        Self(SecretBox::init_with_mut(|key: &mut [u8; KEY_BYTES]| {
            rand::rng().fill_bytes(key);
        }))
    }

    /// An existing key.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, KeyLength> {
        let key: [u8; KEY_BYTES] = bytes.try_into().map_err(|_| KeyLength(bytes.len()))?;
        Ok(Self(SecretBox::new(Box::new(key))))
    }

    /// The key, to be stored in a Secret.
    pub fn to_bytes(&self) -> SecretSlice<u8> {
        self.0.expose_secret().to_vec().into()
    }

    /// The fingerprint of the secrets that were applied to a field of the object with this uid.
    pub fn fingerprint(&self, uid: &str, field: &str, secrets: &[&SecretString]) -> String {
        let parts = [uid, field]
            .into_iter()
            .chain(secrets.iter().map(|secret| secret.expose_secret()));
        self.shown(&self.hmac(joined(parts).expose_secret()))
    }

    /// Whether these secrets match the fingerprint.
    pub fn compare(&self, fingerprint: &str, uid: &str, field: &str, secrets: &[&SecretString]) -> Verdict {
        self.verdict(fingerprint, &self.fingerprint(uid, field, secrets))
    }

    /// `v1.KEY-ID.MAC`, in characters that need no quoting anywhere.
    pub(super) fn shown(&self, mac: &[u8]) -> String {
        let mac = mac.get(..SHOWN_BYTES).unwrap_or(mac);
        format!("v1.{}.{}", self.id(), BASE64.encode(mac))
    }

    /// Compares a text with the one that this key makes.
    pub(super) fn verdict(&self, found: &str, made: &str) -> Verdict {
        if !found.starts_with(&format!("v1.{}.", self.id())) {
            return Verdict::Unknown;
        }
        match verify_slices_are_equal(made.as_bytes(), found.as_bytes()) {
            Ok(()) => Verdict::Same,
            Err(_) => Verdict::Changed,
        }
    }

    /// Identifies the key without revealing it.
    pub(super) fn id(&self) -> String {
        BASE64.encode(self.hmac(b"key id").get(..6).unwrap_or_default())
    }

    pub(super) fn hmac(&self, input: &[u8]) -> Vec<u8> {
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.0.expose_secret());
        hmac::sign(&key, input).as_ref().to_vec()
    }
}

/// Each part with its length before it, so that the boundaries between parts are unambiguous.
pub(super) fn joined<'a>(parts: impl IntoIterator<Item = &'a str>) -> SecretSlice<u8> {
    let mut joined = Vec::new();
    for part in parts {
        joined.extend_from_slice(&part.len().to_be_bytes());
        joined.extend_from_slice(part.as_bytes());
    }
    joined.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(value: &str) -> SecretString {
        value.into()
    }

    #[test]
    fn a_fingerprint_survives_a_restart() {
        let key = FingerprintKey::generate();
        let fingerprint = key.fingerprint("uid-1", "password", &[&secret("hunter2")]);
        let kept = key.to_bytes();
        let after = FingerprintKey::from_bytes(kept.expose_secret()).unwrap();
        assert_eq!(
            after.compare(&fingerprint, "uid-1", "password", &[&secret("hunter2")]),
            Verdict::Same
        );
        assert_eq!(
            after.compare(&fingerprint, "uid-1", "password", &[&secret("hunter3")]),
            Verdict::Changed
        );
    }

    #[test]
    fn a_fingerprint_does_not_reveal_the_secret() {
        let key = FingerprintKey::generate();
        let fingerprint = |uid, field, value| key.fingerprint(uid, field, &[&secret(value)]);
        let one = fingerprint("uid-1", "password", "hunter2");
        assert_ne!(
            one,
            fingerprint("uid-2", "password", "hunter2"),
            "equal passwords of two objects look different"
        );
        assert_ne!(
            one,
            fingerprint("uid-1", "token", "hunter2"),
            "and so do two fields of one object"
        );
        assert_ne!(
            one,
            FingerprintKey::generate().fingerprint("uid-1", "password", &[&secret("hunter2")])
        );
        assert_eq!(
            one.len(),
            fingerprint("uid-1", "password", &"long".repeat(99)).len(),
            "nor the length"
        );
    }

    #[test]
    fn a_lost_key_is_noticed() {
        let fingerprint = FingerprintKey::generate().fingerprint("uid-1", "password", &[&secret("hunter2")]);
        let new = FingerprintKey::generate();
        assert_eq!(
            new.compare(&fingerprint, "uid-1", "password", &[&secret("hunter2")]),
            Verdict::Unknown
        );
        assert_eq!(
            new.compare("", "uid-1", "password", &[&secret("hunter2")]),
            Verdict::Unknown
        );
    }

    #[test]
    fn secrets_do_not_run_into_each_other() {
        let key = FingerprintKey::generate();
        let fingerprint = |values: &[&str]| {
            let secrets: Vec<_> = values.iter().map(|value| secret(value)).collect();
            key.fingerprint("uid", "f", &secrets.iter().collect::<Vec<_>>())
        };
        assert_ne!(fingerprint(&["ab", "c"]), fingerprint(&["a", "bc"]));
        assert_ne!(fingerprint(&["ab"]), fingerprint(&["ab", ""]));
    }

    #[test]
    fn a_key_of_another_length_is_refused_and_never_shown() {
        assert_eq!(FingerprintKey::from_bytes(b"short").unwrap_err(), KeyLength(5));
        let shown = format!("{:?}", FingerprintKey::from_bytes(&[65; KEY_BYTES]).unwrap());
        assert!(shown.contains("[REDACTED]") && !shown.contains("65"), "{shown}");
    }
}
