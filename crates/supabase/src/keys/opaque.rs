//! The short API keys, `sb_publishable_…` and `sb_secret_…`: a random part, and a checksum that distinguishes a
//! misspelt key from a wrong one.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use rand::RngCore;
use secrecy::SecretString;
use sha2::{Digest as _, Sha256};

/// Prefix of the checksum's input.
const CONTEXT: &str = "supabase-self-hosted|";
/// 22 characters.
const RANDOM_BYTES: usize = 17;
const RANDOM_CHARACTERS: usize = 22;
const CHECKSUM_CHARACTERS: usize = 8;

/// A key for browsers.
pub(crate) const PUBLISHABLE: &str = "sb_publishable_";
/// A key for servers only.
pub(crate) const SECRET: &str = "sb_secret_";

/// A new key with this prefix.
pub(crate) fn generate(prefix: &str, random: &mut impl RngCore) -> SecretString {
    let mut bytes = [0; RANDOM_BYTES];
    random.fill_bytes(&mut bytes);
    let middle = start(&BASE64.encode(bytes), RANDOM_CHARACTERS).to_owned();
    let key = format!("{prefix}{middle}");
    format!("{key}_{}", checksum(&key)).into()
}

fn checksum(key: &str) -> String {
    let digest = Sha256::digest(format!("{CONTEXT}{key}"));
    start(&BASE64.encode(digest), CHECKSUM_CHARACTERS).to_owned()
}

fn start(text: &str, characters: usize) -> &str {
    text.get(..characters).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;
    use rand::rngs::StdRng;
    use secrecy::ExposeSecret as _;

    use super::*;

    #[test]
    fn a_key_has_the_known_form_and_its_checksum_fits() {
        let mut random = StdRng::seed_from_u64(1);
        for prefix in [PUBLISHABLE, SECRET] {
            let key = generate(prefix, &mut random);
            let (body, sum) = key.expose_secret().split_at(prefix.len() + 22);
            assert!(body.starts_with(prefix));
            assert_eq!(sum, format!("_{}", checksum(body)));
            assert_eq!(sum.len(), 9);
        }
    }
}
