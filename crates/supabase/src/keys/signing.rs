//! The project's ES256 key pair, as a JSON Web Key, and the key sets of the components.

use aws_lc_rs::agreement::{self, ECDH_P256};
use aws_lc_rs::encoding::AsBigEndian as _;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use rand::RngCore;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

use super::token;
use crate::put;

/// Bytes of a coordinate on the curve.
const COORDINATE: usize = 32;

/// How often a private key is drawn. A source that gives no valid key within these is broken.
const DRAWS: usize = 4;

/// The id of the key that signs Storage's URLs.
const URL_SIGNING: &str = "storage-url-signing";

/// A key pair with its id.
pub struct SigningKey {
    id: String,
    pair: EcdsaKeyPair,
}

impl SigningKey {
    /// A new key pair. The library generates pairs only from its own random numbers, so the private key is drawn here:
    /// bytes that are not a valid key, one draw in 2³², are drawn again. The key agreement computes the public half.
    pub fn generate(id: String, random: &mut impl RngCore) -> Option<Self> {
        let (secret, private) = std::iter::repeat_with(|| {
            let mut secret = [0; COORDINATE];
            random.fill_bytes(&mut secret);
            let private = agreement::PrivateKey::from_private_key(&ECDH_P256, &secret);
            Some((secret, private.ok()?))
        })
        .take(DRAWS)
        .flatten()
        .next()?;
        let public = private.compute_public_key().ok()?;
        Self::from_halves(id, &secret, public.as_ref())
    }

    fn from_halves(id: String, secret: &[u8], point: &[u8]) -> Option<Self> {
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pair = EcdsaKeyPair::from_private_key_and_public_key(algorithm, secret, point).ok()?;
        Some(Self { id, pair })
    }

    /// Parses the output of [`private`](Self::private).
    pub fn parse(jwk: &str) -> Option<Self> {
        let jwk: Value = serde_json::from_str(jwk).ok()?;
        let part = |name: &str| BASE64.decode(jwk.get(name)?.as_str()?).ok();
        let point = [vec![4], part("x")?, part("y")?].concat();
        Self::from_halves(jwk.get("kid")?.as_str()?.to_owned(), &part("d")?, &point)
    }

    /// The key's id, which is in the header of its signatures.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Signs in the format of tokens. The library chooses the nonce and ignores the source of random numbers.
    pub fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let signature = self.pair.sign(&SystemRandom::new(), message).ok()?;
        Some(signature.as_ref().to_vec())
    }

    /// The public half.
    pub fn public(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        let half = |from: usize| BASE64.encode(point.get(from..from + COORDINATE).unwrap_or_default());
        json!({
            "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "key_ops": ["verify"],
            "kid": self.id, "x": half(1), "y": half(1 + COORDINATE),
        })
    }

    /// The whole pair, for the Secret.
    pub fn private(&self) -> Option<SecretString> {
        let mut jwk = self.public();
        let secret = self.pair.private_key().as_be_bytes().ok()?;
        put(&mut jwk, "key_ops", json!(["sign", "verify"]));
        put(&mut jwk, "d", BASE64.encode(secret.as_ref()));
        Some(jwk.to_string().into())
    }
}

/// A shared secret as a key that verifies and does not sign. Realtime finds it only by its id.
fn shared(secret: &SecretString) -> Value {
    json!({
        "kty": "oct", "alg": "HS256", "key_ops": ["verify"], "kid": token::secret_id(secret),
        "k": BASE64.encode(secret.expose_secret()),
    })
}

/// Accepted keys besides the signing pair: other secrets, and the public halves of other pairs.
#[derive(Default)]
pub(crate) struct Accepted<'a> {
    /// Shared secrets.
    pub secrets: Vec<&'a SecretString>,
    /// Public keys.
    pub public: Vec<Value>,
}

/// Auth's list: the signing key, and all verifying keys.
pub(crate) fn private_keys(signing: &SigningKey, accepted: &Accepted<'_>) -> Option<SecretString> {
    let private = signing.private()?;
    let signing: Value = serde_json::from_str(private.expose_secret()).ok()?;
    let all: Vec<Value> = std::iter::once(signing).chain(verifying(accepted)).collect();
    Some(Value::from(all).to_string().into())
}

