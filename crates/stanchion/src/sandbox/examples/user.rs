//! Three users: one with their own password, one for an application, one that may only read.

use kube::core::ApiResource;
use serde_json::{Value, json};
use stanchion_api::instance::CONNECTED;
use stanchion_api::user::condition;
use stanchion_api::{PostgresInstance, PostgresUser};

use super::super::servers::Servers;
use super::{Example, Hint, Kind, Logins, login_secret};

/// The database of the example.
const DATABASE: &str = "app";
/// The Secret with the administrator's login.
const ADMIN_SECRET: &str = "postgres-admin";

pub(super) const EXAMPLE: Example = Example {
    controller: "user",
    title: "Users of a database",
    database: DATABASE,
    content: &[
        "CREATE SCHEMA sales",
        "CREATE TABLE sales.orders (id bigint GENERATED ALWAYS AS IDENTITY, item text NOT NULL, price numeric NOT NULL)",
        "INSERT INTO sales.orders (item, price) VALUES ('anvil', 99.50), ('rocket skates', 249.00), ('bird seed', 4.20)",
    ],
    kinds: &[
        Kind {
            resource: || ApiResource::erase::<PostgresInstance>(&()),
            steps: &[CONNECTED],
        },
        Kind {
            resource: || ApiResource::erase::<PostgresUser>(&()),
            steps: &[
                condition::DATABASE_CONNECTED,
                condition::PASSWORD_SYNCED,
                condition::PRIVILEGES_SYNCED,
                condition::READY,
            ],
        },
    ],
    prerequisites,
    objects: include_str!("../../../../../examples/sandbox/postgresuser.yaml"),
    others: None,
    facts: &[],
    logins: &[ADMIN_SECRET, "orders-db", "reporting-db"],
    guide,
};

/// The server of this run, as a `PostgresInstance`.
fn prerequisites(servers: &Servers) -> Vec<Value> {
    vec![
        login_secret(ADMIN_SECRET, DATABASE, servers, &[]),
        json!({
            "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresInstance", "metadata": { "name": "local" },
            "spec": {
                "host": "127.0.0.1", "port": servers.database.port(), "database": "postgres",
                "adminSecretRef": { "name": ADMIN_SECRET },
            },
        }),
    ]
}

fn guide(logins: &Logins) -> Vec<Hint> {
    let psql = |secret: &str| logins.psql(secret);
    let hint = |why, line| Hint { why, line };
    vec![
        hint("what there is", "kubectl get pginstance,pguser".to_owned()),
        hint(
            "log in as the application, with the password from its Secret",
            psql("orders-db"),
        ),
        hint(
            "read as reporting, which may only read",
            format!("{} -c 'TABLE sales.orders'", psql("reporting-db")),
        ),
        hint(
            "change a role by hand: the operator restores it within seconds",
            format!("{} -c 'ALTER ROLE orders NOLOGIN'", psql(ADMIN_SECRET)),
        ),
        hint(
            "delete the application's Secret: the operator creates it again, and the login works",
            "kubectl delete secret orders-db".to_owned(),
        ),
        hint(
            "make a mistake: the API server rejects it at once",
            r#"kubectl patch pguser alice --type=merge -p '{"spec":{"username":"bob"}}'"#.to_owned(),
        ),
        hint(
            "delete a user: the operator drops the role and keeps what it owned",
            "kubectl delete pguser reporting".to_owned(),
        ),
    ]
}
