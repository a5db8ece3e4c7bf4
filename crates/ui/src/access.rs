//! Who has which access by a policy, and why. It follows from the policy alone: what the database grants in addition,
//! outside of the policy's scope, is not visible here, and the page says so.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use stanchion_api::PostgresPolicy;
use stanchion_fleet::cluster::{Cluster, Unreadable, printable};
use stanchion_policy::{policy::validate, profiles};
use stanchion_roles::expand::{Desired, GrantKey, is_excepted};
use stanchion_roles::model::{ObjectType, PUBLIC, Privilege};

use crate::server::Place;

/// The predefined role whose members read everything.
const READ_ALL: &str = "pg_read_all_data";

/// Reads a policy with its shared profiles, and expands it as the operator does.
pub(crate) async fn read(cluster: &Cluster, place: &Place) -> Result<Arc<Desired>, String> {
    let why = |what: &str, why: &Unreadable| match why {
        Unreadable::Forbidden => format!("you may not get {what}"),
        Unreadable::NotServed => format!("{what} does not exist"),
        Unreadable::Failed(why) => format!("{what}: {}", printable(why)),
    };
    let policies: Api<PostgresPolicy> = Api::namespaced(cluster.client.clone(), &place.namespace);
    let asked = cluster.get(&policies, &place.name).await;
    let policy = asked.map_err(|error| {
        why(
            &format!("PostgresPolicy {}/{}", place.namespace, place.name),
            &error,
        )
    })?;
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &place.namespace);
    let mut shared = BTreeMap::new();
    for from in &policy.spec.profiles_from {
        let key = &from.config_map_key_ref;
        let map = match cluster.get(&maps, &key.name).await {
            Ok(map) => Some(map),
            Err(Unreadable::NotServed) => None,
            Err(error) => {
                return Err(why(
                    &format!("ConfigMap {}/{}", place.namespace, key.name),
                    &error,
                ));
            }
        };
        let found = profiles::parse(key, map).map_err(|problem| printable(&problem.message))?;
        for (name, profile) in found {
            // The first profile of a name takes precedence.
            shared.entry(name).or_insert(profile);
        }
    }
    let content = validate::content(&policy.spec, shared).map_err(|problem| printable(&problem.message))?;
    Ok(content.desired)
}

/// One way in which a role can read a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reader {
    pub(crate) role: String,
    pub(crate) login: bool,
    /// The roles from this one to the one with the privilege.
    pub(crate) path: Vec<String>,
    /// What grants it.
    pub(crate) why: String,
    /// What restricts it.
    pub(crate) limits: Vec<String>,
}

/// Who can read this table by the policy, and why: for each role its shortest way.
pub(crate) fn readers(desired: &Desired, schema: &str, table: &str) -> Vec<Reader> {
    let sources = sources(desired, schema, table);
    let mut names: BTreeSet<&str> = desired.roles.keys().map(String::as_str).collect();
    names.extend(
        desired
            .memberships
            .values()
            .flat_map(|it| it.members.keys().map(String::as_str)),
    );
    names.extend(sources.iter().map(|(role, _)| *role));
    names
        .into_iter()
        .filter_map(|role| reader(desired, &sources, role, schema))
        .collect()
}

/// The roles that hold the privilege themselves, and what grants it.
fn sources<'a>(desired: &'a Desired, schema: &str, table: &str) -> Vec<(&'a str, String)> {
    let mut found: Vec<(&str, String)> = Vec::new();
    for (key, rule) in &desired.grants {
        if rule.present.contains(Privilege::Select) && matches(key, schema, table) {
            let what = match (key.is_wildcard(), key.columns.is_empty()) {
                (true, _) => format!("SELECT on every {} in {schema}", kind(key.kind)),
                (false, true) => format!("SELECT on {schema}.{table}"),
                (false, false) => {
                    let columns: Vec<&str> = key.columns.iter().map(String::as_str).collect();
                    format!("SELECT on {schema}.{table}, columns {} only", columns.join(", "))
                }
            };
            found.push((key.grantee.as_str(), what));
        }
    }
    let owner = desired.schemas.get(schema).and_then(Option::as_deref);
    found.extend(owner.map(|owner| {
        (
            owner,
            format!("owns the schema {schema}, and reads the tables that it owns"),
        )
    }));
    for (name, role) in &desired.roles {
        if role.state.superuser {
            found.push((name.as_str(), "is a superuser".to_owned()));
        }
    }
    if desired.memberships.contains_key(READ_ALL) {
        found.push((READ_ALL, "reads every table".to_owned()));
    }
    found
}