/// The other components' set: all verifying keys. It contains the shared secrets, so it is itself secret. Storage signs
/// URLs with the `urlSigningKey` of its set, and without one with the shared secret, which a rotation replaces. It
/// verifies them with the first shared secret of the list that has the id of the token or none, so the list contains
/// that key, too, before those without an id.
pub(crate) fn key_set(
    signing: &SigningKey,
    accepted: &Accepted<'_>,
    signs_urls: Option<&SecretString>,
) -> SecretString {
    let urls = signs_urls.map(|secret| {
        let mut key = shared(secret);
        put(&mut key, "kid", URL_SIGNING);
        put(&mut key, "key_ops", json!(["sign", "verify"]));
        key
    });
    let all: Vec<Value> = std::iter::once(signing.public())
        .chain(accepted.public.iter().cloned())
        .chain(urls.clone())
        .chain(accepted.secrets.iter().map(|secret| shared(secret)))
        .collect();
    let mut set = json!({ "keys": all });
    if let Some(urls) = urls {
        put(&mut set, "urlSigningKey", urls);
    }
    set.to_string().into()
}

fn verifying(accepted: &Accepted<'_>) -> impl Iterator<Item = Value> {
    let secrets = accepted.secrets.iter().map(|secret| shared(secret));
    accepted.public.iter().cloned().chain(secrets.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
    use jiff::Timestamp;
    use rand::SeedableRng as _;
    use rand::rngs::StdRng;

    use super::super::token::{Role, asymmetric, key_id};
    use super::*;

    fn generate(id: &str, seed: u64) -> SigningKey {
        SigningKey::generate(id.into(), &mut StdRng::seed_from_u64(seed)).unwrap()
    }

    fn verifies(jwk: &Value, token: &SecretString) -> bool {
        let part = |name: &str| BASE64.decode(jwk[name].as_str().unwrap()).unwrap();
        let point = [vec![4], part("x"), part("y")].concat();
        let (signed, signature) = token.expose_secret().rsplit_once('.').unwrap();
        let signature = BASE64.decode(signature).unwrap();
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
            .verify(signed.as_bytes(), &signature)
            .is_ok()
    }

    #[test]
    fn a_token_verifies_with_the_public_half_after_the_pair_was_kept() {
        let key = generate("one", 1);
        let kept = SigningKey::parse(key.private().unwrap().expose_secret()).unwrap();
        let token = asymmetric(&kept, Role::Service, Timestamp::UNIX_EPOCH).unwrap();
        assert!(verifies(&key.public(), &token));
        assert_eq!(key_id(&token).as_deref(), Some("one"));
        let other = generate("two", 2);
        assert!(!verifies(&other.public(), &token));
        assert!(key.public().get("d").is_none());
    }

    #[test]
    fn the_same_random_numbers_make_the_same_key() {
        let private = |seed| {
            generate("one", seed)
                .private()
                .unwrap()
                .expose_secret()
                .to_owned()
        };
        assert_eq!(private(1), private(1));
        assert_ne!(private(1), private(2));
    }

    /// Zero, and everything from the order of the curve up, is no private key.
    #[test]
    fn bytes_that_are_no_key_are_drawn_again() {
        struct Bytes(Vec<u8>);
        impl RngCore for Bytes {
            fn next_u32(&mut self) -> u32 {
                0
            }
            fn next_u64(&mut self) -> u64 {
                0
            }
            fn fill_bytes(&mut self, bytes: &mut [u8]) {
                bytes.fill(self.0.remove(0));
            }
        }
        let generate = |draws: &[u8]| SigningKey::generate("one".into(), &mut Bytes(draws.to_vec()));
        let key = generate(&[0, 0xff, 1]).unwrap();
        assert_eq!(key.public(), generate(&[1]).unwrap().public());
        let token = asymmetric(&key, Role::Anon, Timestamp::UNIX_EPOCH).unwrap();
        assert!(verifies(&key.public(), &token));
        assert!(generate(&[0; DRAWS]).is_none());
    }

    #[test]
    fn exactly_one_key_signs() {
        let (key, secret) = (generate("one", 1), "s".repeat(32).into());
        let accepted = Accepted {
            secrets: vec![&secret],
            public: vec![generate("old", 3).public()],
        };
        let keys: Value =
            serde_json::from_str(private_keys(&key, &accepted).unwrap().expose_secret()).unwrap();
        let signing = |key: &&Value| key["key_ops"].as_array().unwrap().contains(&json!("sign"));
        assert_eq!(keys.as_array().unwrap().iter().filter(signing).count(), 1);
        let set = key_set(&key, &accepted, None);
        assert!(!set.expose_secret().contains("\"d\""));
        assert_eq!(set.expose_secret().matches("kty").count(), 3);
    }
}
