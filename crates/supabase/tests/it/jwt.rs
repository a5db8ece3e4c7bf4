//! Tokens as upstream signs them: HMAC over the secret's characters, which are not decoded.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

/// The secret that all services of a test share.
pub(crate) const SECRET: &str = "a-secret-of-at-least-thirty-two-characters";

fn key() -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes())
}

/// The key of an API role.
pub(crate) fn sign(role: &str) -> String {
    let encode = |part: Value| URL_SAFE_NO_PAD.encode(part.to_string());
    let claims = json!({"role": role, "iss": "supabase", "iat": 1_700_000_000, "exp": 4_000_000_000_u32});
    let signed = format!(
        "{}.{}",
        encode(json!({"alg": "HS256", "typ": "JWT"})),
        encode(claims)
    );
    let signature = hmac::sign(&key(), signed.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// The claims of a token, if the secret signed it.
pub(crate) fn verify(token: &str) -> Option<Value> {
    let (signed, signature) = token.rsplit_once('.')?;
    let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
    hmac::verify(&key(), signed.as_bytes(), &signature).ok()?;
    let (_, claims) = signed.split_once('.')?;
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
}
