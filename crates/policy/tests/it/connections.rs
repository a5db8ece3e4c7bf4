//! Connections by URL and by parameters.

use serde_json::json;
use stanchion_testkit::postgres::{ADMIN, ADMIN_PASSWORD};

use super::test_env::{TestEnv, condition};

/// By parameters, with characters that a URL would have to escape.
#[tokio::test]
async fn parts_need_no_escaping() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    let (login, role) = (env.role("log@in:x"), env.role("app"));
    let password = "p@ss/w:o?r%d#";
    env.database
        .execute(&format!(
            "CREATE ROLE \"{login}\" LOGIN SUPERUSER PASSWORD '{password}'"
        ))
        .await;
    env.secret("parts", json!({ "user": login, "password": format!("{password}\n"), "port": env.database.server().port().to_string() }))
        .await;
    let secret = |key: &str| json!({ "name": "parts", "key": key });
    env.policy(
        "parts",
        json!({
            "connection": { "secretRef": null, "params": {
                "host": "127.0.0.1", "portSecret": secret("port"), "dbname": env.database.name(),
                "usernameSecret": secret("user"), "passwordSecret": secret("password"), "sslMode": "prefer",
            } },
            "roles": [{ "name": role }],
        }),
    )
    .await;
    let policy = env.ready("parts").await;
    assert_eq!(condition(&policy, "PasswordInSpec"), None);
    assert!(env.has_role(&role).await);
}

/// A URL, with all special characters escaped.
#[tokio::test]
async fn a_url_may_be_escaped() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    let (login, role) = (env.role("log@in"), env.role("app"));
    env.database
        .execute(&format!(
            "CREATE ROLE \"{login}\" LOGIN SUPERUSER PASSWORD 'p@ss/w:o?r%d#'"
        ))
        .await;
    let url = format!(
        "postgresql://{}:p%40ss%2Fw%3Ao%3Fr%25d%23@127.0.0.1:{}/{}",
        login.replace('@', "%40"),
        env.database.server().port(),
        env.database.name()
    );
    env.secret("db", json!({ "url": format!("{url}\n") })).await;
    env.policy(
        "escaped",
        json!({ "connection": { "secretKey": "url" }, "roles": [{ "name": role }] }),
    )
    .await;
    env.ready("escaped").await;
    assert!(env.has_role(&role).await);
}

/// A password in the spec works, and is reported once.
#[tokio::test]
async fn a_password_in_the_spec_is_warned_of() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    let role = env.role("app");
    let params = json!({
        "host": "127.0.0.1", "port": env.database.server().port(), "dbname": env.database.name(),
        "username": ADMIN, "password": ADMIN_PASSWORD,
    });
    env.policy(
        "open",
        json!({ "connection": { "secretRef": null, "params": params }, "roles": [{ "name": role }] }),
    )
    .await;
    let policy = env.ready("open").await;
    assert_eq!(
        condition(&policy, "PasswordInSpec"),
        Some(("True".into(), "LiteralPassword".into()))
    );
    env.event("open", "PasswordInSpec").await;
    env.look_again("open").await;
    let reported = env.events("open").await;
    assert_eq!(
        reported
            .iter()
            .filter(|reason| *reason == "PasswordInSpec")
            .count(),
        1
    );
}

/// `setRole`: that role owns what is created.
#[tokio::test]
async fn work_is_done_as_another_role() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    let (login, owner, schema) = (env.role("login"), env.role("owner"), env.role("s"));
    let database = env.database.name();
    env.database
        .execute(&format!(
            "CREATE ROLE {owner} CREATEROLE; CREATE ROLE {login} LOGIN PASSWORD 'x' IN ROLE {owner}; \
             GRANT CREATE ON DATABASE {database} TO {owner}"
        ))
        .await;
    env.secret("login", json!({ "password": "x" })).await;
    let params = json!({
        "host": "127.0.0.1", "port": env.database.server().port(), "dbname": database, "username": login,
        "passwordSecret": { "name": "login", "key": "password" }, "setRole": owner,
    });
    env.policy(
        "as",
        json!({ "connection": { "secretRef": null, "params": params }, "schemas": [{ "name": schema }] }),
    )
    .await;
    env.ready("as").await;
    let sql = format!("SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = '{schema}'");
    assert_eq!(env.one(&sql).await, owner);
}

/// Held: a generated password goes into no Secret that somebody else made.
#[tokio::test]
async fn a_foreign_secret_is_left_alone() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.database_secret().await;
    env.secret("theirs", json!({ "key": "value" })).await;
    let before = env.secrets().get("theirs").await.unwrap();
    let role = env.role("app");
    let password = json!({ "generate": { "secretName": "theirs" } });
    let spec = json!({ "interval": "1s", "roles": [{ "name": role, "login": true, "password": password }] });
    env.policy("takes", spec).await;
    env.wait()
        .eventually("the policy is not ready", async || {
            condition(&env.get("takes").await, "Ready").is_some_and(|(status, _)| status == "False")
        })
        .await;
    assert_eq!(env.secrets().get("theirs").await.unwrap(), before);
}

/// Held: a policy does not show what listens where on the network. A port that is closed, one where something else listens and
/// a name that nobody knows have the same reason.
#[tokio::test]
async fn a_policy_cannot_scan_the_network() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
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
        env.secret(name, json!({ "DATABASE_URL": url })).await;
        let spec = json!({ "connection": { "secretRef": { "name": name } }, "roles": [{ "name": env.role("app") }] });
        env.policy(name, spec).await;
        env.condition(name, "Ready", "False", "DatabaseConnectionFailed")
            .await;
    }
}
