//! Expands a manifest into the desired state: multiplies out profiles, fills in defaults, merges equal rules.
//!
//! Pure and total: every manifest that passes [`crate::manifest::check`] has a defined result.

mod cleanup;
mod desired;
mod pattern;
mod size;

pub use cleanup::{Other, after_deletion};
pub(crate) use desired::compact;
pub use desired::{
    Counts, DefaultKey, Desired, DesiredRole, GrantKey, MemberOptions, Membership, Rule, Scope, ScopedSchema,
};
pub use pattern::{generated_name, is_excepted, pattern_of};
pub use size::{Bounds, Size, TooLarge};

use std::collections::BTreeMap;

use crate::guc;
use crate::manifest::{
    self, DefaultPrivilegeGrant, Grant, Manifest, Object, Profile, ProfileObject, Role, Schema, ScopeType,
    canonical_timestamp,
};
use crate::model::{ObjectType, RoleState};

/// The desired state of a manifest.
pub fn expand(manifest: &Manifest) -> Desired {
    let mut desired = Desired {
        allow_schema_owner_transfers: manifest.allow_schema_owner_transfers,
        retirements: manifest.retirements.clone(),
        ..Desired::default()
    };
    for (schema, name, profile) in bindings(manifest) {
        let role = generated_name(pattern_of(manifest, schema), &schema.name, name);
        desired
            .roles
            .insert(role, generated_role(&schema.name, name, profile));
    }
    for role in &manifest.roles {
        desired.roles.insert(role.name.clone(), declared_role(role));
    }
    for schema in &manifest.schemas {
        let owner = schema.owner.clone().or_else(|| manifest.default_owner.clone());
        desired.schemas.insert(schema.name.clone(), owner);
    }
    let grants = all_grants(manifest);
    desired.counts = counts(manifest, &desired, grants.len());
    for grant in grants {
        add_grant(&mut desired, grant);
    }
    default_privileges(manifest, &mut desired);
    memberships(manifest, &mut desired);
    desired.scope = Scope::of(&desired);
    desired.compact()
}

fn counts(manifest: &Manifest, desired: &Desired, grants: usize) -> Counts {
    let from_profiles = bindings(manifest)
        .filter(|(.., profile)| !profile.default_privileges.is_empty())
        .count();
    Counts {
        schemas: manifest.schemas.len(),
        roles: desired.roles.len(),
        grants,
        default_privileges: manifest.default_privileges.len() + from_profiles,
        memberships: manifest.memberships.len(),
    }
}

/// Each pair of a schema and one of its profiles.
fn bindings(manifest: &Manifest) -> impl Iterator<Item = (&Schema, &str, &Profile)> {
    manifest.schemas.iter().flat_map(move |schema| {
        schema.profiles.iter().filter_map(move |name| {
            manifest
                .profiles
                .get(name)
                .map(|profile| (schema, name.as_str(), profile))
        })
    })
}

/// The grants of profiles and the top-level ones, as one list.
pub(crate) fn all_grants(manifest: &Manifest) -> Vec<Grant> {
    let mut grants = vec![];
    for (schema, name, profile) in bindings(manifest) {
        let role = generated_name(pattern_of(manifest, schema), &schema.name, name);
        grants.extend(profile.grants.iter().map(|grant| Grant {
            role: role.clone(),
            privileges: grant.privileges.clone(),
            object: object_in(&schema.name, &grant.object),
            ensure: grant.ensure,
            with_grant_option: grant.with_grant_option,
        }));
    }
    grants.extend(manifest.grants.iter().cloned());
    grants
}

/// A profile's object, in the schema that the profile is bound to.
pub(crate) fn object_in(schema: &str, object: &ProfileObject) -> Object {
    let (schema, name) = match object.kind {
        ObjectType::Schema => (None, Some(schema.to_owned())),
        kind if kind.spec().in_schema => (Some(schema.to_owned()), object.name.clone()),
        _ => (None, object.name.clone()),
    };
    Object {
        kind: object.kind,
        schema,
        name,
        except: object.except.clone(),
        columns: object.columns.clone(),
    }
}

fn generated_role(schema: &str, name: &str, profile: &Profile) -> DesiredRole {
    let fill = |template: &str| generated_name(template, schema, name);
    let config = profile
        .config
        .iter()
        .map(|(parameter, value)| guc::canonical(parameter, &fill(value)));
    let comment = profile
        .comment
        .as_deref()
        .unwrap_or("Generated from profile '{profile}' for schema '{schema}'");
    DesiredRole {
        state: RoleState {
            login: profile.login.unwrap_or(false),
            inherit: profile.inherit.unwrap_or(true),
            comment: Some(fill(comment)).filter(|comment| !comment.is_empty()),
            config: config.collect(),
            ..RoleState::default()
        },
        exclusive: profile.exclusive,
        ..DesiredRole::default()
    }
}

