//! A Secret's life: generated, adopted, completed, rotated, expired.

use aws_lc_rs::hmac;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jiff::SignedDuration;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde_json::json;

use super::*;

const LOGINS: &[Login] = &[Login::Auth, Login::Rest];

fn request(rotate: Option<&str>) -> Request<'_> {
    Request {
        own_secret: None,
        rotate,
        grace: SignedDuration::from_hours(1),
        published: false,
        logins: LOGINS,
        generated: &[],
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn run(keys: Keys, request: &Request<'_>, second: i64) -> Keys {
    let seed = u64::try_from(second).unwrap();
    complete(keys, request, &mut StdRng::seed_from_u64(seed), at(second)).unwrap()
}

fn again(keys: &Keys) -> Keys {
    Keys::from_data(
        keys.iter()
            .map(|(key, value)| (key.to_owned(), value.expose_secret().as_bytes().to_vec())),
    )
}

fn text<'a>(keys: &'a Keys, key: &str) -> &'a str {
    keys.get(key).map_or("", |value| value.expose_secret())
}

/// Whether replaced keys are still accepted.
fn has_previous(keys: &Keys) -> bool {
    keys.get(key::PREVIOUS_ANON).is_some()
}

fn same(one: &Keys, two: &Keys) -> bool {
    let all = |keys: &Keys| -> Vec<(String, String)> {
        keys.iter()
            .map(|(key, value)| (key.to_owned(), value.expose_secret().to_owned()))
            .collect()
    };
    all(one) == all(two)
}

#[test]
fn what_is_made_is_kept() {
    let first = run(Keys::default(), &request(None), 1);
    assert_eq!(text(&first, key::JWT_SECRET).len(), 44);
    assert_eq!(text(&first, key::REALTIME_ENCRYPTION).len(), 16);
    assert_eq!(text(&first, key::SECRET_KEY_BASE).len(), 64);
    assert!(
        text(&first, key::password(Login::Auth))
            .chars()
            .all(char::is_alphanumeric)
    );
    assert!(!has_previous(&first));
    let second = run(again(&first), &request(None), 2);
    assert!(same(&first, &second));
}

#[test]
fn what_is_missing_is_added_and_the_rest_stays() {
    let mut first = run(Keys::default(), &request(None), 1);
    let secret = text(&first, key::JWT_SECRET).to_owned();
    first.take(key::META_CRYPTO);
    first.set(key::PUBLISHABLE, "");
    let second = run(first, &request(None), 2);
    assert_eq!(text(&second, key::JWT_SECRET), secret);
    assert!(second.get(key::META_CRYPTO).is_some() && second.get(key::PUBLISHABLE).is_some());
}

/// The predecessor signed with the decoded bytes, which only one service accepted.
#[test]
fn a_predecessors_keys_are_replaced_and_stay_accepted() {
    let secret = base64(&mut StdRng::seed_from_u64(9), 32);
    let bytes = BASE64_STANDARD.decode(secret.expose_secret()).unwrap();
    let sign = |role: &str| {
        let part = |value: serde_json::Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!(
            "{}.{}",
            part(json!({"alg": "HS256"})),
            part(json!({"role": role}))
        );
        let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &bytes), signed.as_bytes());
        format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
    };
    let mut old = Keys::default();
    old.set(key::JWT_SECRET, secret.clone());
    old.set(key::ANON, sign("anon"));
    old.set(key::SERVICE, sign("service_role"));
    let taken = run(again(&old), &request(None), 1);
    assert_eq!(text(&taken, key::JWT_SECRET), secret.expose_secret());
    assert_eq!(text(&taken, key::PREVIOUS_ANON), text(&old, key::ANON));
    assert_eq!(text(&taken, key::PREVIOUS_SERVICE), text(&old, key::SERVICE));
    let plain = secret.expose_secret().as_bytes();
    assert!(token::is_signed_by(
        taken.get(key::ANON).unwrap(),
        plain,
        Role::Anon
    ));
    assert!(taken.get(key::META_CRYPTO).is_some());
    // Forever: clients use them.
    let later = run(again(&taken), &request(None), 999_999);
    assert!(same(&taken, &later));
}

