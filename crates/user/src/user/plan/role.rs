//! Plans the role itself: its attributes, its password, its mark.

use jiff::Timestamp;
use secrecy::SecretString;
use stanchion_api::user::Role;
use stanchion_kernel::marks::{Bearer, Mark};
use stanchion_postgres::Statement;

use super::{About, Change};
use crate::user::catalog::{Catalog, RoleFacts};

/// The desired state of a role.
pub struct RoleRequest<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether it may log in.
    pub login: bool,
    /// Its other attributes.
    pub attributes: &'a Role,
    /// Its password.
    pub password: PasswordChange,
    /// Its owner.
    pub mark: Mark,
}

/// The change of a password.
#[derive(Clone, Debug)]
pub enum PasswordChange {
    /// No change.
    Keep,
    /// Set it to this verifier.
    Set(SecretString),
    /// Remove it.
    Clear,
}

/// An attribute: its keywords, its name, its desired and its current state.
type Switch = (&'static str, &'static str, &'static str, Option<bool>, bool);

fn switches(request: &RoleRequest<'_>, facts: Option<&RoleFacts>) -> [Switch; 7] {
    let Role {
        inherit,
        create_database,
        create_role,
        replication,
        bypass_rls,
        superuser,
        ..
    } = request.attributes;
    let fact = |of: fn(&RoleFacts) -> bool, without: bool| facts.map_or(without, of);
    [
        (
            "login",
            " LOGIN",
            " NOLOGIN",
            Some(request.login),
            fact(|f| f.login, false),
        ),
        (
            "inherit",
            " INHERIT",
            " NOINHERIT",
            *inherit,
            fact(|f| f.inherit, true),
        ),
        (
            "createDatabase",
            " CREATEDB",
            " NOCREATEDB",
            *create_database,
            fact(|f| f.create_database, false),
        ),
        (
            "createRole",
            " CREATEROLE",
            " NOCREATEROLE",
            *create_role,
            fact(|f| f.create_role, false),
        ),
        (
            "replication",
            " REPLICATION",
            " NOREPLICATION",
            *replication,
            fact(|f| f.replication, false),
        ),
        (
            "bypassRLS",
            " BYPASSRLS",
            " NOBYPASSRLS",
            *bypass_rls,
            fact(|f| f.bypass_rls, false),
        ),
        (
            "superuser",
            " SUPERUSER",
            " NOSUPERUSER",
            *superuser,
            fact(|f| f.superuser, false),
        ),
    ]
}

/// One CREATE or ALTER with exactly what differs, and the comment. An attribute that does not differ is not mentioned:
/// mentioning SUPERUSER, even to deny it, needs a superuser.
pub fn diff(request: &RoleRequest<'_>, catalog: &Catalog) -> Vec<Change> {
    let facts = catalog.role.as_ref();
    let verb = if facts.is_some() {
        "ALTER ROLE "
    } else {
        "CREATE ROLE "
    };
    let mut statement = Statement::new(verb).ident(request.name);
    let mut differs: Vec<&str> = Vec::new();
    for (name, on, off, wanted, fact) in switches(request, facts) {
        if let Some(wanted) = wanted
            && wanted != fact
        {
            statement = statement.sql(if wanted { on } else { off });
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
