//! Seals for text that others can write: the comments of roles and databases.
//!
//! Everyone who may write a comment could claim that a role belongs to another object. A seal is an HMAC with the
//! installation's key, so only an operator with that key can have written it. Each purpose has its own key, derived
//! from the installation's: a seal for one purpose is never valid for another.

use aws_lc_rs::{constant_time::verify_slices_are_equal, hmac};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};

use super::{FingerprintKey, Verdict};

/// Half of the HMAC, as for fingerprints: 2^128 guesses are enough.
const SEAL_BYTES: usize = 16;

impl FingerprintKey {
    /// The seal of these parts: `v1.KEY-ID.MAC`, in characters that need no quoting anywhere. The purpose describes
    /// what is sealed, for instance `mark of a role`.
    pub fn mac(&self, purpose: &str, parts: &[&str]) -> String {
        let seal = self.sign(purpose, parts);
        format!(
            "v1.{}.{}",
            self.id(),
            BASE64.encode(seal.get(..SEAL_BYTES).unwrap_or(&seal))
        )
    }

    /// Whether [`mac`](Self::mac) made the seal for this purpose and these parts. [`Verdict::Unknown`] means that it
    /// was made with another key, or is malformed.
    pub fn verify(&self, seal: &str, purpose: &str, parts: &[&str]) -> Verdict {
        if !seal.starts_with(&format!("v1.{}.", self.id())) {
            return Verdict::Unknown;
        }
        match verify_slices_are_equal(self.mac(purpose, parts).as_bytes(), seal.as_bytes()) {
            Ok(()) => Verdict::Same,
            Err(_) => Verdict::Changed,
        }
    }

    fn sign(&self, purpose: &str, parts: &[&str]) -> Vec<u8> {
        // A fingerprint's input begins with a length, whose first byte is 0: it can never equal this input.
        let derived = self.hmac(format!("mac key: {purpose}").as_bytes());
        let mut input = Vec::new();
        for part in parts {
            input.extend_from_slice(&part.len().to_be_bytes());
            input.extend_from_slice(part.as_bytes());
        }
        let key = hmac::Key::new(hmac::HMAC_SHA256, &derived);
        hmac::sign(&key, &input).as_ref().to_vec()
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
