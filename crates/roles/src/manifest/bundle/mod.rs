//! Bundles: several teams, one database, no overlap.
//!
//! A bundle names its documents; each document says what it manages (its scope) and must stay inside of it,
//! and no two documents may manage the same thing. Composed, a bundle is one manifest with an explicit scope.

mod claims;
mod compose;

pub use claims::{Claims, ManagedKey, SchemaFacet};
pub use compose::{Composed, compose};

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::types::{AuthProvider, DefaultPrivilege, Grant, Membership, Profile, Retirement, Role, Schema};

/// The root of a bundle.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bundle {
    /// What all documents can use.
    #[serde(default)]
    pub shared: Shared,
    /// The documents.
    #[serde(default)]
    pub sources: Vec<SourceFile>,
}

/// What all documents of a bundle can use.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shared {
    /// As in a manifest.
    #[serde(default)]
    pub default_owner: Option<String>,
    /// As in a manifest.
    #[serde(default)]
    pub role_pattern: Option<String>,
    /// As in a manifest.
    #[serde(default)]
    pub auth_providers: Vec<AuthProvider>,
    /// As in a manifest.
    #[serde(default)]
    pub profiles: BTreeMap<String, Profile>,
}

/// A document of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceFile {
    /// Its file, relative to the bundle's.
    pub file: String,
}

/// One team's part of a bundle.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)] // As in a manifest, but for the first two.
pub struct Document {
    /// What it is called.
    #[serde(default)]
    pub policy: PolicyName,
    /// What it manages.
    #[serde(default)]
    pub scope: DocumentScope,
    #[serde(default)]
    pub schemas: Vec<Schema>,
    #[serde(default)]
    pub roles: Vec<Role>,
    #[serde(default)]
    pub grants: Vec<Grant>,
    #[serde(default)]
    pub default_privileges: Vec<DefaultPrivilege>,
    #[serde(default)]
    pub memberships: Vec<Membership>,
    #[serde(default)]
    pub retirements: Vec<Retirement>,
}

/// What a document is called.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyName {
    /// Default: its file.
    #[serde(default)]
    pub name: Option<String>,
}

/// What a document manages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DocumentScope {
    /// Roles that it may declare or retire.
    #[serde(default)]
    pub roles: Vec<String>,
    /// Schemas, and what of them.
    #[serde(default)]
    pub schemas: Vec<ScopedSchema>,
}

/// What a document manages of a schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScopedSchema {
    /// The schema.
    pub name: String,
    /// Its owner, its bindings, or both.
    pub facets: Vec<Facet>,
}

/// A part of what can be managed of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Facet {
    /// Existence and ownership.
    Owner,
    /// Profiles and privileges.
    Bindings,
}

impl Facet {
    /// The name in a bundle.
    pub fn name(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Bindings => "bindings",
        }
    }
}

/// A document and the file it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct BundleSource {
    /// The file as the bundle names it.
    pub file: String,
    /// Its content.
    pub document: Document,
}

impl BundleSource {
    /// What the document is called in messages.
    pub fn name(&self) -> &str {
        self.document.policy.name.as_deref().unwrap_or(&self.file)
    }
}
