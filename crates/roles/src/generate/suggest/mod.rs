//! Finds profiles in a flat manifest.
//!
//! Roles that have the same privileges in one schema each, and whose names derive from the schema in the same way,
//! become one profile. The result expands to exactly the same state; otherwise the role stays as it was.

mod collapse;
mod fold;
mod shape;

use std::collections::BTreeMap;

use collapse::collapse;
use fold::fold;
use shape::{Index, Shape, shape};

use crate::expand::expand;
use crate::facts::Facts;
use crate::manifest::Manifest;

/// Folds roles into profiles. A profile must cover at least `min_schemas` schemas.
pub fn suggest_profiles(flat: &Manifest, facts: &Facts, min_schemas: usize) -> Manifest {
    let mut collapsed = flat.clone();
    collapse(&mut collapsed, facts);
    let mut clusters: BTreeMap<Shape, Vec<(String, String)>> = BTreeMap::new();
    let index = Index::of(&collapsed);
    for role in &collapsed.roles {
        if let Some((shape, schema)) = shape(role, &index) {
            clusters
                .entry(shape)
                .or_default()
                .push((role.name.clone(), schema));
        }
    }
    let mut clusters: Vec<_> = clusters
        .into_iter()
        .filter(|(_, roles)| roles.len() >= min_schemas)
        .collect();
    clusters.sort_by(|a, b| b.1.len().cmp(&a.1.len()).then_with(|| a.0.cmp(&b.0)));
    let mut result = collapsed.clone();
    for (shape, roles) in clusters {
        let folded = fold(&result, &shape, &roles, min_schemas);
        // Verify that the state is the same.
        if let Some(folded) = folded.filter(|folded| same_state(folded, flat, facts)) {
            result = folded;
        }
    }
    result
}

/// Whether both manifests have the same effect on everything that exists.
fn same_state(a: &Manifest, b: &Manifest, facts: &Facts) -> bool {
    let (a, b) = (expand(a), expand(b));
    let quiet = |desired: &crate::expand::Desired| {
        crate::diff::diff(desired, facts, &crate::diff::Options::default()).is_ok_and(|plan| plan.is_empty())
    };
    a.roles == b.roles
        && a.schemas == b.schemas
        && a.default_privileges == b.default_privileges
        && a.memberships == b.memberships
        && quiet(&a)
}
