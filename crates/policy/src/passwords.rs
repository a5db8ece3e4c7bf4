//! Passwords of roles: from Secrets of the user's, and from Secrets that the operator makes.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::core::ObjectMeta;
use rand::seq::IndexedRandom;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use stanchion_api::policy::{POLICY_LABEL, PostgresPolicySpec, ROLE_LABEL};
use stanchion_kernel::apply::{self, Intent, Takeover};
use stanchion_kernel::redact::{FingerprintKey, SecretValues, Verdict};
use stanchion_kernel::{Problem, Reader};
use stanchion_postgres::scram;
use stanchion_roles::facts::Facts;

use crate::plans::label;
use crate::validate::invalid;

const VERIFIER: &str = "verifier";
const LENGTHS: std::ops::RangeInclusive<u32> = 16..=128;
const DEFAULT_LENGTH: u32 = 32;
const CHARACTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!@#$%^&*-_=+";

/// A role's password, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The role.
    pub role: String,
    /// Where it comes from.
    pub source: Source,
}

/// Where a password comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Source {
    /// A Secret of the user's.
    Kept { secret: String, key: String },
    /// A Secret that the operator makes.
    Made { secret: String, key: String, length: u32 },
}

/// Checks the passwords of a spec.
pub fn wishes(policy: &str, spec: &PostgresPolicySpec) -> Result<Vec<Wish>, Problem> {
    let mut wishes = Vec::new();
    for role in &spec.roles {
        let Some(password) = &role.password else { continue };
        let source = match (&password.secret_ref, &password.generate) {
            (Some(secret), None) => Source::Kept {
                secret: secret.name.clone(),
                key: password.secret_key.clone().unwrap_or_else(|| role.name.clone()),
            },
            (None, Some(generate)) => {
                let length = generate.length.unwrap_or(DEFAULT_LENGTH);
                let key = generate.secret_key.clone().unwrap_or_else(|| "password".into());
                if !LENGTHS.contains(&length) {
                    return Err(invalid(format!(
                        "role \"{}\": password.generate.length is {length}, and must be from 16 to 128",
                        role.name
                    )));
                }
                if key == VERIFIER {
                    return Err(invalid(format!(
                        "role \"{}\": password.generate.secretKey \"{VERIFIER}\" is where the verifier is kept",
                        role.name
                    )));
                }
                let usual = || secret_name(policy, &role.name);
                Source::Made {
                    secret: generate.secret_name.clone().unwrap_or_else(usual),
                    key,
                    length,
                }
            }
            _ => {
                return Err(invalid(format!(
                    "role \"{}\": password needs exactly one of secretRef and generate",
                    role.name
                )));
            }
        };
        wishes.push(Wish {
            role: role.name.clone(),
            source,
        });
    }
    Ok(wishes)
}

/// `{policy}-pgr-{role}`, as far as a name can say it. A role whose name had to be changed is told apart by a hash.
fn secret_name(policy: &str, role: &str) -> String {
    let plain: String = role
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let plain = plain.trim_matches('-');
    let name = format!("{policy}-pgr-{plain}");
    let is_plain = role.replace('_', "-") == plain;
    if is_plain && name.len() <= 253 {
        return name;
    }
    let hash = format!("{:x}", Sha256::digest(role));
    let short = name.get(..name.floor_char_boundary(240)).unwrap_or_default();
    format!("{}-{}", short.trim_end_matches('-'), hash.get(..8).unwrap_or_default())
}

/// Reads Secrets, each once a pass.
pub struct Secrets<'a> {
    read: &'a Reader,
    found: BTreeMap<String, Option<Secret>>,
}

impl<'a> Secrets<'a> {
    /// Nothing read yet.
    pub fn new(read: &'a Reader) -> Self {
        Self {
            read,
            found: BTreeMap::new(),
        }
    }

    /// The value of a key, without the line break that an editor leaves behind.
    pub async fn value(&mut self, name: &str, key: &str) -> Result<SecretString, Problem> {
        let secret = self.get(name).await?.cloned().ok_or_else(|| {
            Problem::dependency("SecretFetchFailed", format!("Secret {name} does not exist"))
        })?;
        let value = SecretValues::from(secret)
            .text(key)
            .map_err(|error| Problem::dependency("SecretMissing", format!("Secret {name} {error}")))?;
        Ok(value.expose_secret().trim_end_matches(['\r', '\n']).into())
    }

    async fn get(&mut self, name: &str) -> Result<Option<&Secret>, Problem> {
        if !self.found.contains_key(name) {
            let secret: Option<Secret> = self.read.get(name).await?;
            self.found.insert(name.to_owned(), secret);
        }
        Ok(self.found.get(name).and_then(Option::as_ref))
    }

    /// The names of all that were asked for.
    pub fn names(&self) -> Vec<String> {
        self.found.keys().cloned().collect()
    }
}

/// The passwords as they shall be.
#[derive(Default)]
pub struct Passwords {
    /// By role: what the server gets, and the mark by which it is known again.
    values: BTreeMap<String, (SecretString, String)>,
    /// Roles whose password is not the one that was applied last, as far as the marks tell.
    changed: BTreeSet<String>,
    /// Secrets to write before the passwords in them are set.
    pub secrets: Vec<Intent>,
}

