//! That stored passwords fit, found out once: to see it takes thousands of hashes for each role, and a project that is
//! in order is asked again and again.

use std::collections::BTreeMap;

use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};

/// Stands for the verifiers of all roles, as they were when they fitted. It is only worth something together with the
/// passwords that they fitted, which whoever keeps it must compare.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Proof([u8; 32]);

impl Proof {
    /// Of the stored verifiers, by role.
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
    fn another_role_or_another_verifier_is_another_proof() {
        let of = |pairs: &[(&str, &str)]| {
            let verifiers = pairs
                .iter()
                .map(|(role, text)| ((*role).to_owned(), (*text).into()));
            Proof::of(&verifiers.collect())
        };
        let proof = of(&[("auth", "a"), ("rest", "b")]);
        assert_eq!(of(&[("rest", "b"), ("auth", "a")]), proof);
        for other in [
            of(&[("auth", "a")]),
            of(&[("auth", "b"), ("rest", "a")]),
            of(&[("auth", "ar"), ("est", "b")]),
            of(&[("auth", "a"), ("rest", "b"), ("meta", "c")]),
        ] {
            assert_ne!(other, proof);
        }
    }
}
