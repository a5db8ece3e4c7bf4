//! Records which document of a bundle manages what.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::Facet;
use crate::model::ObjectType;
use crate::plan::DefaultScope;

/// An item that exactly one document manages.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum ManagedKey {
    Role {
        name: String,
    },
    SchemaFacet(SchemaFacet),
    Grant {
        role: String,
        object_type: ObjectType,
        schema: Option<String>,
        name: Option<String>,
    },
    DefaultPrivilege {
        owner: String,
        #[serde(serialize_with = "as_scope")]
        scope: Option<String>,
        on_type: ObjectType,
        grantee: String,
    },
    Membership {
        role: String,
        member: String,
    },
}

/// Serializes the scope as in the plan, where no schema means the global scope.
#[allow(clippy::ref_option)] // As serde calls it.
fn as_scope<S: Serializer>(schema: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    DefaultScope::from(schema.as_deref()).serialize(serializer)
}

/// A facet of a schema.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[allow(missing_docs)]
pub struct SchemaFacet {
    pub schema: String,
    pub facet: Facet,
}

impl std::fmt::Display for ManagedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Role { name } => write!(f, "role \"{name}\""),
            Self::SchemaFacet(SchemaFacet { schema, facet }) => {
                write!(f, "schema facet \"{schema}.{}\"", facet.name())
            }
            Self::Grant {
                role,
                object_type,
                schema,
                name,
            } => {
                let place: Vec<_> = [schema, name].into_iter().flatten().map(String::as_str).collect();
                write!(f, "grant to \"{role}\" on {object_type} \"{}\"", place.join("."))
            }
            Self::DefaultPrivilege {
                owner,
                scope,
                on_type,
                grantee,
            } => {
                let place = scope.as_deref().unwrap_or("every schema");
                write!(
                    f,
                    "default privilege of \"{grantee}\" on each {on_type} of \"{owner}\" in {place}"
                )
            }
            Self::Membership { role, member } => write!(f, "membership \"{role}\" -> \"{member}\""),
        }
    }
}

/// Which document manages what.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Claims(BTreeMap<ManagedKey, String>);

impl Claims {
    /// Claims an item for a document. The error is the document that already manages it.
    pub(super) fn claim(&mut self, key: ManagedKey, document: &str) -> Result<(), String> {
        match self.0.get(&key) {
            Some(holder) if holder != document => Err(holder.clone()),
            _ => {
                self.0.insert(key, document.to_owned());
                Ok(())
            }
        }
    }

    /// The first of the keys that a document manages, with that document.
    pub fn owner(&self, keys: impl IntoIterator<Item = ManagedKey>) -> Option<(ManagedKey, &str)> {
        keys.into_iter()
            .find_map(|key| self.0.get(&key).map(|document| (key.clone(), document.as_str())))
    }
}