/// Reads and makes the passwords of a policy.
pub async fn resolve(
    wishes: &[Wish],
    secrets: &mut Secrets<'_>,
    key: &FingerprintKey,
    before: &BTreeMap<String, String>,
) -> Result<Passwords, Problem> {
    let mut passwords = Passwords::default();
    let subject = secrets.read.subject().clone();
    for wish in wishes {
        let value = match &wish.source {
            Source::Kept { secret, key } => {
                let value = secrets.value(secret, key).await?;
                if value.expose_secret().is_empty() {
                    return Err(Problem::dependency(
                        "SecretMissing",
                        format!("Secret {secret}, key \"{key}\" is empty: role \"{}\" needs a password", wish.role),
                    ));
                }
                value
            }
            Source::Made { secret, key, length } => {
                let live = secrets.get(secret).await?.cloned();
                let (value, child) = made(wish, live.as_ref(), (secret, key), *length, &subject.key.name)?;
                let takeover = match &live {
                    Some(live) if live.labels().get(POLICY_LABEL) == Some(&label(&subject.key.name)) => Takeover::Adopt,
                    _ => Takeover::Refuse,
                };
                let intent = Intent::new(&child, &subject)?;
                passwords
                    .secrets
                    .extend(apply::decide(intent, live.as_ref(), &subject, takeover)?);
                value
            }
        };
        let field = format!("password/{}", wish.role);
        let known = before
            .get(&wish.role)
            .is_some_and(|mark| key.compare(mark, &subject.uid, &field, &[&value]) == Verdict::Same);
        if !known {
            passwords.changed.insert(wish.role.clone());
        }
        let mark = key.mark(&subject.uid, &field, &[&value]);
        passwords.values.insert(wish.role.clone(), (value, mark));
    }
    Ok(passwords)
}

/// A generated password as the server gets it, and the Secret to keep it in. The server gets the very verifier that the
/// Secret has: a pooler that passes logins through needs the same one.
fn made(
    wish: &Wish,
    live: Option<&Secret>,
    (name, key): (&str, &str),
    length: u32,
    policy: &str,
) -> Result<(SecretString, Secret), Problem> {
    let values = live.cloned().map(SecretValues::from).unwrap_or_default();
    let clear = match values.text(key) {
        Ok(clear) if !clear.expose_secret().is_empty() => clear,
        _ => generate(length),
    };
    let kept = values
        .text(VERIFIER)
        .ok()
        .filter(|verifier| scram::matches(&clear, verifier.expose_secret()) == Some(true));
    let verifier = match kept {
        Some(verifier) => verifier,
        None => scram::verifier(&clear)
            .map_err(|error| Problem::transient("NoRandomness", error.to_string()))?,
    };
    let bytes = |value: &SecretString| ByteString(value.expose_secret().as_bytes().to_vec());
    let secret = Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(BTreeMap::from([
                (POLICY_LABEL.to_owned(), label(policy)),
                (ROLE_LABEL.to_owned(), label(&wish.role)),
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
    Ok((verifier, secret))
}

fn generate(length: u32) -> SecretString {
    let mut random = rand::rng();
    let characters = (0..length).filter_map(|_| CHARACTERS.choose(&mut random));
    characters.map(|byte| char::from(*byte)).collect::<String>().into()
}

impl Passwords {
    /// Those that the engine should look at: all of them where it can compare with what the server has, otherwise
    /// those that have changed, and those of roles that are not there.
    pub fn for_engine(&self, facts: &Facts) -> BTreeMap<String, SecretString> {
        let due = |role: &String| {
            facts.server.reads_passwords || self.changed.contains(role) || !facts.roles.contains_key(role)
        };
        self.values
            .iter()
            .filter(|(role, _)| due(role))
            .map(|(role, (value, _))| (role.clone(), value.clone()))
            .collect()
    }

    /// The marks of all, by role.
    pub fn marks(&self) -> BTreeMap<String, String> {
        self.values
            .iter()
            .map(|(role, (_, mark))| (role.clone(), mark.clone()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish() -> Wish {
        Wish {
            role: "Alice_X".into(),
            source: Source::Kept {
                secret: "s".into(),
                key: "k".into(),
            },
        }
    }

    #[test]
    fn names_of_secrets_are_names_and_differ() {
        assert_eq!(secret_name("p", "app_user"), "p-pgr-app-user");
        let (a, b) = (secret_name("p", "App User"), secret_name("p", "app user"));
        assert!(a.starts_with("p-pgr-app-user-") && a != b, "{a} {b}");
        assert!(secret_name("p", &"ä".repeat(63)).len() <= 253);
    }

    #[test]
    fn a_generated_password_stays_and_its_verifier_with_it() {
        let (verifier, secret) = made(&wish(), None, ("s", "password"), 32, "p").unwrap();
        let values = SecretValues::from(secret.clone());
        let clear = values.text("password").unwrap();
        assert_eq!(clear.expose_secret().len(), 32);
        assert_eq!(scram::matches(&clear, verifier.expose_secret()), Some(true));
        let (again, same) = made(&wish(), Some(&secret), ("s", "password"), 32, "p").unwrap();
        assert_eq!(again.expose_secret(), verifier.expose_secret());
        assert_eq!(same.data, secret.data);
        let (other, _) = made(&wish(), None, ("s", "password"), 32, "p").unwrap();
        assert_ne!(other.expose_secret(), verifier.expose_secret());
    }

    #[test]
    fn a_password_that_was_changed_in_the_secret_gets_a_new_verifier() {
        let (_, mut secret) = made(&wish(), None, ("s", "password"), 32, "p").unwrap();
        secret
            .data
            .as_mut()
            .unwrap()
            .insert("password".into(), ByteString(b"chosen by hand".to_vec()));
        let (verifier, changed) = made(&wish(), Some(&secret), ("s", "password"), 32, "p").unwrap();
        assert_eq!(scram::matches(&"chosen by hand".into(), verifier.expose_secret()), Some(true));
        assert_ne!(changed.data, secret.data);
    }
}
