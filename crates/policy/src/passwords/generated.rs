//! Passwords that the operator generates.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::core::ObjectMeta;
use rand::CryptoRng;
use rand::seq::IndexedRandom as _;
use secrecy::{ExposeSecret, SecretString};
use stanchion_api::policy::{POLICY_LABEL, ROLE_LABEL};
use stanchion_kernel::redact::SecretValues;
use stanchion_postgres::scram;

use crate::plans::label;

/// The key of the verifier.
pub(super) const VERIFIER: &str = "verifier";
const CHARACTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!@#$%^&*-_=+";

/// A generated password for the server, and the Secret to keep it in. The server gets the verifier of the Secret,
/// because a pooler that passes logins through needs the same one.
pub(super) fn made(
    role: &str,
    live: Option<&Secret>,
    (name, key, length): (&str, &str, u32),
    policy: &str,
    rounds: &mut scram::Rounds,
    random: &mut dyn CryptoRng,
) -> (SecretString, Secret) {
    let values = live.cloned().map(SecretValues::from).unwrap_or_default();
    let clear = match values.text(key) {
        Ok(clear) if !clear.expose_secret().is_empty() => clear,
        _ => generate(length, random),
    };
    let kept = values
        .text(VERIFIER)
        .ok()
        .filter(|verifier| rounds.matches(&clear, verifier.expose_secret()) == Some(true));
    let verifier = kept.unwrap_or_else(|| scram::verifier(&clear, &scram::salt(random)));
    let bytes = |value: &SecretString| ByteString(value.expose_secret().as_bytes().to_vec());
    let secret = Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(BTreeMap::from([
                (POLICY_LABEL.to_owned(), label(policy)),
                (ROLE_LABEL.to_owned(), label(role)),
            ])),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([
            (key.to_owned(), bytes(&clear)),
            (VERIFIER.to_owned(), bytes(&verifier)),
        ])),
        type_: Some("Opaque".into()),
        ..Secret::default()
    };
    (verifier, secret)
}

fn generate(length: u32, random: &mut dyn CryptoRng) -> SecretString {
    let characters = (0..length).filter_map(|_| CHARACTERS.choose(&mut *random));
    characters
        .map(|byte| char::from(*byte))
        .collect::<String>()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: (&str, &str, u32) = ("s", "password", 32);

    fn once(live: Option<&Secret>) -> (SecretString, Secret) {
        made(
            "Alice_X",
            live,
            PLACE,
            "p",
            &mut scram::Rounds::default(),
            &mut rand::rng(),
        )
    }

    #[test]
    fn a_generated_password_stays_and_its_verifier_with_it() {
        let (verifier, secret) = once(None);
        let values = SecretValues::from(secret.clone());
        let clear = values.text("password").unwrap();
        assert_eq!(clear.expose_secret().len(), 32);
        assert_eq!(scram::matches(&clear, verifier.expose_secret()), Some(true));
        let (again, same) = once(Some(&secret));
        assert_eq!(again.expose_secret(), verifier.expose_secret());
        assert_eq!(same.data, secret.data);
        let (other, _) = once(None);
        assert_ne!(other.expose_secret(), verifier.expose_secret());
    }

    #[test]
    fn a_password_that_was_changed_in_the_secret_gets_a_new_verifier() {
        let (_, mut secret) = once(None);
        secret
            .data
            .as_mut()
            .unwrap()
            .insert("password".into(), ByteString(b"chosen by hand".to_vec()));
        let (verifier, changed) = once(Some(&secret));
        assert_eq!(
            scram::matches(&"chosen by hand".into(), verifier.expose_secret()),
            Some(true)
        );
        assert_ne!(changed.data, secret.data);
    }
}