fn kind(kind: ObjectType) -> String {
    kind.name().replace('_', " ")
}

fn matches(key: &GrantKey, schema: &str, table: &str) -> bool {
    let is_readable = key.kind.is_relation() && key.kind != ObjectType::Sequence;
    is_readable
        && key.schema.as_deref() == Some(schema)
        && match key.name.as_deref() {
            Some("*") => !is_excepted(&key.except, table),
            name => name == Some(table),
        }
}

/// The shortest way from a role to a source. A way on which every membership is inherited comes first.
fn reader(desired: &Desired, sources: &[(&str, String)], role: &str, schema: &str) -> Option<Reader> {
    let mut seen = BTreeSet::from([role]);
    let mut queue = VecDeque::from([(vec![role], true)]);
    let mut later: Option<(Vec<&str>, &String)> = None;
    while let Some((path, inherited)) = queue.pop_front() {
        let end = path.last().copied().unwrap_or(role);
        if let Some((_, why)) = sources.iter().find(|(source, _)| *source == end) {
            // A superuser's privileges are not inherited.
            let is_own = path.len() == 1 || !why.starts_with("is a superuser");
            if is_own && inherited {
                return Some(by_way(desired, role, &path, true, why, schema));
            }
            if later.is_none() {
                later = Some((path.clone(), why));
            }
        }
        for (group, membership) in &desired.memberships {
            let Some(options) = membership.members.get(end) else {
                continue;
            };
            if seen.insert(group) {
                let mut longer = path.clone();
                longer.push(group);
                queue.push_back((longer, inherited && options.inherit));
            }
        }
    }
    // Everybody has what PUBLIC has, without SET ROLE.
    if let Some((_, why)) = sources.iter().find(|(source, _)| *source == PUBLIC) {
        return Some(by_way(desired, role, &[role, PUBLIC], true, why, schema));
    }
    let (path, why) = later?;
    Some(by_way(desired, role, &path, false, why, schema))
}

fn by_way(desired: &Desired, role: &str, path: &[&str], inherited: bool, why: &str, schema: &str) -> Reader {
    let mut limits = Vec::new();
    if !inherited {
        limits.push(format!(
            "only after SET ROLE {}: the membership is not inherited",
            path.last().copied().unwrap_or(role)
        ));
    }
    let is_grant = why.starts_with("SELECT");
    if is_grant && !has_usage(desired, role, path, schema) {
        limits.push(format!(
            "the policy grants no USAGE on the schema {schema} on this way: without it the table cannot be read"
        ));
    }
    Reader {
        role: role.to_owned(),
        login: desired.roles.get(role).is_some_and(|role| role.state.login),
        path: path.iter().map(|name| (*name).to_owned()).collect(),
        why: why.to_owned(),
        limits,
    }
}

/// Whether a role may use a schema, by itself, by a role that it is a member of, or as everybody.
fn has_usage(desired: &Desired, role: &str, path: &[&str], schema: &str) -> bool {
    let mut holders: BTreeSet<&str> = path.iter().copied().chain([role, PUBLIC]).collect();
    loop {
        let more: Vec<&str> = desired
            .memberships
            .iter()
            .filter(|(group, membership)| {
                !holders.contains(group.as_str())
                    && membership
                        .members
                        .iter()
                        .any(|(name, options)| options.inherit && holders.contains(name.as_str()))
            })
            .map(|(group, _)| group.as_str())
            .collect();
        if more.is_empty() {
            break;
        }
        holders.extend(more);
    }
    let owner = desired.schemas.get(schema).and_then(Option::as_deref);
    owner.is_some_and(|owner| holders.contains(owner))
        || desired.grants.iter().any(|(key, rule)| {
            key.kind == ObjectType::Schema
                && key.name.as_deref() == Some(schema)
                && rule.present.contains(Privilege::Usage)
                && holders.contains(key.grantee.as_str())
        })
}

/// The tables and schemas that a policy names, for suggestions.
pub(crate) fn tables(desired: &Desired) -> BTreeSet<(String, String)> {
    desired
        .grants
        .keys()
        .filter(|key| key.kind.is_relation() && key.kind != ObjectType::Sequence)
        .filter_map(|key| Some((key.schema.clone()?, key.name.clone()?)))
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]
pub(crate) mod tests {
    use serde_json::{Value, json};

    use super::*;

