//! Compares default privileges.

use std::collections::{BTreeMap, BTreeSet};

use super::{EXCLUDED_OPTION, UNDECLARED_OPTION};
use crate::expand::{DefaultKey, Desired, Rule};
use crate::facts::{DefaultAcl, Facts, RoleId};
use crate::model::{ObjectType, PUBLIC, Privileges};
use crate::plan::{Change, DefaultPrivilege, Mode, Plan};

pub(super) struct Defaults {
    pub(super) set: Vec<Change>,
    pub(super) revoked: Vec<Change>,
}

pub(super) fn diff(desired: &Desired, facts: &Facts, mode: Mode, plan: &mut Plan) -> Defaults {
    let rows: BTreeMap<(&str, Option<&str>, ObjectType), &DefaultAcl> = facts
        .defaults
        .iter()
        .map(|row| {
            (
                (facts.names.name(row.owner), row.schema.as_deref(), row.kind),
                row,
            )
        })
        .collect();
    let mut defaults = Defaults {
        set: vec![],
        revoked: vec![],
    };
    for (key, rule) in &desired.default_privileges {
        let row = rows
            .get(&(key.owner.as_str(), key.schema.as_deref(), key.kind))
            .copied();
        let held = held(key, row, facts);
        let option = grantable(key, row, facts);
        // An owner may pass on what it owns, whatever the default says.
        let lacks_option = if key.grantee == key.owner {
            Privileges::NONE
        } else {
            rule.grantable.without(option)
        };
        let lacks = rule.present.without(held).without(lacks_option);
        for (privileges, with_grant_option) in [(lacks, false), (lacks_option, true)] {
            if !privileges.is_empty() {
                let granted = DefaultPrivilege {
                    with_grant_option,
                    ..change(key, privileges)
                };
                defaults.set.push(Change::SetDefaultPrivilege(granted));
            }
        }
        let surplus = held.intersection(rule.absent);
        if !surplus.is_empty() {
            defaults
                .revoked
                .push(Change::RevokeDefaultPrivilege(change(key, surplus)));
        }
        if key.grantee != key.owner {
            surplus_option(key, *rule, option, desired, mode, plan, &mut defaults.revoked);
        }
        unsatisfiable(key, *rule, held, facts, &rows, plan);
    }
    let mut surplus = surplus(desired, facts, mode, plan);
    defaults.revoked.append(&mut surplus);
    defaults
}

/// Grant options that the manifest excludes are revoked; those that it does not mention, only in authoritative mode and from
/// roles that it manages. What stays is reported: additive mode revokes nothing.
fn surplus_option(
    key: &DefaultKey,
    rule: Rule,
    held: Privileges,
    desired: &Desired,
    mode: Mode,
    plan: &mut Plan,
    revoked: &mut Vec<Change>,
) {
    let undeclared = held
        .intersection(rule.present)
        .without(rule.grantable)
        .without(rule.not_grantable);
    let grantee = desired.roles.get(&key.grantee);
    let strict = mode == Mode::Authoritative && grantee.is_some_and(|it| !it.preserve_undeclared_grants);
    let excluded = held.intersection(rule.not_grantable);
    let taken = if strict {
        excluded.union(undeclared)
    } else {
        excluded
    };
    if !taken.is_empty() {
        revoked.push(Change::RevokeDefaultPrivilege(DefaultPrivilege {
            grant_option_only: true,
            ..change(key, taken)
        }));
    }
    let reported = [
        (mode == Mode::Additive, excluded, EXCLUDED_OPTION),
        (!strict, undeclared, UNDECLARED_OPTION),
    ];
    for (_, privileges, reason) in reported.iter().filter(|(is, those, _)| *is && !those.is_empty()) {
        plan.warnings.push(format!(
            "\"{}\" may pass {privileges} on every new {} of \"{}\" on to others (WITH GRANT OPTION), {reason}",
            key.grantee, key.kind, key.owner
        ));
    }
}

fn held(key: &DefaultKey, row: Option<&DefaultAcl>, facts: &Facts) -> Privileges {
    let spec = key.kind.spec();
    match row {
        Some(row) => match facts.names.find(&key.grantee) {
            Some(id) => row
                .acl
                .iter()
                .filter(|entry| entry.grantee == id)
                .fold(Privileges::NONE, |all, entry| all.union(entry.privileges)),
            None => Privileges::NONE,
        },
        // Without a global row, future objects get PostgreSQL's built-in privileges.
        None if key.schema.is_none() && key.grantee == PUBLIC => spec.public,
        None if key.schema.is_none() && key.grantee == key.owner => spec.privileges,
        None => Privileges::NONE,
    }
}

