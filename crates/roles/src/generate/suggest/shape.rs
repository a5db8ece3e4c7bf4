//! Determines which roles are similar.

use std::collections::{BTreeSet, HashMap};

use crate::manifest::{DefaultPrivilege, DefaultPrivilegeGrant, Ensure, Grant, Manifest, Role, schema_of};
use crate::model::{ObjectType, Privilege};

/// Kind, name, privileges and grant option of a grant in a profile.
type RelativeGrant = (ObjectType, Option<String>, Vec<Privilege>, Option<bool>);

/// The items of each role.
pub(super) struct Index<'a> {
    grants: HashMap<&'a str, Vec<&'a Grant>>,
    defaults: HashMap<&'a str, Vec<(&'a DefaultPrivilege, &'a DefaultPrivilegeGrant)>>,
    owners: HashMap<&'a str, Option<&'a String>>,
}

impl<'a> Index<'a> {
    pub(super) fn of(manifest: &'a Manifest) -> Self {
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

/// What similar roles share: the name pattern, the attributes and the privileges in the schema.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Shape {
    pub(super) pattern: String,
    pub(super) profile: String,
    pub(super) login: Option<bool>,
    pub(super) inherit: Option<bool>,
    pub(super) commented: bool,
    pub(super) grants: BTreeSet<RelativeGrant>,
    pub(super) defaults: BTreeSet<(ObjectType, Vec<Privilege>, Option<bool>)>,
}

/// The shape of a role and its schema, if everything that it has is in one schema and fits into a profile.
pub(super) fn shape(role: &Role, index: &Index<'_>) -> Option<(Shape, String)> {
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
        defaults.insert((grant.on_type, grant.privileges.clone(), grant.with_grant_option));
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
