//! JWTs and their signing keys.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duration;

/// JWTs and their signing keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Jwt {
    /// An existing JWT secret, instead of a generated one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<JwtSecretRef>,
    /// Lifetime of a user's token, for instance `1h`.
    #[serde(default = "one_hour")]
    #[schemars(length(max = 32), pattern(duration::PATTERN))]
    pub expiry: String,
    /// How long the previous signing key and API keys stay valid after a rotation, for instance `24h`.
    #[serde(default = "one_day")]
    #[schemars(length(max = 32), pattern(duration::PATTERN))]
    pub rotation_grace_period: String,
}

impl Default for Jwt {
    fn default() -> Self {
        Self {
            secret_ref: None,
            expiry: one_hour(),
            rotation_grace_period: one_day(),
        }
    }
}

fn one_hour() -> String {
    "1h".into()
}

fn one_day() -> String {
    "24h".into()
}

/// A key of a Secret whose value has at least 32 characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JwtSecretRef {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Key in the Secret.
    #[serde(default = "default_key")]
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

fn default_key() -> String {
    "jwt-secret".into()
}
