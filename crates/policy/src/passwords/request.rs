//! Validates the passwords in a spec.

use sha2::{Digest, Sha256};
use stanchion_api::policy::PostgresPolicySpec;
use stanchion_kernel::Problem;

use super::generated::VERIFIER;
use crate::policy::validate::invalid;

const LENGTHS: std::ops::RangeInclusive<u32> = 16..=128;
const DEFAULT_LENGTH: u32 = 32;

/// A role's password and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PasswordRequest {
    pub role: String,
    pub source: Source,
}

/// The source of a password.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Source {
    /// A Secret of the user.
    Kept { secret: String, key: String },
    /// A Secret that the operator creates.
    Made {
        secret: String,
        key: String,
        length: u32,
    },
}

impl Source {
    /// The name of the Secret.
    pub(super) fn secret(&self) -> &str {
        match self {
            Self::Kept { secret, .. } | Self::Made { secret, .. } => secret,
        }
    }
}

/// Validates the passwords of a spec.
pub(crate) fn requests(policy: &str, spec: &PostgresPolicySpec) -> Result<Vec<PasswordRequest>, Problem> {
    let mut requests = Vec::new();
    for role in spec.roles.iter().filter(|role| !role.external) {
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
        requests.push(PasswordRequest {
            role: role.name.clone(),
            source,
        });
    }
    Ok(requests)
}

/// `{policy}-pgr-{role}`, restricted to valid characters. If the role's name had to be changed, a hash keeps it unique.
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
    format!(
        "{}-{}",
        short.trim_end_matches('-'),
        hash.get(..8).unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_names_and_differ() {
        assert_eq!(secret_name("p", "app_user"), "p-pgr-app-user");
        let (a, b) = (secret_name("p", "App User"), secret_name("p", "app user"));
        assert!(a.starts_with("p-pgr-app-user-") && a != b, "{a} {b}");
        assert!(secret_name("p", &"ä".repeat(63)).len() <= 253);
    }
}
