//! Roles, memberships and privileges as a graph.
//!
//! The JSON is pgroles' `pgroles.visual_graph.v1`; the other formats are for people.

mod build;
mod draw;

pub use build::{current, desired};
pub use draw::{dot, json, mermaid, tree};

use serde::Serialize;

/// A graph to draw.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Graph {
    /// `pgroles.visual_graph.v1`.
    pub schema_version: &'static str,
    /// Source and size of the graph.
    pub meta: Meta,
    /// Roles, and the objects that they hold privileges on.
    pub nodes: Vec<Node>,
    /// Memberships and privileges.
    pub edges: Vec<Edge>,
}

/// Source and size of a graph.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Meta {
    pub source: Source,
    pub role_count: usize,
    pub grant_count: usize,
    pub default_privilege_count: usize,
    pub membership_count: usize,
    pub collapsed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_scope: Option<ManagedScope>,
}

/// The scope of a bundle.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct ManagedScope {
    pub roles: Vec<String>,
    pub schemas: Vec<ManagedSchema>,
}

/// The managed part of a schema.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct ManagedSchema {
    pub name: String,
    pub owner: bool,
    pub bindings: bool,
}

impl From<&crate::expand::Scope> for ManagedScope {
    fn from(scope: &crate::expand::Scope) -> Self {
        let schema = |(name, facets): (&String, &crate::expand::ScopedSchema)| ManagedSchema {
            name: name.clone(),
            owner: facets.owner,
            bindings: facets.bindings,
        };
        Self {
            roles: scope.roles.iter().cloned().collect(),
            schemas: scope.schemas.iter().map(schema).collect(),
        }
    }
}

/// Source of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Source {
    Desired,
    Current,
}

/// A node of a graph.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Node {
    pub id: String,
    pub label: String,
    pub kind: NodeKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub login: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub privileges: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

/// Kinds of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum NodeKind {
    Role,
    ExternalPrincipal,
    GrantTarget,
    DefaultPrivilegeTarget,
}

/// An edge between nodes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Edge {
    pub source: String,
    pub target: String,
    pub kind: EdgeKind,
    pub label: String,
}

/// Kinds of edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum EdgeKind {
    Membership,
    Grant,
    DefaultPrivilege,
}
