//! Digests of Secrets. To render a project, the controller must know which values exist and whether one has changed,
//! but never the values: a digest may be kept between reconciles, a value may not.

use std::collections::BTreeMap;

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};

/// The digest of a value: half an HMAC.
type SecretDigest = [u8; 16];
/// The digests of one Secret, by key.
type Values = Box<[(Box<str>, SecretDigest)]>;

/// The Secrets that pods use, by name: a changed value changes the pod.
#[derive(Debug, Default)]
pub struct SecretDigests(BTreeMap<Box<str>, Values>);

/// Computes digests.
pub(crate) struct SecretHasher {
    key: hmac::Key,
    digests: SecretDigests,
}

impl SecretHasher {
    /// With a key that is itself in a Secret, so that a digest reveals nothing.
    pub(crate) fn new(key: Option<&SecretString>) -> Self {
        let key = key.map_or(&[][..], |key| key.expose_secret().as_bytes());
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, key),
            digests: SecretDigests::default(),
        }
    }

    /// Adds a Secret. The first one of a name counts.
    pub(crate) fn add<'a>(
        &mut self,
        secret: &str,
        values: impl IntoIterator<Item = (&'a str, &'a SecretString)>,
    ) {
        let key = &self.key;
        let seal = |(name, value): (&str, &SecretString)| {
            let digest = hmac::sign(key, value.expose_secret().as_bytes());
            let mut seal = SecretDigest::default();
            let (half, _) = digest.as_ref().split_at(size_of::<SecretDigest>());
            seal.copy_from_slice(half);
            (Box::from(name), seal)
        };
        let sealed: BTreeMap<_, _> = values.into_iter().map(seal).collect();
        let slot = self.digests.0.entry(secret.into());
        slot.or_insert_with(|| sealed.into_iter().collect());
    }

    pub(crate) fn finish(self) -> SecretDigests {
        self.digests
    }
}

impl SecretDigests {
    /// The keys of a Secret, in order.
    pub(crate) fn keys_of(&self, secret: &str) -> impl Iterator<Item = &str> {
        let values = self.0.get(secret).into_iter().flatten();
        values.map(|(key, _)| &**key)
    }

    /// One text for the values of these names and keys, which changes with each of them.
    pub fn mark(&self, used: &[(String, String)]) -> String {
        let mut digest = Sha256::new();
        for (name, key) in used {
            for part in [name, key] {
                digest.update(part.len().to_be_bytes());
                digest.update(part);
            }
            let mut values = self.0.get(name.as_str()).into_iter().flatten();
            let seal = values.find(|(known, _)| **known == **key).map(|(_, seal)| seal);
            digest.update(seal.map_or(&[][..], |seal| seal));
        }
        let digest = digest.finalize();
        BASE64_URL_SAFE_NO_PAD.encode(digest.get(..16).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(key: &str, values: &[(&str, &str)]) -> SecretDigests {
        let mut hasher = SecretHasher::new(Some(&key.into()));
        for (name, value) in values {
            hasher.add(name, [("key", &SecretString::from(*value))]);
        }
        hasher.finish()
    }

    fn used(names: &[&str]) -> Vec<(String, String)> {
        names.iter().map(|name| ((*name).into(), "key".into())).collect()
    }

    #[test]
    fn a_digest_changes_only_with_a_used_value() {
        let one = sealed("k", &[("a", "1"), ("b", "1")]);
        let two = sealed("k", &[("a", "1"), ("b", "2")]);
        assert_eq!(one.mark(&used(&["a"])), two.mark(&used(&["a"])));
        assert_ne!(one.mark(&used(&["a", "b"])), two.mark(&used(&["a", "b"])));
        // A missing value differs from an existing one, and from another key's.
        let marks = [
            one.mark(&used(&["a"])),
            one.mark(&used(&["b"])),
            one.mark(&used(&["c"])),
            one.mark(&[("a".into(), "other".into())]),
            sealed("k", &[("a", "")]).mark(&used(&["a"])),
        ];
        let different: std::collections::BTreeSet<_> = marks.iter().collect();
        assert_eq!(different.len(), marks.len());
    }

    #[test]
    fn a_digest_cannot_be_guessed_without_the_key() {
        let (one, other) = (sealed("k", &[("a", "1")]), sealed("l", &[("a", "1")]));
        assert_ne!(one.mark(&used(&["a"])), other.mark(&used(&["a"])));
    }
}
