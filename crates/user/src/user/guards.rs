//! Checks what an instance must allow before a role may have it. A user who may create an object in a namespace must
//! not become an administrator of the server: not by an attribute, not by a membership, not by a parameter.
//!
//! `observe` asks before it connects to a database, `plan` and `apply` before they change anything.

use stanchion_api::instance::Attribute;
use stanchion_api::user::{Membership, Role};
use stanchion_kernel::Problem;

use super::catalog::{Catalog, DatabaseFacts, RoleRef};
use super::contents::Contents;
use super::ownership;
use super::target::{DatabaseRequest, Wanted};
use crate::rules::{Whose, is_like};

/// Parameters that every user may set, but no spec: they hide what a role does from monitoring, or let it act as
/// another.
const CLOSED: &[&str] = &[
    "debug_*",
    "local_preload_libraries",
    "log_*",
    "session_authorization",
    "session_preload_libraries",
    "temp_file_limit",
    "track_*",
];

/// Checks everything that depends on the server's catalog: attributes, parameters, roles and databases of others.
pub fn check(wanted: &Wanted, catalog: &Catalog) -> Result<(), Problem> {
    let rules = &catalog.viewer.rules;
    check_role(&wanted.role, &rules.attributes)?;
    check_parameters(wanted, catalog)?;
    check_memberships(&wanted.member_of, catalog)?;
    for owner in wanted
        .databases
        .values()
        .flat_map(|request| request.schemas.values())
        .flat_map(|schema| &schema.default_for)
        .filter(|owner| **owner != wanted.username)
    {
        if let Some(role) = catalog.existing.get(owner) {
            rules.check_default_owner(owner, role)?;
        }
    }
    for (name, request) in &wanted.databases {
        if let Some(facts) = catalog.databases.get(name) {
            check_database(name, request, facts, wanted, catalog)?;
        }
    }
    let create = wanted.create_database.as_ref();
    let copied = create
        .and_then(|create| create.template.as_ref())
        .filter(|_| !catalog.databases.contains_key(&wanted.database));
    match copied.zip(catalog.template.as_ref()) {
        Some((template, facts)) => rules.check_template(template, facts),
        None => Ok(()),
    }
}

fn check_database(
    name: &str,
    request: &DatabaseRequest,
    facts: &DatabaseFacts,
    wanted: &Wanted,
    catalog: &Catalog,
) -> Result<(), Problem> {
    if ownership::is_database_of(name, wanted, facts, catalog) {
        return Ok(());
    }
    let rules = &catalog.viewer.rules;
    let creates = wanted.create_database.is_some() && name == wanted.database;
    // An earlier version accepted such a database; the object keeps using it, within the rules.
    let known = wanted.before.databases.iter().any(|known| known == name);
    if creates && !known && rules.whose_database(facts) == Whose::Nobodys {
        return Err(Problem::human(
            "DatabaseConflict",
            format!(
                "database {name:?} exists, and no object of this namespace made it; choose another name, or take \
                 createDatabase out to use it as it is"
            ),
        ));
    }
    rules.check_database(name, request, facts)
}

/// Powerful attributes need the instance's permission.
pub fn check_role(role: &Role, allowed: &[Attribute]) -> Result<(), Problem> {
    let asked = [
        (role.superuser, Attribute::Superuser, "superuser"),
        (role.replication, Attribute::Replication, "replication"),
        (role.bypass_rls, Attribute::BypassRls, "bypassRLS"),
        (role.create_role, Attribute::CreateRole, "createRole"),
    ];
    for (request, attribute, name) in asked {
        if request == Some(true) && !allowed.contains(&attribute) {
            return Err(refused(&format!("role.{name}"), name));
        }
    }
    Ok(())
}

/// A role gets the parameters that every user may set, except those that hide what it does. The administrator could set
/// any other for it. The server refuses an unknown parameter, unless it has a prefix: then it may belong to a module
/// that is loaded later.
fn check_parameters(wanted: &Wanted, catalog: &Catalog) -> Result<(), Problem> {
    let rules = &catalog.viewer.rules;
    for (name, value) in &wanted.role.parameters {
        let lower = name.to_ascii_lowercase();
        let closed = CLOSED.iter().any(|pattern| is_like(pattern, &lower));
        let unknown = !lower.contains('.') && !catalog.parameters.contains(&lower);
        let of_users = catalog.user_parameters.contains(&lower) && !closed;
        let as_group = lower == "role"
            && (value.eq_ignore_ascii_case("none")
                || *value == wanted.username
                || wanted.member_of.iter().any(|group| group.role == *value));
        let open = match lower.as_str() {
            "role" => as_group,
            _ => (of_users || unknown) && !closed,
        };
        if !open && !rules.opens_parameter(&lower) {
            return Err(Problem::human(
                "AttributeNotAllowed",
                format!(
                    "role.parameters.{name} is not allowed on this instance: not every user may set it, or it hides what \
                     a role does; add it to the instance's spec.parameters (for the operator's default server, \
                     --postgres-parameters), or superuser to its spec.allowedAttributes"
                ),
            ));
        }
    }
    Ok(())
}

/// Missing extensions are created if PostgreSQL trusts them, or the instance allows them.
pub fn check_extensions(
    request: &DatabaseRequest,
    contents: &Contents,
    catalog: &Catalog,
) -> Result<(), Problem> {
    let rules = &catalog.viewer.rules;
    let mut missing = request.extensions.difference(&contents.extensions);
    // The server refuses an extension that it does not have.
    match missing.find(|name| catalog.extensions.get(*name) == Some(&false) && !rules.opens_extension(name)) {
        None => Ok(()),
        Some(name) => Err(Problem::human(
            "ExtensionNotAllowed",
            format!(
                "extension {name:?} is not one that PostgreSQL trusts to everybody; add it to the instance's spec.extensions (for the operator's default server, --postgres-extensions), or \
                 have an administrator create it in the database"
            ),
        )),
    }
}

/// A member has the powers of the role, and of that role's own memberships.
fn check_memberships(member_of: &[Membership], catalog: &Catalog) -> Result<(), Problem> {
    let (rules, unknown) = (&catalog.viewer.rules, RoleRef::default());
    let allowed = &rules.attributes;
    for membership in member_of {
        let role = catalog.existing.get(&membership.role).unwrap_or(&unknown);
        let reach = role.reach;
        let powers = [
            (reach.superuser, Attribute::Superuser, "superuser"),
            (reach.replication, Attribute::Replication, "replication"),
            (reach.bypass_rls, Attribute::BypassRls, "bypassRLS"),
            (reach.create_role, Attribute::CreateRole, "createRole"),
        ];
        for (has, attribute, name) in powers {
            if has && !allowed.contains(&attribute) {
                let what = format!("memberOf: {:?} comes with {name}, which", membership.role);
                return Err(refused(&what, name));
            }
        }
        if catalog.existing.contains_key(&membership.role) {
            rules.check_role("memberOf", &membership.role, role)?;
        }
    }
    Ok(())
}

fn refused(what: &str, attribute: &str) -> Problem {
    Problem::human(
        "AttributeNotAllowed",
        format!("{what} is not allowed on this instance; add {attribute} to its spec.allowedAttributes"),
    )
}
