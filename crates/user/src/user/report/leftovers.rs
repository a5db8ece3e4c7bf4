//! What the role and its databases keep although the spec does not ask for it. The operator does not revert these: it does not
//! know what was there before, or the administrator lacks the right.

use stanchion_api::user::Role;
use stanchion_kernel::marks::Origin;

use crate::user::catalog::RoleFacts;
use crate::user::observe::Current;
use crate::user::target::Wanted;
use crate::user::{guards, powers};

/// What a spec has set once, perhaps, and does not set any more.
pub(super) fn unset(wanted: &Wanted, current: &Current) -> Vec<String> {
    let mut all = owned(wanted, current);
    all.extend(closed_to_public(wanted, current));
    let catalog = &current.catalog;
    if let Some(role) = catalog.role.as_ref().filter(|_| is_created(wanted, current)) {
        let taken = |name: &str| powers::is_taken(name, Origin::Created, catalog);
        let kept = powers::kept(wanted, catalog);
        let unset = attributes(&wanted.role, role)
            .into_iter()
            .filter(|(_, field)| !kept.contains(field) && !taken(field));
        all.extend(unset.map(|(what, field)| {
            format!(
                "the role has {what}, but the spec does not set `role.{field}`; set it, or run ALTER ROLE"
            )
        }));
    }
    all
}

/// The powers that the role has although its instance does not allow them.
pub(super) fn forbidden(wanted: &Wanted, current: &Current) -> Vec<String> {
    let kept = powers::kept(wanted, &current.catalog);
    let administrator = &current.catalog.server.role;
    kept.into_iter()
        .map(|name| {
            format!(
                "the role has {}, which the instance does not allow and {administrator} may not take from it; ask a superuser to \
                 run ALTER ROLE, or add {name} to the instance's spec.allowedAttributes",
                name.to_uppercase()
            )
        })
        .collect()
}

/// An adopted role keeps what it had.
fn is_created(wanted: &Wanted, current: &Current) -> bool {
    guards::claim(&guards::claimant(wanted), &current.catalog).is_ok_and(|origin| origin == Origin::Created)
}

/// The previous owner of a database is unknown.
fn owned(wanted: &Wanted, current: &Current) -> Vec<String> {
    let asked = |name: &String| wanted.databases.get(name).is_some_and(|request| request.owner);
    let databases = current.catalog.databases.iter();
    databases
        .filter(|(name, facts)| facts.owner == wanted.username && !asked(name))
        .map(|(name, _)| {
            format!(
                "the role owns database {name}, but the spec does not set `owner`; set it, or run ALTER DATABASE {name} OWNER TO …"
            )
        })
        .collect()
}

/// PostgreSQL opens a new database to PUBLIC. The databases of others are as their owners want them.
fn closed_to_public(wanted: &Wanted, current: &Current) -> Vec<String> {
    let catalog = &current.catalog;
    let open = wanted
        .databases
        .iter()
        .filter(|(_, request)| !request.revoke_public);
    let ours = open.filter_map(|(name, _)| {
        let facts = catalog.databases.get(name)?;
        guards::is_database_of(name, wanted, facts, catalog).then_some((name, facts))
    });
    ours.filter_map(|(name, facts)| {
        let lacks = ["CONNECT", "TEMPORARY"].into_iter().filter(|word| !facts.public.contains(*word));
        let lacks = lacks.collect::<Vec<_>>().join(", ");
        (!lacks.is_empty()).then(|| {
            format!(
                "PUBLIC lacks {lacks} on database {name}, but the spec does not set `createDatabase.revokePublic`; set it, or run \
                 GRANT {lacks} ON DATABASE {name} TO PUBLIC"
            )
        })
    })
    .collect()
}

/// What differs from a role as PostgreSQL creates it and is not in the spec, with the field.
fn attributes(asked: &Role, role: &RoleFacts) -> Vec<(&'static str, &'static str)> {
    let all = [
        (
            asked.create_database.is_none() && role.create_database,
            "CREATEDB",
            "createDatabase",
        ),
        (asked.inherit.is_none() && !role.inherit, "NOINHERIT", "inherit"),
        (
            asked.connection_limit.is_none() && role.connection_limit != -1,
            "a CONNECTION LIMIT",
            "connectionLimit",
        ),
        (
            asked.valid_until.is_none() && role.valid_until.is_some(),
            "VALID UNTIL",
            "validUntil",
        ),
        (
            asked.superuser.is_none() && role.superuser,
            "SUPERUSER",
            "superuser",
        ),
        (
            asked.replication.is_none() && role.replication,
            "REPLICATION",
            "replication",
        ),
        (
            asked.bypass_rls.is_none() && role.bypass_rls,
            "BYPASSRLS",
            "bypassRLS",
        ),
        (
            asked.create_role.is_none() && role.create_role,
            "CREATEROLE",
            "createRole",
        ),
    ];
    let unset = all.into_iter().filter(|(unset, ..)| *unset);
    unset.map(|(_, what, field)| (what, field)).collect()
}
