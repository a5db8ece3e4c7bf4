//! The role names that a manifest declares or generates.

use std::collections::{BTreeMap, BTreeSet};

use super::super::types::{Manifest, Schema};
use crate::expand::{generated_name, pattern_of};
use crate::model::PUBLIC;

/// The names that rules can refer to.
pub(super) struct Names<'a> {
    /// Declared roles by name, with the index of the first declaration.
    roles: BTreeMap<&'a str, usize>,
    /// Generated roles: name → (schema, profile) of each binding that generates it.
    pub(super) generated: BTreeMap<String, Vec<(&'a Schema, &'a str)>>,
    pub(super) retired: BTreeSet<&'a str>,
    pub(super) external: BTreeSet<&'a str>,
}

impl<'a> Names<'a> {
    pub(super) fn of(manifest: &'a Manifest) -> Self {
        let mut generated: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for schema in &manifest.schemas {
            for profile in &schema.profiles {
                generated
                    .entry(generated_name(
                        pattern_of(manifest, schema),
                        &schema.name,
                        profile,
                    ))
                    .or_default()
                    .push((schema, profile.as_str()));
            }
        }
        let mut roles = BTreeMap::new();
        for (index, role) in manifest.roles.iter().enumerate() {
            roles.entry(role.name.as_str()).or_insert(index);
        }
        Self {
            roles,
            generated,
            retired: manifest
                .retirements
                .iter()
                .map(|retirement| retirement.role.as_str())
                .collect(),
            external: manifest
                .roles
                .iter()
                .filter(|role| role.external)
                .map(|role| role.name.as_str())
                .collect(),
        }
    }

    pub(super) fn is_declared(&self, role: &str) -> bool {
        self.roles.contains_key(role) || self.generated.contains_key(role)
    }

    pub(super) fn is_grantee(&self, role: &str) -> bool {
        role == PUBLIC || self.is_declared(role)
    }

    pub(super) fn first_declaration(&self, role: &str) -> Option<usize> {
        self.roles.get(role).copied()
    }

    pub(super) fn declared(&self) -> impl Iterator<Item = &str> {
        self.roles
            .keys()
            .copied()
            .chain(self.generated.keys().map(String::as_str))
    }
}
