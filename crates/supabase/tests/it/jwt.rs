//! Tokens as upstream signs and verifies them: HMAC with the secret's characters, which are not decoded, or ES256.

use aws_lc_rs::hmac;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

/// The secret that all services of a test share.
pub(crate) const SECRET: &str = "a-secret-of-at-least-thirty-two-characters";

fn key(secret: &str) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes())
}

/// The key of an API role.
pub(crate) fn sign(role: &str) -> String {
    sign_with(SECRET, role)
}

/// The same with the secret of a project.
pub(crate) fn sign_with(secret: &str, role: &str) -> String {
    let encode = |part: Value| URL_SAFE_NO_PAD.encode(part.to_string());
    let claims = json!({"role": role, "iss": "supabase", "iat": 1_700_000_000, "exp": 4_000_000_000_u32});
    let signed = format!(
        "{}.{}",
        encode(json!({"alg": "HS256", "typ": "JWT"})),
        encode(claims)
    );
    let signature = hmac::sign(&key(secret), signed.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// The claims of a token, if it was signed with the secret.
pub(crate) fn verify(token: &str) -> Option<Value> {
    verify_with(SECRET, token)
}

/// The same with the secret of a project.
pub(crate) fn verify_with(secret: &str, token: &str) -> Option<Value> {
    let (signed, signature) = token.rsplit_once('.')?;
    let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
    hmac::verify(&key(secret), signed.as_bytes(), &signature).ok()?;
    let (_, claims) = signed.split_once('.')?;
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
}

/// The claims of a token, if a key of the set signed it: the shared secret, or the pair that the token names.
pub(crate) fn verify_by_set(set: &str, token: &str) -> Option<Value> {
    let set: Value = serde_json::from_str(set).ok()?;
    let (signed, signature) = token.rsplit_once('.')?;
    let (header, claims) = signed.split_once('.')?;
    let header: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).ok()?).ok()?;
    let key = set["keys"]
        .as_array()?
        .iter()
        .find(|key| key["alg"] == header["alg"] && key["kid"] == header["kid"])?;
    let part = |name: &str| URL_SAFE_NO_PAD.decode(key[name].as_str()?).ok();
    if header["alg"] == "HS256" {
        return verify_with(&String::from_utf8(part("k")?).ok()?, token);
    }
    let point = [vec![4], part("x")?, part("y")?].concat();
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
        .verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).ok()?)
        .ok()?;
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
}
