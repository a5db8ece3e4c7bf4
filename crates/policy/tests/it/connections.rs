//! Connections by URL and by parameters.

use serde_json::json;
use stanchion_testkit::postgres::{ADMIN, ADMIN_PASSWORD};

use super::bed::{Bed, condition};

/// By parameters, with characters that a URL would have to escape.
#[tokio::test]
async fn parts_need_no_escaping() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    let (login, role) = (bed.role("log@in:x"), bed.role("app"));
    let password = "p@ss/w:o?r%d#";
    bed.database
        .execute(&format!(
            "CREATE ROLE \"{login}\" LOGIN SUPERUSER PASSWORD '{password}'"
        ))
        .await;
    bed.secret("parts", json!({ "user": login, "password": format!("{password}\n"), "port": bed.database.server().port().to_string() }))
        .await;
    let secret = |key: &str| json!({ "name": "parts", "key": key });
    bed.policy(
        "parts",
        json!({
            "connection": { "secretRef": null, "params": {
                "host": "127.0.0.1", "portSecret": secret("port"), "dbname": bed.database.name(),
                "usernameSecret": secret("user"), "passwordSecret": secret("password"), "sslMode": "prefer",
            } },
            "roles": [{ "name": role }],
        }),
    )
    .await;
    let policy = bed.ready("parts").await;
    assert_eq!(condition(&policy, "PasswordInSpec"), None);
    assert!(bed.has_role(&role).await);
}

/// A URL, with all special characters escaped.
#[tokio::test]
async fn a_url_may_be_escaped() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    let (login, role) = (bed.role("log@in"), bed.role("app"));
    bed.database
        .execute(&format!(
            "CREATE ROLE \"{login}\" LOGIN SUPERUSER PASSWORD 'p@ss/w:o?r%d#'"
        ))
        .await;
    let url = format!(
        "postgresql://{}:p%40ss%2Fw%3Ao%3Fr%25d%23@127.0.0.1:{}/{}",
        login.replace('@', "%40"),
        bed.database.server().port(),
        bed.database.name()
    );
    bed.secret("db", json!({ "url": format!("{url}\n") })).await;
    bed.policy(
        "escaped",
        json!({ "connection": { "secretKey": "url" }, "roles": [{ "name": role }] }),
    )
    .await;
    bed.ready("escaped").await;
    assert!(bed.has_role(&role).await);
}

/// A password in the spec works, and is reported once.
#[tokio::test]
async fn a_password_in_the_spec_is_warned_of() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    let role = bed.role("app");
    let params = json!({
        "host": "127.0.0.1", "port": bed.database.server().port(), "dbname": bed.database.name(),
        "username": ADMIN, "password": ADMIN_PASSWORD,
    });
    bed.policy(
        "open",
        json!({ "connection": { "secretRef": null, "params": params }, "roles": [{ "name": role }] }),
    )
    .await;
    let policy = bed.ready("open").await;
    assert_eq!(
        condition(&policy, "PasswordInSpec"),
        Some(("True".into(), "LiteralPassword".into()))
    );
    bed.event("open", "PasswordInSpec").await;
    bed.look_again("open").await;
    let told = bed.events("open").await;
    assert_eq!(
        told.iter().filter(|reason| *reason == "PasswordInSpec").count(),
        1
    );
}

/// `setRole`: that role owns what is created.
#[tokio::test]
async fn work_is_done_as_another_role() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    let (login, owner, schema) = (bed.role("login"), bed.role("owner"), bed.role("s"));
    let database = bed.database.name();
    bed.database
        .execute(&format!(
            "CREATE ROLE {owner} CREATEROLE; CREATE ROLE {login} LOGIN PASSWORD 'x' IN ROLE {owner}; \
             GRANT CREATE ON DATABASE {database} TO {owner}"
        ))
        .await;
    bed.secret("login", json!({ "password": "x" })).await;
    let params = json!({
        "host": "127.0.0.1", "port": bed.database.server().port(), "dbname": database, "username": login,
        "passwordSecret": { "name": "login", "key": "password" }, "setRole": owner,
    });
    bed.policy(
        "as",
        json!({ "connection": { "secretRef": null, "params": params }, "schemas": [{ "name": schema }] }),
    )
    .await;
    bed.ready("as").await;
    let sql = format!("SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = '{schema}'");
    assert_eq!(bed.one(&sql).await, owner);
}

/// Held: a generated password goes into no Secret that somebody else made.
#[tokio::test]
async fn a_foreign_secret_is_left_alone() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    bed.database_secret().await;
    bed.secret("theirs", json!({ "key": "value" })).await;
    let before = bed.secrets().get("theirs").await.unwrap();
    let role = bed.role("app");
    let password = json!({ "generate": { "secretName": "theirs" } });
    let spec = json!({ "interval": "1s", "roles": [{ "name": role, "login": true, "password": password }] });
    bed.policy("takes", spec).await;
    bed.wait()
        .eventually("the policy is not ready", async || {
            condition(&bed.get("takes").await, "Ready").is_some_and(|(status, _)| status == "False")
        })
        .await;
    assert_eq!(bed.secrets().get("theirs").await.unwrap(), before);
}

/// Held: what listens where on the network is not told apart. A port that is closed, one where something else listens and
/// a name that nobody knows have the same reason.
#[tokio::test]
async fn a_policy_is_no_scanner() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    let other = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let open = other.local_addr().unwrap().port();
    tokio::spawn(async move { while other.accept().await.is_ok() {} });
    let closed = stanchion_testkit::port::free();
    for (name, host) in [
        ("open", format!("127.0.0.1:{open}")),
        ("closed", format!("127.0.0.1:{closed}")),
        ("unknown", "db.example.invalid:5432".to_owned()),
    ] {
        let url = format!("postgres://u:p@{host}/d?sslmode=disable&connect_timeout=2");
        bed.secret(name, json!({ "DATABASE_URL": url })).await;
        let spec = json!({ "connection": { "secretRef": { "name": name } }, "roles": [{ "name": bed.role("app") }] });
        bed.policy(name, spec).await;
        bed.condition(name, "Ready", "False", "DatabaseConnectionFailed")
            .await;
    }
}
