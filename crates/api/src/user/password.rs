//! Where a role's password comes from, and when it changes.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{duration, moment};

/// A password that the operator makes, or the absence of one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Password {
    /// The role has no password (`PASSWORD NULL`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    /// How the value of a Secret is sent: as a SCRAM verifier, or as it stands. A value that is a verifier
    /// already is never hashed again.
    #[serde(default)]
    pub encoding: Encoding,
    /// The operator makes the password and writes it into the credentials Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generate: Option<Generate>,
    /// When a generated password is replaced.
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
    /// At least so many lower-case letters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 32))]
    pub min_lower: Option<u32>,
    /// At least so many upper-case letters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 32))]
    pub min_upper: Option<u32>,
    /// At least so many digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 32))]
    pub min_digits: Option<u32>,
    /// At least so many symbols; none at all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 32))]
    pub min_symbols: Option<u32>,
    /// Which symbols.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub symbols: Option<String>,
    /// Characters that are never used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub exclude: Option<String>,
    /// The first character is a letter.
    #[serde(default = "yes")]
    pub first_letter: bool,
}

fn default_length() -> u32 {
    32
}

pub(super) fn yes() -> bool {
    true
}

/// When and how a generated password is replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rotation {
    /// How often, for instance `720h`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(pattern(duration::PATTERN))]
    pub interval: Option<String>,
    /// In place, or with two logins that take turns.
    #[serde(default)]
    pub strategy: RotationStrategy,
    /// How long the login that was replaced still works (`DualUser`).
    #[serde(default = "default_grace")]
    #[schemars(pattern(duration::PATTERN))]
    pub grace_period: String,
    /// Ends the sessions of the old password.
    #[serde(default)]
    pub terminate_sessions: bool,
    /// Rotates once, when this time has come.
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

/// How a password is replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum RotationStrategy {
    #[default]
    InPlace,
    DualUser,
}

/// Other ways to log in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Auth {
    /// A cloud's own identities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iam: Option<Iam>,
}

/// Login by a cloud identity: the role becomes a member of the cloud's login role and has no password.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Iam {
    /// The cloud.
    pub provider: IamProvider,
    /// The cloud's login role, where it is not the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub role_name: Option<String>,
}

/// Clouds with database logins of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum IamProvider {
    Aws,
    Gcp,
    Azure,
}
