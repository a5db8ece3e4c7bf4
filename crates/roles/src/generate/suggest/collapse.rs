//! Replaces grants on each object by one wildcard.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::Facts;
use crate::manifest::Manifest;
use crate::model::{ObjectType, Privilege};

/// Role, schema, kind, privileges and grant option: what grants must share to become one wildcard.
type SameGrant = (String, String, ObjectType, Vec<Privilege>, Option<bool>);

/// Writes `*` if a role has the same privileges on every object of a kind in a schema.
pub(super) fn collapse(manifest: &mut Manifest, facts: &Facts) {
    let mut inventory: BTreeMap<(&str, ObjectType), usize> = BTreeMap::new();
    for object in facts
        .objects
        .iter()
        .filter(|object| object.column.is_none() && object.in_scope)
    {
        if let Some(schema) = &object.schema {
            *inventory.entry((&**schema, object.kind)).or_default() += 1;
        }
    }
    let mut groups: BTreeMap<SameGrant, Vec<usize>> = BTreeMap::new();
    for (place, grant) in manifest
        .grants
        .iter()
        .enumerate()
        .filter(|(_, grant)| grant.object.columns.is_empty())
    {
        if let Some(schema) = &grant.object.schema {
            let key = (
                grant.role.clone(),
                schema.clone(),
                grant.object.kind,
                grant.privileges.clone(),
                grant.with_grant_option,
            );
            groups.entry(key).or_default().push(place);
        }
    }
    let mut gone = BTreeSet::new();
    for ((_, schema, kind, ..), places) in &groups {
        if inventory.get(&(schema.as_str(), *kind)) == Some(&places.len()) {
            let mut places = places.iter();
            if let Some(first) = places.next().and_then(|place| manifest.grants.get_mut(*place)) {
                first.object.name = Some("*".to_owned());
            }
            gone.extend(places.copied());
        }
    }
    let mut place = 0;
    manifest.grants.retain(|_| {
        place += 1;
        !gone.contains(&(place - 1))
    });
}
