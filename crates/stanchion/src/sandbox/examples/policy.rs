//! A policy: an owner, an application that writes and people who read, in their own database.

use kube::core::ApiResource;
use serde_json::Value;
use stanchion_api::PostgresPolicy;
use stanchion_api::policy::condition;

use super::super::servers::Servers;
use super::{Example, Hint, Kind, Logins, login_secret};

/// The Secret with the administrator's login.
const LOGIN: &str = "stock-database";
/// The database of the example.
const DATABASE: &str = "stock";

pub(super) const EXAMPLE: Example = Example {
    controller: "policy",
    title: "Access to a database as a policy",
    database: DATABASE,
    content: &[
        "CREATE SCHEMA warehouse",
        "CREATE TABLE warehouse.parts (name text PRIMARY KEY, pieces int NOT NULL)",
        "INSERT INTO warehouse.parts VALUES ('spring', 1200), ('magnet', 17)",
    ],
    kinds: &[Kind {
        resource: || ApiResource::erase::<PostgresPolicy>(&()),
        steps: &[condition::READY],
    }],
    prerequisites,
    objects: include_str!("../../../../../examples/sandbox/postgrespolicy.yaml"),
    others: None,
    facts: &[],
    logins: &[LOGIN],
    guide,
};

fn prerequisites(servers: &Servers) -> Vec<Value> {
    vec![login_secret(LOGIN, DATABASE, servers, &[])]
}

fn guide(logins: &Logins) -> Vec<Hint> {
    let psql = logins.psql(LOGIN);
    let hint = |why, line| Hint { why, line };
    vec![
        hint(
            "the policy, and the plan that was carried out",
            "kubectl get pgr,pgplan".to_owned(),
        ),
        hint("who may do what", format!(r"{psql} -c '\dp warehouse.*'")),
        hint(
            "revoke a privilege by hand: a new plan grants it again within seconds",
            format!(r#"{psql} -c 'REVOKE SELECT ON warehouse.parts FROM "warehouse-reader"'"#),
        ),
    ]
}
