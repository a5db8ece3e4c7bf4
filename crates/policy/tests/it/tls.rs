//! TLS with a certificate authority from a Secret, to a server with its own certificate.

use serde_json::{Value, json};
use stanchion_testkit::certificates::Authority;
use stanchion_testkit::postgres::{Postgres, Tls, any};

use super::test_env::{TestEnv, condition, message};

const LOGIN: &str = "tls_admin";
const PASSWORD: &str = "correct horse";

/// A server with a certificate for these names, which accepts [`LOGIN`] only over TLS.
async fn server(names: &[&str]) -> Postgres {
    let names = names.iter().map(ToString::to_string).collect();
    let tls = Tls {
        names,
        required: true,
    };
    let server = Postgres::builder(any()).tls(tls).start().await;
    let make = format!("CREATE ROLE {LOGIN} LOGIN SUPERUSER PASSWORD '{PASSWORD}'");
    server.execute("postgres", &make).await;
    server
}

async fn authority(env: &TestEnv, pem: &str) {
    env.secret("ca", json!({ "ca.crt": pem })).await;
}

/// A policy that connects by parameters, with this `sslMode`.
async fn policy(env: &TestEnv, server: &Postgres, host: &str, mode: &str) {
    env.secret("login", json!({ "password": PASSWORD })).await;
    let params = json!({
        "host": host, "port": server.port(), "dbname": "postgres", "username": LOGIN, "sslMode": mode,
        "passwordSecret": { "name": "login", "key": "password" },
    });
    let connection = json!({ "secretRef": null, "params": params, "caSecret": { "name": "ca" } });
    apply(env, connection).await;
}

async fn apply(env: &TestEnv, connection: Value) {
    let spec = json!({ "interval": "1h", "connection": connection, "roles": [{ "name": env.role("app") }] });
    env.policy("tls", spec).await;
}

fn is_encrypted(server: &Postgres) -> bool {
    let log = server.log();
    let mut entries = log.entries().iter();
    entries.any(|entry| entry.user == LOGIN && entry.message.contains("SSL enabled"))
}

/// `verify-full` by parameters: the right authority connects, another one does not, and its Secret is followed.
#[tokio::test]
async fn a_server_is_trusted_by_its_authority() {
    let (env, server) = (TestEnv::new().await, server(&["localhost"]).await);
    let _operator = env.operator().await;
    policy(&env, &server, "localhost", "verify-full").await;
    env.condition("tls", "Ready", "False", "SecretFetchFailed").await;
    authority(&env, server.authority().unwrap().pem()).await;
    let ready = env.ready("tls").await;
    assert!(is_encrypted(&server));
    let connected = Some(("True".into(), "Verified".into()));
    assert_eq!(condition(&ready, "DatabaseConnected"), connected);

    authority(&env, Authority::new().pem()).await;
    let refused = env
        .condition("tls", "Ready", "False", "DatabaseConnectionFailed")
        .await;
    assert!(
        message(&refused, "Ready").contains("certificate"),
        "{}",
        message(&refused, "Ready")
    );
    env.event("tls", "DatabaseConnectionFailed").await;

    authority(&env, "no certificate").await;
    env.look_again("tls").await;
    env.condition("tls", "Ready", "False", "DatabaseConnectionFailed")
        .await;

    authority(&env, server.authority().unwrap().pem()).await;
    env.ready("tls").await;
    env.event("tls", "Recovered").await;
}

/// A URL has a mode but no authority: `caSecret` adds one.
#[tokio::test]
async fn a_url_is_trusted_by_the_same_authority() {
    let (env, server) = (TestEnv::new().await, server(&["localhost"]).await);
    let _operator = env.operator().await;
    let url = server
        .url_of(LOGIN, PASSWORD, "postgres")
        .replace("127.0.0.1", "localhost");
    env.secret(
        "db",
        json!({ "DATABASE_URL": format!("{url}?sslmode=verify-full") }),
    )
    .await;
    authority(&env, server.authority().unwrap().pem()).await;
    apply(&env, json!({ "caSecret": { "name": "ca" } })).await;
    env.ready("tls").await;
    assert!(is_encrypted(&server));
}

/// A certificate for another name: `verify-ca` does not check it, `verify-full` does.
#[tokio::test]
async fn the_name_is_asked_for_in_full_only() {
    let (env, server) = (TestEnv::new().await, server(&["db.example.com"]).await);
    let _operator = env.operator().await;
    authority(&env, server.authority().unwrap().pem()).await;
    policy(&env, &server, "localhost", "verify-ca").await;
    env.ready("tls").await;
    policy(&env, &server, "localhost", "verify-full").await;
    let refused = env
        .condition("tls", "Ready", "False", "DatabaseConnectionFailed")
        .await;
    assert!(
        message(&refused, "Ready").contains("another name"),
        "{}",
        message(&refused, "Ready")
    );
}

/// A connection that requires TLS never continues without it.
#[tokio::test]
async fn a_server_without_tls_is_refused() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    for mode in ["require", "verify-full"] {
        let url = format!("{}&sslmode={mode}", env.url());
        env.secret("db", json!({ "DATABASE_URL": url })).await;
        env.policy(
            mode,
            json!({ "roles": [{ "name": env.role(&mode.replace('-', "_")) }] }),
        )
        .await;
        env.condition(mode, "Ready", "False", "DatabaseConnectionFailed")
            .await;
    }
}

/// F13: the condition says that the certificate of a server was not verified, and what to do.
#[tokio::test]
async fn an_unverified_server_is_reported() {
    let (env, server) = (TestEnv::new().await, server(&["localhost"]).await);
    let _operator = env.operator().await;
    let url = server.url_of(LOGIN, PASSWORD, "postgres");
    env.secret("url", json!({ "DATABASE_URL": format!("{url}?sslmode=require") }))
        .await;
    apply(&env, json!({ "secretRef": { "name": "url" } })).await;
    let ready = env.ready("tls").await;
    let connected = Some(("True".into(), "NotVerified".into()));
    assert_eq!(condition(&ready, "DatabaseConnected"), connected);
    let said = message(&ready, "DatabaseConnected");
    assert!(said.contains("sslmode=verify-full"), "{said}");
}
