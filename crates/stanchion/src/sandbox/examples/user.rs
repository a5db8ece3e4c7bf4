//! Three users: one with a password of their own, one for an application, one that may only read.

use kube::core::ApiResource;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use stanchion_api::instance::CONNECTED;
use stanchion_api::user::condition;
use stanchion_api::{PostgresInstance, PostgresUser};

use super::super::database::{ADMINISTRATOR, DATABASE, Database};
use super::{Example, Hint, Kind, Logins};

/// The Secret with the administrator's login.
const ADMIN_SECRET: &str = "postgres-admin";

pub(super) const EXAMPLE: Example = Example {
    controller: "user",
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
    ground,
    objects: include_str!("../../../../../examples/sandbox/postgresuser.yaml"),
    logins: &[ADMIN_SECRET, "orders-db", "reporting-db"],
    guide,
};

/// The server of this run, as a `PostgresInstance`.
fn ground(database: &Database) -> Vec<Value> {
    let password = database.password().expose_secret();
    let port = database.port();
    vec![
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": ADMIN_SECRET },
            "stringData": {
                "username": ADMINISTRATOR,
                "password": password,
                "host": "127.0.0.1",
                "port": port.to_string(),
                "dbname": DATABASE,
                "uri": format!("postgresql://{ADMINISTRATOR}:{password}@127.0.0.1:{port}/{DATABASE}"),
            },
        }),
        json!({
            "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresInstance", "metadata": { "name": "local" },
            "spec": {
                "host": "127.0.0.1", "port": port, "database": "postgres",
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
            "read as reporting, which can do nothing else",
            format!("{} -c 'TABLE sales.orders'", psql("reporting-db")),
        ),
        hint(
            "break a role by hand: it is healed within seconds",
            format!("{} -c 'ALTER ROLE orders NOLOGIN'", psql(ADMIN_SECRET)),
        ),
        hint(
            "delete the application's Secret: it comes back, and the login works",
            "kubectl delete secret orders-db".to_owned(),
        ),
        hint(
            "make a mistake: it is refused at once",
            r#"kubectl patch pguser alice --type=merge -p '{"spec":{"username":"bob"}}'"#.to_owned(),
        ),
        hint(
            "delete a user: the role goes, what it owned stays",
            "kubectl delete pguser reporting".to_owned(),
        ),
    ]
}