#[test]
fn a_rotation_happens_once_and_ends() {
    let first = run(Keys::default(), &request(None), 1);
    let published = run(again(&first), &request(Some("now")), 50);
    for name in [
        key::JWT_SECRET,
        key::SIGNING,
        key::ANON,
        key::PUBLISHABLE,
        key::ANON_ASYMMETRIC,
    ] {
        assert_eq!(
            text(&published, name),
            text(&first, name),
            "{name} is used as before"
        );
    }
    assert_eq!(
        text(&published, key::JWKS).matches("\"kty\"").count(),
        4,
        "both are accepted"
    );
    assert!(published.is_rotating() && !has_previous(&published));
    // Repeated reconciles and requests change nothing.
    let waiting = run(again(&published), &request(Some("now")), 60);
    assert!(same(&published, &waiting));
    let asked_again = run(again(&published), &request(Some("later")), 70);
    assert_eq!(
        text(&asked_again, key::NEXT_SECRET),
        text(&published, key::NEXT_SECRET)
    );
    assert_eq!(text(&asked_again, key::ROTATION_REQUEST), "later");

    let rolled_out = Request {
        published: true,
        ..request(Some("now"))
    };
    let rotated = run(again(&published), &rolled_out, 100);
    assert!(!rotated.is_rotating());
    for (current, next) in [
        (key::JWT_SECRET, key::NEXT_SECRET),
        (key::SIGNING, key::NEXT_SIGNING),
        (key::ANON, key::NEXT_ANON),
        (key::SECRET, key::NEXT_SECRET_KEY),
    ] {
        assert_eq!(text(&rotated, current), text(&published, next), "{current}");
        assert_eq!(text(&rotated, next), "");
    }
    for (current, previous) in [
        (key::JWT_SECRET, key::PREVIOUS_SECRET),
        (key::ANON, key::PREVIOUS_ANON),
        (key::PUBLISHABLE, key::PREVIOUS_PUBLISHABLE),
    ] {
        assert_ne!(text(&rotated, current), text(&first, current), "{current}");
        assert_eq!(text(&rotated, previous), text(&first, current), "{current}");
    }
    assert_eq!(
        text(&rotated, key::JWKS).matches("\"kty\"").count(),
        4,
        "both pairs and both secrets"
    );
    for name in [
        key::META_CRYPTO,
        key::REALTIME_ENCRYPTION,
        key::password(Login::Auth),
    ] {
        assert_eq!(
            text(&rotated, name),
            text(&first, name),
            "what is encrypted with it would be lost"
        );
    }
    let settled = run(again(&rotated), &request(Some("now")), 200);
    assert!(same(&rotated, &settled));
    let over = run(again(&rotated), &request(Some("now")), 100 + 3600);
    assert!(!has_previous(&over));
    assert_eq!(text(&over, key::JWKS).matches("\"kty\"").count(), 2);
    assert_eq!(text(&over, key::ANON), text(&rotated, key::ANON));
}

#[test]
fn a_request_from_the_first_day_is_no_rotation() {
    let first = run(Keys::default(), &request(Some("now")), 1);
    assert!(!has_previous(&first));
    assert!(same(&first, &run(again(&first), &request(Some("now")), 2)));
}

#[test]
fn a_secret_of_the_users_own_is_used_and_its_exchange_is_a_rotation() {
    let own = |text: &str| Request {
        own_secret: Some(text.to_owned().into()),
        ..request(None)
    };
    let first = run(Keys::default(), &own("one-one-one-one-one-one-one-one-one"), 1);
    assert_eq!(
        text(&first, key::JWT_SECRET),
        "one-one-one-one-one-one-one-one-one"
    );
    let two = "two-two-two-two-two-two-two-two-two";
    let published = run(again(&first), &own(two), 2);
    assert_eq!(text(&published, key::JWT_SECRET), text(&first, key::JWT_SECRET));
    assert_eq!(text(&published, key::NEXT_SECRET), two);
    assert!(same(&published, &run(again(&published), &own(two), 3)));
    // Replaced again before it was used: the newest counts.
    let three = "three-three-three-three-three-three";
    assert_eq!(
        text(&run(again(&published), &own(three), 4), key::NEXT_SECRET),
        three
    );
    let rolled_out = Request {
        published: true,
        ..own(two)
    };
    let second = run(again(&published), &rolled_out, 5);
    assert!(same(&second, &run(again(&second), &own(two), 6)));
    assert_eq!(
        text(&second, key::JWT_SECRET),
        "two-two-two-two-two-two-two-two-two"
    );
    assert_eq!(text(&second, key::PREVIOUS_SECRET), text(&first, key::JWT_SECRET));
    let plain = text(&second, key::JWT_SECRET).as_bytes().to_vec();
    assert!(token::is_signed_by(
        second.get(key::ANON).unwrap(),
        &plain,
        Role::Anon
    ));
}

/// Storage signs URLs with the key that its set names for that, and verifies them with the first shared secret of the
/// list whose id fits; a URL outlives a rotation.
#[test]
fn storage_signs_urls_with_a_key_that_no_rotation_replaces() {
    let url_key = |keys: &Keys| {
        let set: serde_json::Value = serde_json::from_str(text(keys, key::STORAGE_JWKS)).unwrap();
        let mut verifying = set["keys"].as_array().unwrap().iter();
        let verifies = verifying.find(|key| key["kty"] == "oct").unwrap();
        assert_eq!(&set["urlSigningKey"], verifies);
        verifies.clone()
    };
    let first = run(Keys::default(), &request(None), 1);
    let before = url_key(&first);
    assert_eq!(before["kid"], "storage-url-signing");
    assert!(
        !text(&first, key::JWKS).contains("storage-url-signing"),
        "nobody else accepts it"
    );
    let published = run(again(&first), &request(Some("now")), 2);
    let rolled_out = Request {
        published: true,
        ..request(Some("now"))
    };
    let rotated = run(again(&published), &rolled_out, 3);
    let over = run(again(&rotated), &request(Some("now")), 3 + 3600);
    for keys in [published, rotated, over] {
        assert_eq!(url_key(&keys), before);
    }
}

