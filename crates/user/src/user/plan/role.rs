//! Plans the role itself: its attributes, its password, its mark, and the settings of its sessions.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use stanchion_api::user::{AppliedGrant, GrantKind, Role};
use stanchion_kernel::Problem;
use stanchion_kernel::marks::{Bearer, Mark};
use stanchion_postgres::{Doing, Statement, handover};

use super::{About, Change, memberships};
use crate::rules::is_like;
use crate::user::catalog::{Catalog, RoleFacts};
use crate::user::guards::{claim, claimant};
use crate::user::passwords::{PasswordChange, Passwords};
use crate::user::target::Wanted;

/// The differences of the role: itself, its parameters, its memberships, and its two logins if it has them.
pub(crate) fn changes(
    wanted: &Wanted,
    catalog: &Catalog,
    passwords: &Passwords,
) -> Result<Vec<Change>, Problem> {
    let origin = claim(&claimant(wanted), catalog)?;
    check_parameters(wanted, catalog)?;
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
    changes.extend(parameters(
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

/// Parameters whose value is a list of names, which PostgreSQL stores in its own spelling.
const LISTS: &[&str] = &[
    "search_path",
    "temp_tablespaces",
    "session_preload_libraries",
    "local_preload_libraries",
    "datestyle",
    "log_destination",
];

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

/// The record of the settings, for the status.
pub(crate) fn applied_parameters(
    parameters: &BTreeMap<String, String>,
) -> impl Iterator<Item = AppliedGrant> {
    parameters.keys().map(|name| AppliedGrant {
        kind: GrantKind::Parameter,
        database: None,
        schema: None,
        name: Some(name.clone()),
        privileges: Vec::new(),
    })
}

/// Sets the parameters that differ (`ALTER ROLE … SET`), and resets those that earlier reconciles set and the spec no longer
/// contains.
pub(crate) fn parameters(
    role: &str,
    wanted: &BTreeMap<String, String>,
    facts: &BTreeMap<String, String>,
    before: &[AppliedGrant],
) -> Vec<Change> {
    let names: BTreeSet<String> = wanted.keys().map(|name| name.to_ascii_lowercase()).collect();
    let reset = before
        .iter()
        .filter(|grant| grant.kind == GrantKind::Parameter)
        .filter_map(|grant| grant.name.as_deref())
        .filter(|name| !names.contains(&name.to_ascii_lowercase()))
        .filter(|name| facts.contains_key(&name.to_ascii_lowercase()))
        .map(|name| {
            let statement = alter(role).sql(" RESET ").qualified(&parts(name));
            Change::role(format!("parameter {name}"), statement.doing(Doing::Configuring))
        });
    let set = wanted
        .iter()
        .filter(|(name, value)| {
            facts
                .get(&name.to_ascii_lowercase())
                .is_none_or(|stored| !is_same(name, value, stored))
        })
        .map(|(name, value)| {
            let start = alter(role).sql(" SET ").qualified(&parts(name)).sql(" TO ");
            let statement = if is_list(name) {
                start.list(", ", items(value), |sql, item| sql.literal(&item))
            } else {
                start.literal(value)
            };
            Change::role(format!("parameter {name}"), statement.doing(Doing::Configuring))
        });
    reset.chain(set).collect()
}

fn alter(role: &str) -> Statement {
    Statement::new("ALTER ROLE ").ident(role)
}

fn parts(name: &str) -> Vec<&str> {
    name.split('.').collect()
}

fn is_list(name: &str) -> bool {
    LISTS.iter().any(|list| name.eq_ignore_ascii_case(list))
}

fn is_same(name: &str, wanted: &str, stored: &str) -> bool {
    if is_list(name) {
        items(wanted) == items(stored)
    } else {
        wanted == stored
    }
}

/// The items of a list as PostgreSQL parses them: separated by commas, in double quotes where necessary. White space
/// around an item is ignored, unless it is in the quotes.
fn items(list: &str) -> Vec<String> {
    let mut items = Vec::new();
    let (mut item, mut kept, mut quoted) = (String::new(), 0, false);
    let end = |item: &mut String, kept: &mut usize| {
        let length = item.trim_end().len().max(*kept);
        item.truncate(length);
        *kept = 0;
        std::mem::take(item)
    };
    let mut characters = list.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                item.push('"');
            }
            '"' => {
                quoted = !quoted;
                kept = item.len();
            }
            ',' if !quoted => items.push(end(&mut item, &mut kept)),
            c if c.is_whitespace() && !quoted && item.is_empty() => {}
            c => item.push(c),
        }
    }
    items.push(end(&mut item, &mut kept));
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_compared_item_by_item() {
        assert_eq!(items(r#"a, "b c" ,"d""e""#), ["a", "b c", "d\"e"]);
        assert_eq!(items("\"a\t\" , b\t"), ["a\t", "b"]);
        assert!(is_same("search_path", r#""$user",public"#, r#""$user", public"#));
        assert!(!is_same("work_mem", "64MB", "64 MB"));
    }

    #[test]
    fn what_is_no_longer_asked_for_is_reset_only_if_we_set_it() {
        let facts = BTreeMap::from([("work_mem".into(), "1MB".into()), ("jit".into(), "off".into())]);
        let before: Vec<AppliedGrant> =
            applied_parameters(&BTreeMap::from([("work_mem".to_owned(), String::new())])).collect();
        let changes = parameters("x", &BTreeMap::new(), &facts, &before);
        let shown: Vec<String> = changes
            .iter()
            .map(|change| change.statement.to_string())
            .collect();
        assert_eq!(shown, [r#"ALTER ROLE "x" RESET "work_mem""#]);
    }
}
