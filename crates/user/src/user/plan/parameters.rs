//! Plans the settings of a role's sessions.

use std::collections::{BTreeMap, BTreeSet};

use stanchion_api::user::{AppliedGrant, GrantKind};
use stanchion_kernel::Problem;
use stanchion_postgres::{Doing, Statement};

use super::Change;
use crate::rules::is_like;
use crate::user::catalog::Catalog;
use crate::user::target::Wanted;

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
pub(super) fn check(wanted: &Wanted, catalog: &Catalog) -> Result<(), Problem> {
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
pub(crate) fn applied(parameters: &BTreeMap<String, String>) -> impl Iterator<Item = AppliedGrant> {
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
pub(crate) fn changes(
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
            applied(&BTreeMap::from([("work_mem".to_owned(), String::new())])).collect();
        let changes = changes("x", &BTreeMap::new(), &facts, &before);
        let shown: Vec<String> = changes
            .iter()
            .map(|change| change.statement.to_string())
            .collect();
        assert_eq!(shown, [r#"ALTER ROLE "x" RESET "work_mem""#]);
    }
}
