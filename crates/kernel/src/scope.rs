//! The part of the cluster that an operator watches.

use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};

/// The whole cluster, or one namespace. An operator for several namespaces runs each controller once per namespace, so
/// that it needs no permissions outside of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Every namespace.
    Cluster,
    /// One namespace.
    Namespace(String),
}

impl Scope {
    /// The API of a kind within this scope.
    pub fn api<K>(&self, client: &Client) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        match self {
            Self::Cluster => Api::all(client.clone()),
            Self::Namespace(namespace) => Api::namespaced(client.clone(), namespace),
        }
    }

    /// The scopes for a list of namespaces; an empty list means the cluster.
    pub fn from_namespaces(namespaces: &[String]) -> Vec<Self> {
        if namespaces.is_empty() {
            return vec![Self::Cluster];
        }
        let mut unique: Vec<&String> = namespaces.iter().collect();
        unique.sort();
        unique.dedup();
        unique.into_iter().cloned().map(Self::Namespace).collect()
    }
}

impl std::fmt::Display for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Cluster => f.write_str("all namespaces"),
            Self::Namespace(namespace) => write!(f, "namespace {namespace}"),
        }
    }
}
