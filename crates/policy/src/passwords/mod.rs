//! Passwords of roles: from Secrets of the user's, and from Secrets that the operator makes.

mod generated;
mod secrets;
mod wish;

use std::collections::{BTreeMap, BTreeSet};

use kube::ResourceExt;
use secrecy::{ExposeSecret, SecretString};
use stanchion_api::policy::POLICY_LABEL;
use stanchion_kernel::Problem;
use stanchion_kernel::apply::{self, Intent, Takeover};
use stanchion_kernel::redact::{FingerprintKey, Verdict};
use stanchion_roles::facts::Facts;

pub use secrets::Secrets;
pub use wish::{Source, Wish, wishes};

use crate::plans::label;
use generated::made;

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
                        format!(
                            "Secret {secret}, key \"{key}\" is empty: role \"{}\" needs a password",
                            wish.role
                        ),
                    ));
                }
                value
            }
            Source::Made { secret, key, length } => {
                let live = secrets.get(secret).await?.cloned();
                let (value, child) = made(wish, live.as_ref(), (secret, key), *length, &subject.key.name)?;
                let takeover = match &live {
                    Some(live) if live.labels().get(POLICY_LABEL) == Some(&label(&subject.key.name)) => {
                        Takeover::Adopt
                    }
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
