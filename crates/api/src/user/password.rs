//! Source and rotation of a role's password.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{duration, moment};

/// Options for generated passwords, and for roles without a password.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Password {
    /// Whether the role has no password (`PASSWORD NULL`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    /// How a password from a Secret is sent to the server: as a SCRAM verifier, or unchanged. A value that already is a
    /// verifier is not hashed again.
    #[serde(default)]
    pub encoding: Encoding,
    /// The operator generates the password and writes it to the credentials Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generate: Option<Generate>,
    /// When a generated password is rotated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotation: Option<Rotation>,
}

/// How a password is sent to the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum Encoding {
    #[default]
    #[serde(rename = "scram-sha-256")]
    ScramSha256,
    #[serde(rename = "passthrough")]
    Passthrough,
}

/// Rules for a generated password.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Generate {
    /// Number of characters.
    #[serde(default = "default_length")]
    #[schemars(range(min = 16, max = 128))]
    pub length: u32,
    /// Minimum number of lower-case letters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 32))]
    pub min_lower: Option<u32>,
    /// Minimum number of upper-case letters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 32))]
    pub min_upper: Option<u32>,
    /// Minimum number of digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 32))]
    pub min_digits: Option<u32>,
    /// Minimum number of symbols. By default the password contains no symbols.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 32))]
    pub min_symbols: Option<u32>,
    /// Symbols to choose from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub symbols: Option<String>,
    /// Characters that are never used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub exclude: Option<String>,
    /// Whether the first character is a letter.
    #[serde(default = "yes")]
    pub first_letter: bool,
}

fn default_length() -> u32 {
    32
}

pub(super) fn yes() -> bool {
    true
}

/// When and how a generated password is rotated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rotation {
    /// Interval between rotations, for instance `720h`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(pattern(duration::PATTERN))]
    pub interval: Option<String>,
    /// `InPlace` replaces the password. `DualUser` alternates between two logins.
    #[serde(default)]
    pub strategy: RotationStrategy,
    /// How long the previous login still works (`DualUser`).
    #[serde(default = "default_grace")]
    #[schemars(pattern(duration::PATTERN))]
    pub grace_period: String,
    /// Whether to terminate sessions of the previous password.
    #[serde(default)]
    pub terminate_sessions: bool,
    /// Rotates the password once, at this time.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "moment::optional"
    )]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub at: Option<Timestamp>,
}

fn default_grace() -> String {
    "24h".into()
}

/// How a password is rotated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum RotationStrategy {
    #[default]
    InPlace,
    DualUser,
}

/// Login methods other than passwords.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Auth {
    /// Login with a cloud identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iam: Option<Iam>,
}

/// Login with a cloud identity. The role becomes a member of the cloud's login role and has no password.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Iam {
    /// The cloud provider.
    pub provider: IamProvider,
    /// The cloud's login role. Defaults to the provider's usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub role_name: Option<String>,
}

/// Cloud providers with IAM login for databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum IamProvider {
    Aws,
    Gcp,
    Azure,
}