    pub(crate) fn desired(spec: &Value) -> Desired {
        let manifest = serde_json::from_value(spec.clone()).unwrap();
        stanchion_roles::expand::expand(&manifest)
    }

    pub(crate) fn stock() -> Desired {
        desired(&json!({
            "roles": [
                { "name": "alice", "login": true },
                { "name": "bob", "login": true },
                { "name": "carol", "login": true },
                { "name": "root", "login": true, "superuser": true },
                { "name": "reader" },
                { "name": "auditor" },
            ],
            "schemas": [{ "name": "stock", "owner": "warehouse", "profiles": [] }],
            "grants": [
                { "role": "reader", "privileges": ["SELECT"], "object": { "type": "table", "schema": "stock", "name": "*", "except": ["secret_*"] } },
                { "role": "reader", "privileges": ["USAGE"], "object": { "type": "schema", "name": "stock" } },
                { "role": "auditor", "privileges": ["SELECT"], "object": { "type": "table", "schema": "stock", "name": "secret_costs", "columns": ["id"] } },
            ],
            "memberships": [
                { "role": "reader", "members": [{ "name": "alice" }, { "name": "bob", "inherit": false }] },
                { "role": "auditor", "members": [{ "name": "carol" }] },
            ],
        }))
    }

    fn names(readers: &[Reader]) -> Vec<&str> {
        readers.iter().map(|reader| reader.role.as_str()).collect()
    }

    #[test]
    fn a_wildcard_reaches_members_and_says_how() {
        let found = readers(&stock(), "stock", "items");
        assert_eq!(names(&found), ["alice", "bob", "reader", "root", "warehouse"]);
        let alice = &found[0];
        assert_eq!(alice.path, ["alice", "reader"]);
        assert!(alice.login && alice.limits.is_empty(), "{alice:?}");
        assert_eq!(alice.why, "SELECT on every table in stock");
        assert!(found[1].limits[0].contains("SET ROLE reader"), "{:?}", found[1]);
        assert_eq!(found[3].why, "is a superuser");
    }

    #[test]
    fn exceptions_columns_and_the_schema_count() {
        let found = readers(&stock(), "stock", "secret_costs");
        assert_eq!(names(&found), ["auditor", "carol", "root", "warehouse"]);
        let carol = &found[1];
        assert!(carol.why.contains("columns id only"), "{carol:?}");
        assert!(
            carol.limits[0].contains("no USAGE on the schema stock"),
            "{carol:?}"
        );
        let elsewhere = readers(&stock(), "other", "items");
        assert_eq!(names(&elsewhere), ["root"]);
    }

    #[test]
    fn everybody_has_what_public_has_and_a_superuser_is_not_inherited() {
        let state = desired(&json!({
            "roles": [{ "name": "a", "login": true }, { "name": "boss", "superuser": true }],
            "grants": [
                { "role": "PUBLIC", "privileges": ["SELECT"], "object": { "type": "view", "schema": "s", "name": "v" } },
                { "role": "PUBLIC", "privileges": ["USAGE"], "object": { "type": "schema", "name": "s" } },
            ],
            "memberships": [{ "role": "boss", "members": [{ "name": "a" }] }],
        }));
        let found = readers(&state, "s", "v");
        let a = found.iter().find(|reader| reader.role == "a").unwrap();
        assert_eq!(a.path, ["a", "PUBLIC"], "{a:?}");
        assert!(a.limits.is_empty(), "{a:?}");
        assert!(names(&found).contains(&"PUBLIC"));
        let found = readers(&state, "s", "other");
        let a = found.iter().find(|reader| reader.role == "a").unwrap();
        assert!(a.limits[0].contains("SET ROLE boss"), "{a:?}");
    }

    #[test]
    fn a_circle_ends() {
        let state = desired(&json!({
            "roles": [{ "name": "a" }, { "name": "b" }],
            "memberships": [
                { "role": "a", "members": [{ "name": "b" }] },
                { "role": "b", "members": [{ "name": "a" }] },
            ],
        }));
        assert!(readers(&state, "s", "t").is_empty());
    }

    #[test]
    fn members_of_the_reading_role_read_everything() {
        let state = desired(&json!({
            "roles": [{ "name": "a", "login": true }],
            "memberships": [{ "role": "pg_read_all_data", "members": [{ "name": "a" }] }],
        }));
        let found = readers(&state, "any", "table");
        assert_eq!(names(&found), ["a", "pg_read_all_data"]);
    }
}
