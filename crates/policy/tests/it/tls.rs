//! TLS with a certificate authority from a Secret, to a server with its own certificate.

use serde_json::{Value, json};
use stanchion_testkit::certificates::Authority;
use stanchion_testkit::postgres::{Postgres, Tls, any};

use super::bed::{Bed, condition, message};

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

async fn authority(bed: &Bed, pem: &str) {
    bed.secret("ca", json!({ "ca.crt": pem })).await;
}

/// A policy that connects by parameters, with this `sslMode`.
async fn policy(bed: &Bed, server: &Postgres, host: &str, mode: &str) {
    bed.secret("login", json!({ "password": PASSWORD })).await;
    let params = json!({
        "host": host, "port": server.port(), "dbname": "postgres", "username": LOGIN, "sslMode": mode,
        "passwordSecret": { "name": "login", "key": "password" },
    });
    let connection = json!({ "secretRef": null, "params": params, "caSecret": { "name": "ca" } });
    apply(bed, connection).await;
}

async fn apply(bed: &Bed, connection: Value) {
    let spec = json!({ "interval": "1h", "connection": connection, "roles": [{ "name": bed.role("app") }] });
    bed.policy("tls", spec).await;
}

fn is_encrypted(server: &Postgres) -> bool {
    let log = server.log();
    let mut entries = log.entries().iter();
    entries.any(|entry| entry.user == LOGIN && entry.message.contains("SSL enabled"))
}

/// `verify-full` by parameters: the right authority connects, another one does not, and its Secret is followed.
#[tokio::test]
async fn a_server_is_trusted_by_its_authority() {
    let (bed, server) = (Bed::new().await, server(&["localhost"]).await);
    let _operator = bed.operator().await;
    policy(&bed, &server, "localhost", "verify-full").await;
    bed.condition("tls", "Ready", "False", "SecretFetchFailed").await;
    authority(&bed, server.authority().unwrap().pem()).await;
    let ready = bed.ready("tls").await;
    assert!(is_encrypted(&server));
    let connected = Some(("True".into(), "Verified".into()));
    assert_eq!(condition(&ready, "DatabaseConnected"), connected);

    authority(&bed, Authority::new().pem()).await;
    let refused = bed
        .condition("tls", "Ready", "False", "DatabaseConnectionFailed")
        .await;
    assert!(
        message(&refused, "Ready").contains("certificate"),
        "{}",
        message(&refused, "Ready")
    );
    bed.event("tls", "DatabaseConnectionFailed").await;

    authority(&bed, "no certificate").await;
    bed.look_again("tls").await;
    bed.condition("tls", "Ready", "False", "DatabaseConnectionFailed")
        .await;

    authority(&bed, server.authority().unwrap().pem()).await;
    bed.ready("tls").await;
    bed.event("tls", "Recovered").await;
}

/// A URL has a mode but no authority: `caSecret` adds one.
#[tokio::test]
async fn a_url_is_trusted_by_the_same_authority() {
    let (bed, server) = (Bed::new().await, server(&["localhost"]).await);
    let _operator = bed.operator().await;
    let url = server
        .url_of(LOGIN, PASSWORD, "postgres")
        .replace("127.0.0.1", "localhost");
    bed.secret(
        "db",
        json!({ "DATABASE_URL": format!("{url}?sslmode=verify-full") }),
    )
    .await;
    authority(&bed, server.authority().unwrap().pem()).await;
    apply(&bed, json!({ "caSecret": { "name": "ca" } })).await;
    bed.ready("tls").await;
    assert!(is_encrypted(&server));
}

/// A certificate for another name: `verify-ca` does not check it, `verify-full` does.
#[tokio::test]
async fn the_name_is_asked_for_in_full_only() {
    let (bed, server) = (Bed::new().await, server(&["db.example.com"]).await);
    let _operator = bed.operator().await;
    authority(&bed, server.authority().unwrap().pem()).await;
    policy(&bed, &server, "localhost", "verify-ca").await;
    bed.ready("tls").await;
    policy(&bed, &server, "localhost", "verify-full").await;
    let refused = bed
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
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    for mode in ["require", "verify-full"] {
        let url = format!("{}&sslmode={mode}", bed.url());
        bed.secret("db", json!({ "DATABASE_URL": url })).await;
        bed.policy(
            mode,
            json!({ "roles": [{ "name": bed.role(&mode.replace('-', "_")) }] }),
        )
        .await;
        bed.condition(mode, "Ready", "False", "DatabaseConnectionFailed")
            .await;
    }
}

/// F13: a server whose certificate nobody checked is said to be, in words that tell what to do.
#[tokio::test]
async fn a_server_that_was_not_verified_is_said_to_be() {
    let (bed, server) = (Bed::new().await, server(&["localhost"]).await);
    let _operator = bed.operator().await;
    let url = server.url_of(LOGIN, PASSWORD, "postgres");
    bed.secret("url", json!({ "DATABASE_URL": format!("{url}?sslmode=require") }))
        .await;
    apply(&bed, json!({ "secretRef": { "name": "url" } })).await;
    let ready = bed.ready("tls").await;
    let connected = Some(("True".into(), "NotVerified".into()));
    assert_eq!(condition(&ready, "DatabaseConnected"), connected);
    let said = message(&ready, "DatabaseConnected");
    assert!(said.contains("sslmode=verify-full"), "{said}");
}
