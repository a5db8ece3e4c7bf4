//! Bundles: several documents of several teams for one database, without overlap.
//!
//! A bundle lists its documents. Each document declares its scope and must stay within it, and no two documents may
//! manage the same item. Composed, a bundle is one manifest with an explicit scope.

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
#[serde(default)]
pub struct Bundle {
    /// Settings for all documents.
    pub shared: Shared,
    /// The documents.
    pub sources: Vec<SourceFile>,
}

/// Settings that all documents of a bundle share.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Shared {
    /// As in a manifest.
    pub default_owner: Option<String>,
    /// As in a manifest.
    pub role_pattern: Option<String>,
    /// As in a manifest.
    pub auth_providers: Vec<AuthProvider>,
    /// As in a manifest.
    pub profiles: BTreeMap<String, Profile>,
}

/// A document of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceFile {
    /// Its path, relative to the bundle's file.
    pub file: String,
}

/// One team's part of a bundle.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[allow(missing_docs)] // As in a manifest, but for the first two.
pub struct Document {
    /// Its name.
    pub policy: PolicyName,
    /// What the document manages.
    pub scope: DocumentScope,
    pub schemas: Vec<Schema>,
    pub roles: Vec<Role>,
    pub grants: Vec<Grant>,
    pub default_privileges: Vec<DefaultPrivilege>,
    pub memberships: Vec<Membership>,
    pub retirements: Vec<Retirement>,
}

/// The name of a document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PolicyName {
    /// Default: the name of its file.
    pub name: Option<String>,
}

/// What a document manages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DocumentScope {
    /// Roles that the document may declare or retire.
    pub roles: Vec<String>,
    /// Schemas, with the facets that the document manages.
    pub schemas: Vec<ScopedSchema>,
}

/// A schema that a document manages, completely or in part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScopedSchema {
    /// The schema.
    pub name: String,
    /// Its owner, its bindings, or both.
    pub facets: Vec<Facet>,
}

/// A part of a schema that a document can manage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Facet {
    /// Existence and ownership.
    Owner,
    /// Profiles and privileges.
    Bindings,
}

impl Facet {
    /// The facet's name in a bundle.
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
    /// The file's path as in the bundle.
    pub file: String,
    /// Its content.
    pub document: Document,
}

impl BundleSource {
    /// The document's name for messages.
    pub fn name(&self) -> &str {
        self.document.policy.name.as_deref().unwrap_or(&self.file)
    }
}
