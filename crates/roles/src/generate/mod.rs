//! Generates a manifest from a live database, so that its diff is empty.

mod suggest;

pub use suggest::suggest_profiles;

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::{Facts, Object as ObjectFacts, RoleId};
use crate::manifest::{
    DefaultPrivilege, DefaultPrivilegeGrant, DefaultPrivilegeScope, Ensure, Grant, Manifest, Member,
    Membership, Object, Role, Schema, ScopeType, is_predefined,
};
use crate::model::{Privileges, RoleState};

/// The manifest of everything in the facts. The privileges of PUBLIC are left out: they are not managed unless a rule
/// names them.
pub fn generate(facts: &Facts) -> Manifest {
    let mut manifest = Manifest {
        schemas: facts
            .schemas
            .iter()
            .map(|(name, place)| schema(name, facts.objects.get(*place), facts))
            .collect(),
        roles: facts
            .roles
            .iter()
            .map(|(name, role)| self::role(name, &role.state))
            .collect(),
        grants: grants(facts),
        default_privileges: default_privileges(facts),
        memberships: memberships(facts),
        ..Manifest::default()
    };
    declare_others(&mut manifest, facts);
    manifest
}

fn schema(name: &str, object: Option<&ObjectFacts>, facts: &Facts) -> Schema {
    Schema {
        name: name.to_owned(),
        profiles: vec![],
        role_pattern: None,
        owner: object.map(|object| facts.names.name(object.owner).to_owned()),
    }
}

fn role(name: &str, state: &RoleState) -> Role {
    let unless = |value: bool, default: bool| (value != default).then_some(value);
    Role {
        name: name.to_owned(),
        login: unless(state.login, false),
        superuser: unless(state.superuser, false),
        createdb: unless(state.createdb, false),
        createrole: unless(state.createrole, false),
        inherit: unless(state.inherit, true),
        replication: unless(state.replication, false),
        bypassrls: unless(state.bypassrls, false),
        connection_limit: (state.connection_limit != -1).then_some(state.connection_limit),
        comment: state.comment.clone(),
        password_valid_until: state.password_valid_until.clone(),
        config: state.config.clone(),
        ..Role::default()
    }
}

/// The privileges of roles as the diff compares them: an owner's own entry is not a grant.
fn grants(facts: &Facts) -> Vec<Grant> {
    let mut found: BTreeMap<_, (Privileges, Privileges, &ObjectFacts)> = BTreeMap::new();
    for object in &facts.objects {
        for entry in object.acl.iter().flatten() {
            let role = facts.names.name(entry.grantee);
            if entry.grantee == object.owner
                || entry.grantee == RoleId::PUBLIC
                || !facts.roles.contains_key(role)
            {
                continue;
            }
            let key = (
                role,
                object.kind,
                object.schema.as_deref(),
                object.display_name(),
                object.column.as_deref(),
            );
            let held = found
                .entry(key)
                .or_insert((Privileges::NONE, Privileges::NONE, object));
            held.0.add(entry.privileges);
            held.1.add(entry.grantable);
        }
    }
    let mut grants = vec![];
    for ((role, ..), (held, grantable, object)) in found {
        for (privileges, option) in [(held.without(grantable), None), (grantable, Some(true))] {
            if !privileges.is_empty() {
                grants.push(Grant {
                    role: role.to_owned(),
                    privileges: privileges.iter().collect(),
                    object: self::object(object),
                    ensure: Ensure::Present,
                    with_grant_option: option,
                });
            }
        }
    }
    grants
}

fn object(object: &ObjectFacts) -> Object {
    Object {
        kind: object.kind,
        schema: object.schema.as_deref().map(str::to_owned),
        name: Some(object.display_name()),
        except: vec![],
        columns: object.column.iter().map(ToString::to_string).collect(),
    }
}

fn default_privileges(facts: &Facts) -> Vec<DefaultPrivilege> {
    let mut found: BTreeMap<_, BTreeMap<_, Privileges>> = BTreeMap::new();
    for row in &facts.defaults {
        for entry in &row.acl {
            let role = facts.names.name(entry.grantee);
            let own = row.schema.is_none() && entry.grantee == row.owner;
            if own || entry.grantee == RoleId::PUBLIC || !facts.roles.contains_key(role) {
                continue;
            }
            let owner = facts.names.name(row.owner);
            let grants = found.entry((owner, row.schema.as_deref())).or_default();
            let plain = entry.privileges.without(entry.grantable);
            for (privileges, option) in [(plain, None), (entry.grantable, Some(true))] {
                if !privileges.is_empty() {
                    grants
                        .entry((role, row.kind, option))
                        .or_insert(Privileges::NONE)
                        .add(privileges);
                }
            }
        }
    }
    found
        .into_iter()
        .map(|((owner, schema), grants)| DefaultPrivilege {
            owner: Some(owner.to_owned()),
            schema: schema.map(str::to_owned),
            scope: schema.is_none().then_some(DefaultPrivilegeScope {
                kind: ScopeType::Global,
                schema: None,
            }),
            grant: grants
                .into_iter()
                .map(
                    |((role, on_type, with_grant_option), privileges)| DefaultPrivilegeGrant {
                        role: Some(role.to_owned()),
                        privileges: privileges.iter().collect(),
                        on_type,
                        ensure: Ensure::Present,
                        with_grant_option,
                    },
                )
                .collect(),
        })
        .collect()
}

fn memberships(facts: &Facts) -> Vec<Membership> {
    let options_matter = facts.server.version >= 160_000;
    let mut groups: BTreeMap<&str, BTreeMap<&str, (bool, bool, bool)>> = BTreeMap::new();
    for edge in &facts.memberships {
        // Memberships of predefined roles in each other are PostgreSQL's own.
        if is_predefined(&edge.member)
            || !(facts.roles.contains_key(&edge.member) || facts.roles.contains_key(&edge.role))
        {
            continue;
        }
        let (inherit, admin, set) = groups
            .entry(&edge.role)
            .or_default()
            .entry(&edge.member)
            .or_default();
        *inherit |= edge.inherit || !options_matter;
        *admin |= edge.admin;
        *set |= edge.set;
    }
    groups
        .into_iter()
        .map(|(role, members)| Membership {
            role: role.to_owned(),
            exclusive: false,
            members: members
                .into_iter()
                .map(|(name, (inherit, admin, set))| Member {
                    name: name.to_owned(),
                    inherit: (!inherit).then_some(false),
                    admin: admin.then_some(true),
                    set: (!set).then_some(false),
                })
                .collect(),
        })
        .collect()
}

/// Groups that are neither declared nor predefined (the bootstrap superuser) are external.
fn declare_others(manifest: &mut Manifest, facts: &Facts) {
    let others: BTreeSet<String> = manifest
        .memberships
        .iter()
        .map(|membership| membership.role.clone())
        .filter(|role| !is_predefined(role) && !facts.roles.contains_key(role))
        .collect();
    manifest.roles.extend(others.into_iter().map(|name| Role {
        name,
        external: true,
        ..Role::default()
    }));
}

/// The manifest as YAML.
pub fn to_yaml<T: serde::Serialize>(value: &T) -> Result<String, serde_saphyr::SerializeError> {
    serde_saphyr::to_string(value)
}
