//! Plans the role itself: its attributes, its password and its mark.

use std::collections::BTreeMap;

use jiff::Timestamp;
use stanchion_api::user::Role;
use stanchion_kernel::Problem;
use stanchion_kernel::marks::{Bearer, Mark};
use stanchion_postgres::{Statement, handover};

use super::{About, Change, memberships, parameters};
use crate::user::catalog::{Catalog, RoleFacts};
use crate::user::guards::{claim, claimant};
use crate::user::passwords::{PasswordChange, Passwords};
use crate::user::powers;
use crate::user::target::Wanted;

/// The differences of the role: itself, its parameters, its memberships, and its two logins if it has them.
pub(crate) fn changes(
    wanted: &Wanted,
    catalog: &Catalog,
    passwords: &Passwords,
) -> Result<Vec<Change>, Problem> {
    let origin = claim(&claimant(wanted), catalog)?;
    parameters::check(wanted, catalog)?;
    let request = RoleRequest {
        name: &wanted.username,
        login: wanted.role.login && !passwords.is_dual(),
        attributes: &wanted.role,
        password: passwords.main_change(),
        mark: Mark {
            owner: wanted.identity.owner(),
            origin,
        },
    };
    let mut changes = diff(&request, catalog);
    let none = BTreeMap::new();
    let stored = catalog.role.as_ref().map_or(&none, |facts| &facts.parameters);
    changes.extend(parameters::changes(
        &wanted.username,
        &wanted.role.parameters,
        stored,
        &wanted.before.grants,
    ));
    let is = catalog.role.as_ref().is_none_or(|facts| facts.inherit);
    let asked = memberships::Asked {
        role: &wanted.username,
        member_of: &wanted.member_of,
        policy: wanted.membership_policy,
        before: &wanted.before.grants,
        inherits: wanted.role.inherit.unwrap_or(is),
    };
    changes.extend(memberships::diff(&asked, catalog)?);
    for login in passwords.logins() {
        changes.extend(memberships::login(wanted, login, passwords.is_dual())?);
    }
    if gives_a_database(wanted, catalog) {
        changes.extend(
            act_as(&wanted.username, catalog)
                .map(|statement| Change::privilege("the administrator's membership", statement)),
        );
    }
    Ok(changes)
}

/// Whether the role is about to become the owner of a database.
fn gives_a_database(wanted: &Wanted, catalog: &Catalog) -> bool {
    wanted.databases.iter().any(|(name, request)| {
        request.owner
            && catalog
                .databases
                .get(name)
                .is_none_or(|facts| facts.owner != wanted.username)
    })
}

/// The statement that makes the administrator a member of a role, where it is not one yet. An administrator without
/// superuser gives things to a role, and takes them from it, only as its member.
pub(crate) fn act_as(role: &str, catalog: &Catalog) -> Option<Statement> {
    let server = &catalog.server;
    if server.may_act_as(catalog.powers) {
        return None;
    }
    handover::join(role, server)
}

/// The desired state of a role.
pub(crate) struct RoleRequest<'a> {
    pub name: &'a str,
    /// Whether it may log in.
    pub login: bool,
    /// Its other attributes.
    pub attributes: &'a Role,
    pub password: PasswordChange,
    /// Its owner.
    pub mark: Mark,
}

/// An attribute: its name, its keyword, its desired and its current state.
type Switch = (&'static str, &'static str, Option<bool>, bool);

fn switches(request: &RoleRequest<'_>, facts: Option<&RoleFacts>) -> [Switch; 7] {
    let role = request.attributes;
    let fact = |of: fn(&RoleFacts) -> bool, without: bool| facts.map_or(without, of);
    let (login, inherit) = (fact(|f| f.login, false), fact(|f| f.inherit, true));
    let (create_database, create_role) = (fact(|f| f.create_database, false), fact(|f| f.create_role, false));
    let (replication, bypass_rls) = (fact(|f| f.replication, false), fact(|f| f.bypass_rls, false));
    let superuser = fact(|f| f.superuser, false);
    [
        ("login", "LOGIN", Some(request.login), login),
        ("inherit", "INHERIT", role.inherit, inherit),
        (
            "createDatabase",
            "CREATEDB",
            role.create_database,
            create_database,
        ),
        ("createRole", "CREATEROLE", role.create_role, create_role),
        ("replication", "REPLICATION", role.replication, replication),
        ("bypassRLS", "BYPASSRLS", role.bypass_rls, bypass_rls),
        ("superuser", "SUPERUSER", role.superuser, superuser),
    ]
}

/// One CREATE or ALTER with exactly what differs, and the comment. An attribute that does not differ is not mentioned:
/// mentioning SUPERUSER, even to deny it, needs a superuser.
pub(crate) fn diff(request: &RoleRequest<'_>, catalog: &Catalog) -> Vec<Change> {
    let facts = catalog.role.as_ref();
    let verb = if facts.is_some() {
        "ALTER ROLE "
    } else {
        "CREATE ROLE "
    };
    let mut statement = Statement::new(verb).ident(request.name);
    let mut differs: Vec<&str> = Vec::new();
    for (name, keyword, wanted, fact) in switches(request, facts) {
        let wanted = wanted.or_else(|| powers::is_taken(name, request.mark.origin, catalog).then_some(false));
        if let Some(wanted) = wanted
            && wanted != fact
        {
            statement = statement.sql(if wanted { " " } else { " NO" }).sql(keyword);
            differs.push(name);
        }
    }
    if let Some(limit) = request.attributes.connection_limit
        && limit != facts.map_or(-1, |facts| facts.connection_limit)
    {
        statement = statement.sql(" CONNECTION LIMIT ").number(limit.into());
        differs.push("connectionLimit");
    }
    if let Some(until) = request.attributes.valid_until
        && Some(microseconds(until)) != facts.and_then(|facts| facts.valid_until).map(microseconds)
    {
        statement = statement.sql(" VALID UNTIL ").literal(&until.to_string());
        differs.push("validUntil");
    }
    match &request.password {
        PasswordChange::Keep => {}
        PasswordChange::Set(verifier) => {
            statement = statement.sql(" PASSWORD ").secret(verifier);
            differs.push("password");
        }
        PasswordChange::Clear => {
            statement = statement.sql(" PASSWORD NULL");
            differs.push("password");
        }
    }
    let mut changes = Vec::new();
    let what = match facts {
        None => format!("role {}", request.name),
        Some(_) => differs.join(", "),
    };
    if !what.is_empty() {
        let about = match &request.password {
            PasswordChange::Keep => About::Role,
            PasswordChange::Set(_) | PasswordChange::Clear => About::Password,
        };
        changes.push(Change {
            about,
            ..Change::role(what, statement)
        });
    }
    changes.extend(comment(request, catalog));
    changes
}

/// PostgreSQL stores microseconds.
fn microseconds(time: Timestamp) -> i64 {
    time.as_microsecond()
}

fn comment(request: &RoleRequest<'_>, catalog: &Catalog) -> Option<Change> {
    let facts = catalog.role.as_ref();
    let stored = facts.map_or("", |facts| facts.comment.as_str());
    let text = facts.map_or("", |facts| facts.text.as_str());
    let text = request.attributes.comment.as_deref().unwrap_or(text);
    let wanted = catalog
        .viewer
        .marks
        .join(text, &request.mark, Bearer::Role(request.name));
    (wanted != stored).then(|| {
        let statement = Statement::new("COMMENT ON ROLE ")
            .ident(request.name)
            .sql(" IS ")
            .literal(&wanted);
        Change::role("comment", statement)
    })
}