/// The default privileges that the grantee may grant to others.
fn grantable(key: &DefaultKey, row: Option<&DefaultAcl>, facts: &Facts) -> Privileges {
    let id = facts.names.find(&key.grantee);
    let entries = row.into_iter().flat_map(|row| &row.acl);
    entries
        .filter(|entry| Some(entry.grantee) == id)
        .fold(Privileges::NONE, |all, entry| all.union(entry.grantable))
}

/// A schema's default privileges add to the global ones and cannot revoke them.
fn unsatisfiable(
    key: &DefaultKey,
    rule: Rule,
    held_in_schema: Privileges,
    facts: &Facts,
    rows: &BTreeMap<(&str, Option<&str>, ObjectType), &DefaultAcl>,
    plan: &mut Plan,
) {
    let Some(schema) = &key.schema else { return };
    let everywhere = DefaultKey {
        schema: None,
        ..key.clone()
    };
    let global = held(
        &everywhere,
        rows.get(&(key.owner.as_str(), None, key.kind)).copied(),
        facts,
    );
    let stays = rule.absent.intersection(global).without(held_in_schema);
    if !stays.is_empty() {
        plan.warnings.push(format!(
            "UnsatisfiableDefaultPrivilegeChange: \"{}\" gets {stays} on every new {} of \"{}\" from a default that holds in \
             all schemas; the absence in schema \"{schema}\" has no effect: use scope `global`",
            key.grantee, key.kind, key.owner
        ));
    }
}

/// Default privileges of managed roles in managed schemas that the manifest does not declare. Global ones are managed
/// for managed owners, and for owners that the manifest mentions in global default privileges. What a managed role has
/// elsewhere is reported, or revoked if the role is exclusive.
fn surplus(desired: &Desired, facts: &Facts, mode: Mode, plan: &mut Plan) -> Vec<Change> {
    let owners: BTreeSet<&str> = desired
        .default_privileges
        .keys()
        .filter(|key| key.schema.is_none())
        .map(|key| key.owner.as_str())
        .chain(desired.scope.roles.iter().map(String::as_str))
        .collect();
    let mut found = BTreeMap::new();
    for row in &facts.defaults {
        let owner = facts.names.name(row.owner);
        let managed = match &row.schema {
            Some(schema) => desired
                .scope
                .schemas
                .get(schema)
                .is_some_and(|facets| facets.bindings),
            None => owners.contains(owner),
        };
        for entry in &row.acl {
            let grantee = facts.names.name(entry.grantee);
            let role = desired
                .roles
                .get(grantee)
                .filter(|role| !role.preserve_undeclared_grants);
            let own = row.schema.is_none() && entry.grantee == row.owner;
            if entry.grantee == RoleId::PUBLIC || role.is_none() || own {
                continue;
            }
            let key = DefaultKey {
                owner: owner.to_owned(),
                schema: row.schema.clone(),
                kind: row.kind,
                grantee: grantee.to_owned(),
            };
            let wanted = desired.default_privileges.get(&key).copied().unwrap_or_default();
            let surplus = entry.privileges.without(wanted.present).without(wanted.absent);
            if surplus.is_empty() {
                continue;
            }
            let exclusive = mode == Mode::Authoritative && role.is_some_and(|role| role.exclusive);
            if managed || exclusive {
                found.entry(key).or_insert(Privileges::NONE).add(surplus);
            } else if desired.scope.roles.contains(grantee) {
                plan.holdings.push(held_elsewhere(&key, surplus));
            }
        }
    }
    found
        .iter()
        .map(|(key, privileges)| Change::RevokeDefaultPrivilege(change(key, *privileges)))
        .collect()
}

fn held_elsewhere(key: &DefaultKey, privileges: Privileges) -> String {
    let place = key.schema.as_ref().map_or_else(
        || "all schemas".to_owned(),
        |schema| format!("schema \"{schema}\""),
    );
    format!(
        "role \"{}\" also gets {privileges} on every new {} of \"{}\" in {place}, which the manifest does not manage",
        key.grantee, key.kind, key.owner
    )
}

fn change(key: &DefaultKey, privileges: Privileges) -> DefaultPrivilege {
    DefaultPrivilege {
        owner: key.owner.clone(),
        scope: key.schema.as_deref().into(),
        on_type: key.kind,
        grantee: key.grantee.clone(),
        privileges,
        with_grant_option: false,
        grant_option_only: false,
    }
}
