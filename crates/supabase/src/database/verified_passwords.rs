//! Remembers that stored passwords match: a check takes thousands of hashes for each role, and a converged project is
//! checked repeatedly.

use std::collections::BTreeMap;

use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};

/// A digest of the verifiers of all roles when they matched. It is valid only together with the same passwords, which
/// the caller must compare.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VerifiedPasswords([u8; 32]);

impl VerifiedPasswords {
    /// The digest of the stored verifiers, by role.
    pub(super) fn of(verifiers: &BTreeMap<String, SecretString>) -> Self {
        let mut digest = Sha256::new();
        for (role, verifier) in verifiers {
            for text in [role.as_str(), verifier.expose_secret()] {
                digest.update(text.len().to_be_bytes());
                digest.update(text);
            }
        }
        Self(digest.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_role_or_verifier_changes_the_digest() {
        let of = |pairs: &[(&str, &str)]| {
            let verifiers = pairs
                .iter()
                .map(|(role, text)| ((*role).to_owned(), (*text).into()));
            VerifiedPasswords::of(&verifiers.collect())
        };
        let verified = of(&[("auth", "a"), ("rest", "b")]);
        assert_eq!(of(&[("rest", "b"), ("auth", "a")]), verified);
        for other in [
            of(&[("auth", "a")]),
            of(&[("auth", "b"), ("rest", "a")]),
            of(&[("auth", "ar"), ("est", "b")]),
            of(&[("auth", "a"), ("rest", "b"), ("meta", "c")]),
        ] {
            assert_ne!(other, verified);
        }
    }
}