fn declared_role(role: &Role) -> DesiredRole {
    let is = |flag: Option<bool>| flag.unwrap_or(false);
    DesiredRole {
        state: RoleState {
            login: is(role.login),
            superuser: is(role.superuser),
            createdb: is(role.createdb),
            createrole: is(role.createrole),
            inherit: role.inherit.unwrap_or(true),
            replication: is(role.replication),
            bypassrls: is(role.bypassrls),
            connection_limit: role.connection_limit.unwrap_or(-1),
            // PostgreSQL does not keep an empty comment.
            comment: role.comment.clone().filter(|comment| !comment.is_empty()),
            password_valid_until: role
                .password_valid_until
                .as_deref()
                .and_then(|text| canonical_timestamp(text).ok()),
            config: role
                .config
                .iter()
                .map(|(name, value)| guc::canonical(name, value))
                .collect(),
        },
        // The password of an external role is not ours to set either.
        password: role.password.clone().filter(|_| !role.external).map(Box::new),
        external: role.external,
        exclusive: role.exclusive,
        preserve_undeclared_grants: role.preserve_undeclared_grants,
    }
}

fn add_grant(desired: &mut Desired, grant: Grant) {
    let kind = grant.object.kind;
    // pgroles reads a relation without a schema as one of `public`; only the lenient check accepts it.
    let schema = kind
        .spec()
        .in_schema
        .then(|| grant.object.schema.unwrap_or_else(|| "public".to_owned()));
    let key = GrantKey {
        grantee: grant.role,
        kind,
        schema,
        name: grant.object.name,
        columns: grant.object.columns.into_iter().collect(),
        except: grant.object.except.into_iter().collect(),
    };
    let privileges = grant.privileges.into_iter().collect();
    let rule = desired.grants.entry(key).or_default();
    rule.require(privileges, grant.ensure, grant.with_grant_option);
}

fn default_privileges(manifest: &Manifest, desired: &mut Desired) {
    let owner_of = |schema: Option<&str>| {
        let declared = schema.and_then(|name| desired.schemas.get(name).cloned().flatten());
        declared
            .or_else(|| manifest.default_owner.clone())
            .unwrap_or_else(|| "postgres".to_owned())
    };
    let mut rules: BTreeMap<DefaultKey, Rule> = BTreeMap::new();
    let mut add = |owner: &str, schema: Option<&str>, grantee: &str, grant: &DefaultPrivilegeGrant| {
        let key = DefaultKey {
            owner: owner.to_owned(),
            schema: schema.map(str::to_owned),
            kind: grant.on_type.default_kind(),
            grantee: grantee.to_owned(),
        };
        let rule = rules.entry(key).or_default();
        rule.require(
            grant.privileges.iter().copied().collect(),
            grant.ensure,
            grant.with_grant_option,
        );
    };
    for (schema, name, profile) in bindings(manifest) {
        let role = generated_name(pattern_of(manifest, schema), &schema.name, name);
        let owner = owner_of(Some(&schema.name));
        for grant in &profile.default_privileges {
            add(&owner, Some(&schema.name), &role, grant);
        }
    }
    for entry in &manifest.default_privileges {
        let schema = match &entry.scope {
            Some(scope) if scope.kind == ScopeType::Global => None,
            Some(scope) => scope.schema.as_deref(),
            None => entry.schema.as_deref(),
        };
        let owner = entry.owner.clone().unwrap_or_else(|| owner_of(schema));
        for grant in &entry.grant {
            if let Some(role) = &grant.role {
                add(&owner, schema, role, grant);
            }
        }
    }
    desired.default_privileges = rules;
}

fn memberships(manifest: &Manifest, desired: &mut Desired) {
    // A declared role has exactly the declared members, even if there are none.
    for (name, role) in &desired.roles {
        if !role.external {
            desired.memberships.insert(
                name.clone(),
                Membership {
                    exhaustive: true,
                    ..Membership::default()
                },
            );
        }
    }
    for membership in &manifest.memberships {
        let entry = desired.memberships.entry(membership.role.clone()).or_default();
        entry.exhaustive |= membership.exclusive;
        for member in &membership.members {
            let options = MemberOptions {
                inherit: member.inherit.unwrap_or(true),
                admin: member.admin.unwrap_or(false),
                set: member.set,
            };
            entry.members.insert(member.name.clone(), options);
        }
    }
}

/// Re-exported for the types that contain it.
pub use manifest::Retirement;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_comment_is_no_comment() {
        let commented = |comment: &str| {
            let role = Role {
                comment: Some(comment.to_owned()),
                ..Role::default()
            };
            declared_role(&role).state.comment
        };
        assert_eq!(commented(""), None);
        assert_eq!(commented("a"), Some("a".to_owned()));
    }
}
