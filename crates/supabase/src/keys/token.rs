//! JSON Web Tokens, as far as a project needs them: signed with HS256 and ES256, and verified.
//!
//! HS256 uses the secret *as it is written*: every component treats it as a plain string, and refuses a key that was
//! signed with its decoded bytes.
//!
//! The crate `jsonwebtoken` would replace only the lines that join and split a token: aws-lc-rs signs in either case, with
//! the key pair of [`SigningKey`].

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

use super::signing::SigningKey;

/// The lifetime of an API key, in seconds: ten years, because clients embed them.
const LIFETIME: i64 = 10 * 365 * 24 * 3600;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A client without a login.
    Anon,
    /// A client with all privileges.
    Service,
}

impl Role {
    /// The role's name in the database.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Anon => "anon",
            Self::Service => "service_role",
        }
    }
}

/// The id of a shared secret, which does not reveal it. It is in the header of the API keys that the secret signs:
/// Realtime verifies a token without an id only with the secret of the moment, and a rotation replaces that.
pub(crate) fn secret_id(secret: &SecretString) -> String {
    let digest = hmac::sign(
        &hmac_key(secret.expose_secret().as_bytes()),
        b"id of a shared secret",
    );
    crate::keys::hex_text(digest.as_ref().get(..8).unwrap_or_default())
}

/// An API key that is signed with the project's secret.
pub(crate) fn symmetric(secret: &SecretString, role: Role, now: Timestamp) -> SecretString {
    let header = json!({ "alg": "HS256", "typ": "JWT", "kid": secret_id(secret) });
    let signed = message(&header, &claims(role, now));
    let signature = hmac::sign(&hmac_key(secret.expose_secret().as_bytes()), signed.as_bytes());
    joined(&signed, signature.as_ref())
}

/// An API key that is signed with the project's key pair.
pub fn asymmetric(key: &SigningKey, role: Role, now: Timestamp) -> Option<SecretString> {
    let header = json!({ "alg": "ES256", "typ": "JWT", "kid": key.id() });
    let signed = message(&header, &claims(role, now));
    let signature = key.sign(signed.as_bytes())?;
    Some(joined(&signed, &signature))
}

/// Whether a token was signed with this secret, for this role.
pub(crate) fn is_signed_by(token: &SecretString, secret: &[u8], role: Role) -> bool {
    let verified = || {
        let (signed, signature) = token.expose_secret().rsplit_once('.')?;
        let signature = BASE64.decode(signature).ok()?;
        hmac::verify(&hmac_key(secret), signed.as_bytes(), &signature).ok()?;
        let (_, claims) = signed.split_once('.')?;
        let claims: Value = serde_json::from_slice(&BASE64.decode(claims).ok()?).ok()?;
        Some(claims.get("role")?.as_str()? == role.as_str())
    };
    verified().unwrap_or(false)
}

/// The id of the key pair that signed a token.
pub(crate) fn key_id(token: &SecretString) -> Option<String> {
    let (header, _) = token.expose_secret().split_once('.')?;
    let header: Value = serde_json::from_slice(&BASE64.decode(header).ok()?).ok()?;
    Some(header.get("kid")?.as_str()?.to_owned())
}

fn claims(role: Role, now: Timestamp) -> Value {
    let issued = now.as_second();
    json!({ "role": role.as_str(), "iss": "supabase", "iat": issued, "exp": issued + LIFETIME })
}

fn message(header: &Value, claims: &Value) -> String {
    let part = |value: &Value| BASE64.encode(value.to_string());
    format!("{}.{}", part(header), part(claims))
}

fn joined(signed: &str, signature: &[u8]) -> SecretString {
    format!("{signed}.{}", BASE64.encode(signature)).into()
}

fn hmac_key(secret: &[u8]) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_signed_over_the_secret_as_it_is_written() {
        let secret = SecretString::from("c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3I=");
        let token = symmetric(&secret, Role::Anon, Timestamp::UNIX_EPOCH);
        assert!(is_signed_by(
            &token,
            secret.expose_secret().as_bytes(),
            Role::Anon
        ));
        assert!(!is_signed_by(
            &token,
            secret.expose_secret().as_bytes(),
            Role::Service
        ));
        assert!(!is_signed_by(
            &token,
            b"secret-secret-secret-secret-secr",
            Role::Anon
        ));
        let claims = token.expose_secret().split('.').nth(1).unwrap();
        let claims: Value = serde_json::from_slice(&BASE64.decode(claims).unwrap()).unwrap();
        assert_eq!(
            claims,
            json!({ "role": "anon", "iss": "supabase", "iat": 0, "exp": LIFETIME })
        );
    }

    #[test]
    fn rubbish_is_no_token() {
        for text in ["", "a", "a.b", "a.b.c", "..", "a.b.c.d"] {
            assert!(!is_signed_by(&text.into(), b"secret", Role::Anon), "{text}");
            assert_eq!(key_id(&text.into()), None, "{text}");
        }
    }
}
