//! Passwords from the environment.

use std::collections::BTreeMap;

use secrecy::SecretString;

use super::Failure;
use super::console::Console;
use crate::expand::Desired;

/// How to handle a variable that is not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unset {
    /// The command fails.
    Fails,
    /// The plan is only displayed: it shows that the password would be set.
    Planned,
}

/// The password of each role that takes one from the environment. The operator resolves those from Secrets.
pub(super) fn resolve(
    desired: &Desired,
    unset: Unset,
    console: &mut Console<'_>,
) -> Result<BTreeMap<String, SecretString>, Failure> {
    let mut passwords = BTreeMap::new();
    for (name, role) in &desired.roles {
        let Some(password) = &role.password else { continue };
        let Some(variable) = &password.from_env else {
            console.warn(&format!(
                "role \"{name}\" has its password from a Secret: it is left alone here"
            ));
            continue;
        };
        match console.variable(variable) {
            Some(value) if !value.is_empty() => {
                passwords.insert(name.clone(), SecretString::from(value));
            }
            Some(_) => {
                return Err(Failure::new(format!(
                    "failed to resolve role passwords: environment variable {variable} of role \"{name}\" is empty"
                )));
            }
            None if unset == Unset::Planned => {
                passwords.insert(name.clone(), SecretString::default());
            }
            None => {
                return Err(Failure::new(format!(
                    "failed to resolve role passwords: environment variable {variable} of role \"{name}\" is not set"
                )));
            }
        }
    }
    Ok(passwords)
}
