//! Finding the profiles in a flat manifest.
//!
//! Roles that have the same privileges in one schema each, and whose names are made from the schema's in the same
//! way, are one profile. The result expands to exactly the same state, or the role stays as it was.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::expand::expand;
use crate::facts::Facts;
use crate::manifest::{
    DefaultPrivilege, DefaultPrivilegeGrant, Ensure, Grant, Manifest, Object, Profile, ProfileGrant,
    ProfileObject, Role,
};
use crate::model::{ObjectType, Privilege};

/// Folds what can be folded. A profile must serve at least `min_schemas` schemas.
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
        // The proof that nothing was lost on the way.
        if let Some(folded) = folded.filter(|folded| same_state(folded, flat, facts)) {
            result = folded;
        }
    }
    result
}

/// Role, schema, kind, privileges and grant option: what grants must share to be one wildcard.
type SameGrant = (String, String, ObjectType, Vec<Privilege>, Option<bool>);
/// Kind, name, privileges and grant option of a grant in a profile.
type RelativeGrant = (ObjectType, Option<String>, Vec<Privilege>, Option<bool>);

/// Same privileges on every object of a kind in a schema: `*`.
fn collapse(manifest: &mut Manifest, facts: &Facts) {
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

/// What belongs to whom.
struct Index<'a> {
    grants: HashMap<&'a str, Vec<&'a Grant>>,
    defaults: HashMap<&'a str, Vec<(&'a DefaultPrivilege, &'a DefaultPrivilegeGrant)>>,
    owners: HashMap<&'a str, Option<&'a String>>,
}

impl<'a> Index<'a> {
    fn of(manifest: &'a Manifest) -> Self {
        let mut index = Self {
            grants: HashMap::new(),
            defaults: HashMap::new(),
            owners: HashMap::new(),
        };
        for grant in &manifest.grants {
            index.grants.entry(&grant.role).or_default().push(grant);
        }
        for entry in &manifest.default_privileges {
            for grant in &entry.grant {
                if let Some(role) = &grant.role {
                    index.defaults.entry(role).or_default().push((entry, grant));
                }
            }
        }
        index.owners.extend(
            manifest
                .schemas
                .iter()
                .map(|schema| (schema.name.as_str(), schema.owner.as_ref())),
        );
        index
    }
}

/// What makes roles alike: how they are named after their schema, and what they are and may do in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Shape {
    pattern: String,
    profile: String,
    login: Option<bool>,
    inherit: Option<bool>,
    commented: bool,
    grants: BTreeSet<RelativeGrant>,
    defaults: BTreeSet<(ObjectType, Vec<Privilege>)>,
}

/// The shape of a role and its schema, if all it has is in one schema and fits into a profile.
fn shape(role: &Role, index: &Index<'_>) -> Option<(Shape, String)> {
    let plain = Role {
        name: role.name.clone(),
        login: role.login,
        inherit: role.inherit,
        comment: role.comment.clone(),
        ..Role::default()
    };
    let grants = index.grants.get(role.name.as_str())?;
    let schema = schema_of(&grants.first()?.object)?.to_owned();
    if *role != plain || grants.iter().any(|grant| !fits(grant, &schema)) {
        return None;
    }
    let (pattern, profile) = pattern(&role.name, &schema)?;
    let generated = format!("Generated from profile '{profile}' for schema '{schema}'");
    if role.comment.as_ref().is_some_and(|comment| *comment != generated) {
        return None;
    }
    let owner = *index.owners.get(schema.as_str())?;
    let mut defaults = BTreeSet::new();
    for (entry, grant) in index.defaults.get(role.name.as_str()).into_iter().flatten() {
        if entry.schema.as_ref() != Some(&schema) || entry.owner.as_ref() != owner {
            return None;
        }
        defaults.insert((grant.on_type, grant.privileges.clone()));
    }
    let grants = grants
        .iter()
        .map(|grant| {
            let name = (grant.object.kind != ObjectType::Schema)
                .then(|| grant.object.name.clone())
                .flatten();
            (
                grant.object.kind,
                name,
                grant.privileges.clone(),
                grant.with_grant_option,
            )
        })
        .collect();
    let commented = role.comment.is_some();
    Some((
        Shape {
            pattern,
            profile,
            login: role.login,
            inherit: role.inherit,
            commented,
            grants,
            defaults,
        },
        schema,
    ))
}

fn schema_of(object: &Object) -> Option<&str> {
    match object.kind {
        ObjectType::Schema => object.name.as_deref(),
        _ => object.schema.as_deref(),
    }
}

fn fits(grant: &Grant, schema: &str) -> bool {
    schema_of(&grant.object) == Some(schema)
        && grant.object.columns.is_empty()
        && grant.ensure == Ensure::Present
}

/// `app-reader` in schema `app` is `{schema}-{profile}` with profile `reader`.
fn pattern(role: &str, schema: &str) -> Option<(String, String)> {
    let separator = |c: char| matches!(c, '-' | '_' | '.');
    if let Some(rest) = role.strip_prefix(schema) {
        let profile = rest
            .strip_prefix(separator)
            .filter(|profile| !profile.is_empty())?;
        let between = rest.strip_suffix(profile)?;
        return Some((format!("{{schema}}{between}{{profile}}"), profile.to_owned()));
    }
    let rest = role.strip_suffix(schema)?;
    let profile = rest
        .strip_suffix(separator)
        .filter(|profile| !profile.is_empty())?;
    let between = rest.strip_prefix(profile)?;
    Some((format!("{{profile}}{between}{{schema}}"), profile.to_owned()))
}

/// The manifest with these roles as a profile; `None` if too few of them can be bound.
fn fold(
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
            .map(|(on_type, privileges)| DefaultPrivilegeGrant {
                role: None,
                privileges: privileges.clone(),
                on_type: *on_type,
                ensure: Ensure::Present,
            })
            .collect(),
        ..Profile::default()
    }
}

/// Both say the same of everything that exists.
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
