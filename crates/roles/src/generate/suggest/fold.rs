//! Turns similar roles into a profile.

use std::collections::{BTreeSet, HashMap};

use super::shape::Shape;
use crate::manifest::{DefaultPrivilegeGrant, Ensure, Manifest, Profile, ProfileGrant, ProfileObject};

/// The manifest with these roles as a profile; `None` if too few of them can be bound.
pub(super) fn fold(
    manifest: &Manifest,
    shape: &Shape,
    roles: &[(String, String)],
    min_schemas: usize,
) -> Option<Manifest> {
    if manifest.profiles.contains_key(&shape.profile) {
        return None;
    }
    let mut folded = manifest.clone();
    let places: HashMap<&str, usize> = manifest
        .schemas
        .iter()
        .enumerate()
        .map(|(place, schema)| (schema.name.as_str(), place))
        .collect();
    let mut bound = BTreeSet::new();
    for (role, name) in roles {
        let schema = folded.schemas.get_mut(*places.get(name.as_str())?)?;
        let default = "{schema}-{profile}";
        // A schema has one pattern for all of its profiles.
        let current = schema.role_pattern.as_deref().unwrap_or(default);
        if schema.profiles.is_empty() || current == shape.pattern {
            schema.role_pattern = (shape.pattern != default).then(|| shape.pattern.clone());
            schema.profiles.push(shape.profile.clone());
            bound.insert(role.as_str());
        }
    }
    if bound.len() < min_schemas {
        return None;
    }
    folded.profiles.insert(shape.profile.clone(), profile(shape));
    folded.roles.retain(|role| !bound.contains(role.name.as_str()));
    folded.grants.retain(|grant| !bound.contains(grant.role.as_str()));
    for entry in &mut folded.default_privileges {
        entry
            .grant
            .retain(|grant| !grant.role.as_deref().is_some_and(|role| bound.contains(role)));
    }
    folded.default_privileges.retain(|entry| !entry.grant.is_empty());
    Some(folded)
}

fn profile(shape: &Shape) -> Profile {
    Profile {
        login: shape.login,
        inherit: shape.inherit,
        comment: (!shape.commented).then(String::new),
        grants: shape
            .grants
            .iter()
            .map(|(kind, name, privileges, option)| ProfileGrant {
                privileges: privileges.clone(),
                object: ProfileObject {
                    kind: *kind,
                    name: name.clone(),
                    except: vec![],
                    columns: vec![],
                },
                ensure: Ensure::Present,
                with_grant_option: *option,
            })
            .collect(),
        default_privileges: shape
            .defaults
            .iter()
            .map(|(on_type, privileges, with_grant_option)| DefaultPrivilegeGrant {
                role: None,
                privileges: privileges.clone(),
                on_type: *on_type,
                ensure: Ensure::Present,
                with_grant_option: *with_grant_option,
            })
            .collect(),
        ..Profile::default()
    }
}
