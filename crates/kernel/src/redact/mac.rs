//! Seals for text that others can write: the comments of roles and databases.
//!
//! Everyone who may write a comment could claim that a role belongs to another object. A seal is an HMAC with the
//! installation's key, so only an operator with that key can have written it. Each purpose has its own key, derived
//! from the installation's: a seal for one purpose is never valid for another.

use aws_lc_rs::hmac;
use secrecy::ExposeSecret as _;

use super::fingerprint::joined;
use super::{FingerprintKey, Verdict};

impl FingerprintKey {
    /// The seal of these parts. The purpose describes what is sealed, for instance `mark of a role`.
    pub fn mac(&self, purpose: &str, parts: &[&str]) -> String {
        // A fingerprint's input begins with a length, whose first byte is 0: it can never equal this input.
        let derived = self.hmac(format!("mac key: {purpose}").as_bytes());
        let key = hmac::Key::new(hmac::HMAC_SHA256, &derived);
        let input = joined(parts.iter().copied());
        self.shown(hmac::sign(&key, input.expose_secret()).as_ref())
    }

    /// Whether [`mac`](Self::mac) made the seal for this purpose and these parts. [`Verdict::Unknown`] means that it
    /// was made with another key, or is malformed.
    pub fn verify(&self, seal: &str, purpose: &str, parts: &[&str]) -> Verdict {
        self.verdict(seal, &self.mac(purpose, parts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_holds_for_its_purpose_and_its_parts_only() {
        let key = FingerprintKey::generate();
        let seal = key.mac("role", &["shop", "alice"]);
        assert_eq!(key.verify(&seal, "role", &["shop", "alice"]), Verdict::Same);
        for (purpose, parts) in [
            ("database", vec!["shop", "alice"]),
            ("role", vec!["shop", "bob"]),
            ("role", vec!["shopalice"]),
            ("role", vec!["shopa", "lice"]),
            ("role", vec!["shop", "alice", ""]),
        ] {
            assert_eq!(
                key.verify(&seal, purpose, &parts),
                Verdict::Changed,
                "{purpose} {parts:?}"
            );
        }
    }

    #[test]
    fn a_seal_of_another_key_is_unknown() {
        let seal = FingerprintKey::generate().mac("role", &["x"]);
        let key = FingerprintKey::generate();
        for seal in [seal.as_str(), "", "v1", "v1..", "x"] {
            assert_eq!(key.verify(seal, "role", &["x"]), Verdict::Unknown, "{seal}");
        }
    }

    #[test]
    fn a_seal_is_no_fingerprint() {
        let key = FingerprintKey::generate();
        let seal = key.mac("password", &["uid"]);
        assert_eq!(key.compare(&seal, "uid", "password", &[]), Verdict::Changed);
    }
}