/// Realtime's rule for a token that is signed with a shared secret: the key of its id, or else the secret of the moment.
fn realtime_accepts(keys: &Keys, token: &str) -> bool {
    let set: Value = serde_json::from_str(text(keys, key::JWKS)).unwrap();
    let (header, _) = token.split_once('.').unwrap();
    let header: Value = serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(header).unwrap()).unwrap();
    let mut known = set["keys"].as_array().unwrap().iter();
    let named =
        known.find(|jwk| jwk["kty"] == "oct" && header["kid"].is_string() && jwk["kid"] == header["kid"]);
    let secret = match named {
        Some(jwk) => BASE64_URL_SAFE_NO_PAD.decode(jwk["k"].as_str().unwrap()).unwrap(),
        None => text(keys, key::JWT_SECRET).as_bytes().to_vec(),
    };
    token::is_signed_by(&token.to_owned().into(), &secret, Role::Anon)
}

/// Clients join Realtime's channels with the key that they have, which the gateway does not see.
#[test]
fn realtime_accepts_the_keys_of_each_stage_of_a_rotation() {
    let first = run(Keys::default(), &request(None), 1);
    let published = run(again(&first), &request(Some("now")), 50);
    let rolled_out = Request {
        published: true,
        ..request(Some("now"))
    };
    let rotated = run(again(&published), &rolled_out, 100);
    let over = run(again(&rotated), &request(Some("now")), 100 + 3600);
    let (old, new) = (text(&first, key::ANON), text(&rotated, key::ANON));
    assert_eq!(
        (old, new),
        (
            text(&rotated, key::PREVIOUS_ANON),
            text(&published, key::NEXT_ANON)
        )
    );
    let accepted = |keys: &Keys| [old, new].map(|token| realtime_accepts(keys, token));
    assert_eq!(accepted(&first), [true, false]);
    assert_eq!(
        accepted(&published),
        [true, true],
        "pods that have not rolled out yet"
    );
    assert_eq!(accepted(&rotated), [true, true], "until the grace period ends");
    assert_eq!(accepted(&over), [false, true]);
}

/// Front ends have copies of the keys: an upgrade neither replaces nor invalidates one without an id.
#[test]
fn a_key_without_an_id_stays_as_it_is() {
    let mut first = run(Keys::default(), &request(None), 1);
    let part = |value: Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!(
        "{}.{}",
        part(json!({"alg": "HS256"})),
        part(json!({"role": "anon"}))
    );
    let secret = hmac::Key::new(hmac::HMAC_SHA256, text(&first, key::JWT_SECRET).as_bytes());
    let signature = hmac::sign(&secret, signed.as_bytes());
    let adopted = format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature));
    first.set(key::ANON, adopted.clone());
    let upgraded = run(again(&first), &request(None), 2);
    assert_eq!(text(&upgraded, key::ANON), adopted);
    assert!(!has_previous(&upgraded));
    assert!(realtime_accepts(&upgraded, &adopted));
}

/// The second rotation takes the place of the keys that the first one promised to accept.
#[test]
fn a_second_rotation_waits_for_the_end_of_the_first_ones_grace() {
    let rolled_out = |rotate: &'static str, grace: SignedDuration| Request {
        published: true,
        grace,
        ..request(Some(rotate))
    };
    let hour = SignedDuration::from_hours(1);
    let first = run(Keys::default(), &request(None), 1);
    let published = run(again(&first), &request(Some("one")), 50);
    let rotated = run(again(&published), &rolled_out("one", hour), 100);
    let second = run(again(&rotated), &request(Some("two")), 200);
    let waiting = run(again(&second), &rolled_out("two", hour), 300);
    assert!(waiting.is_rotating());
    assert_eq!(text(&waiting, key::PREVIOUS_ANON), text(&first, key::ANON));
    let over = run(again(&waiting), &rolled_out("two", hour), 100 + 3600);
    assert!(!over.is_rotating());
    assert_eq!(text(&over, key::PREVIOUS_ANON), text(&rotated, key::ANON));
    // A leaked key is replaced at once by a spec without a grace period.
    let at_once = run(again(&second), &rolled_out("two", SignedDuration::ZERO), 300);
    assert!(!at_once.is_rotating());
}
