//! `PostgresInstance`: who may use a server, its connection, and its status.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use stanchion_api::{PostgresInstance, PostgresUser};
use stanchion_testkit::postgres::{ADMIN, ADMIN_PASSWORD, Postgres, Tls};
use stanchion_testkit::{unique, wait};

use super::test_env::{TestEnv, WAIT_TIMEOUT, any, condition, message, role_name};

fn connected(instance: &PostgresInstance) -> Option<(String, String)> {
    let conditions = &instance.status.as_ref()?.conditions;
    let found = conditions
        .iter()
        .find(|condition| condition.type_ == "Connected")?;
    Some((found.status.clone(), found.reason.clone()))
}

async fn becomes(env: &TestEnv, name: &str, status: &str, reason: &str) -> PostgresInstance {
    wait::until(
        &env.instances(),
        name,
        WAIT_TIMEOUT,
        |instance: &PostgresInstance| connected(instance) == Some((status.into(), reason.into())),
    )
    .await
}

/// The status has the server's properties; instance and users follow a rotated admin Secret.
#[tokio::test]
async fn an_instance_reports_its_server() {
    let env = TestEnv::new(any()).await;
    let (role, _operator) = (role_name(), env.operator().await);
    env.instance("main", json!({})).await;
    let instance = becomes(&env, "main", "True", "Connected").await;
    let status = instance.status.unwrap();
    let system = env.one("SELECT system_identifier FROM pg_control_system()").await;
    assert_eq!(status.system_identifier, Some(system));
    let version = env.one("SHOW server_version").await;
    assert_eq!(status.version.as_deref(), version.split_whitespace().next());

    env.secret("main-admin", json!({ "username": ADMIN, "password": "wrong" }))
        .await;
    becomes(&env, "main", "False", "AuthenticationFailed").await;
    env.password("alice", "p").await;
    env.user("alice", &role, json!({ "instanceRef": { "name": "main" } }))
        .await;
    let user = env
        .condition("alice", "DatabaseConnected", "False", "AuthenticationFailed")
        .await;
    assert!(!message(&user, "DatabaseConnected").contains("wrong"));
    env.secret(
        "main-admin",
        json!({ "username": ADMIN, "password": ADMIN_PASSWORD }),
    )
    .await;
    env.ready("alice").await;
    becomes(&env, "main", "True", "Connected").await;

    // A missing instance is reported, and then created.
    env.user("bob", &role_name(), json!({ "instanceRef": { "name": "later" } }))
        .await;
    env.password("bob", "p").await;
    env.condition("bob", "Ready", "False", "InstanceNotFound").await;
    env.instance("later", json!({ "maxConnections": 1, "adminSecretRef": { "name": "keys", "usernameKey": "u", "passwordKey": "p" } }))
        .await;
    env.condition("bob", "Ready", "False", "AdminSecretNotFound")
        .await;
    env.secret("keys", json!({ "u": ADMIN })).await;
    env.condition("bob", "Ready", "False", "AdminSecretKeyMissing")
        .await;
    env.secret("keys", json!({ "u": ADMIN, "p": ADMIN_PASSWORD }))
        .await;
    env.ready("bob").await;
}

/// `tls.mode: verify-full` with a CA from a Secret: the right one connects, another one does not.
#[tokio::test]
async fn a_server_is_trusted_by_its_authority() {
    let server = Postgres::builder(any()).tls(Tls::default()).start().await;
    let env = TestEnv::new(any()).await;
    let (role, _operator) = (role_name(), env.operator().await);
    server
        .execute("postgres", "CREATE ROLE tls_admin LOGIN SUPERUSER PASSWORD 'a'")
        .await;
    env.secret("tls-keys", json!({ "username": "tls_admin", "password": "a" }))
        .await;
    env.secret("ca", json!({ "ca.crt": server.authority().unwrap().pem() }))
        .await;
    let spec = |tls: Value| json!({ "host": "localhost", "port": server.port(), "adminSecretRef": { "name": "tls-keys" }, "tls": tls });
    env.instance(
        "tls",
        spec(json!({ "mode": "verify-full", "caSecretRef": { "name": "ca" } })),
    )
    .await;
    becomes(&env, "tls", "True", "Connected").await;
    env.password("alice", "p").await;
    let request = json!({
        "instanceRef": { "name": "tls" }, "database": "postgres", "credentialsSecret": { "name": "out" },
    });
    env.user("alice", &role, request).await;
    let user = env.ready("alice").await;
    let said = message(&user, "DatabaseConnected");
    assert!(said.contains("the server was verified"), "{said}");
    assert_eq!(env.values("out").await["PGSSLMODE"], "verify-full");
    let encrypted = server
        .log()
        .entries()
        .iter()
        .any(|entry| entry.user == "tls_admin" && entry.message.contains("SSL enabled"));
    assert!(encrypted);
    let other = stanchion_testkit::certificates::Authority::new();
    env.secret("ca", json!({ "ca.crt": other.pem() })).await;
    becomes(&env, "tls", "False", "TlsFailed").await;
    // Without TLS the server accepts only the superuser of the test.
    env.instance("tls", spec(json!({ "mode": "disable" }))).await;
    wait::until(
        &env.instances(),
        "tls",
        WAIT_TIMEOUT,
        |instance: &PostgresInstance| {
            connected(instance).is_some_and(|(status, reason)| status == "False" && reason != "TlsFailed")
        },
    )
    .await;
}

/// F13: a server that was not verified is said to be, with and without encryption.
#[tokio::test]
async fn an_unverified_server_is_reported() {
    let server = Postgres::builder(any()).tls(Tls::default()).start().await;
    let env = TestEnv::new(any()).await;
    let _operator = env.operator().await;
    let (user, password) = (ADMIN, ADMIN_PASSWORD);
    env.secret("keys", json!({ "username": user, "password": password }))
        .await;
    for (mode, words) in [
        ("require", "encrypted, but the server was not verified"),
        ("disable", "not encrypted, and the server was not verified"),
    ] {
        let spec = json!({
            "host": "localhost", "port": server.port(), "adminSecretRef": { "name": "keys" }, "tls": { "mode": mode },
        });
        env.instance(mode, spec).await;
        env.password(mode, "p").await;
        let request = json!({ "instanceRef": { "name": mode }, "database": "postgres" });
        env.user(mode, &role_name(), request).await;
        let user = env.ready(mode).await;
        let said = message(&user, "DatabaseConnected");
        assert!(said.contains(words), "{said}");
    }
}

/// `allowedNamespaces`: no other namespace by default, then by name, then by label, as the labels change.
#[tokio::test]
async fn an_instance_chooses_its_namespaces() {
    let home = TestEnv::new(any()).await;
    let guest = TestEnv::in_namespace("guest", any()).await;
    let (role, _operator) = (role_name(), guest.operator().await);
    home.instance("main", json!({})).await;
    guest.password("alice", "p").await;
    let request = json!({ "instanceRef": { "name": "main", "namespace": home.namespace } });
    guest.user("alice", &role, request).await;
    let user = guest
        .condition("alice", "Ready", "False", "InstanceNotFound")
        .await;
    assert!(message(&user, "Ready").contains("allowedNamespaces"));
    assert!(!guest.has_role(&role).await);

    let allow = async |allowed: Value| {
        let open = json!([{ "names": ["*"] }]);
        home.instance("main", json!({ "allowedNamespaces": allowed, "databases": open }))
            .await;
        // The guest's operator watches only its own namespace; a person requests a reconcile.
        guest
            .annotate("alice", "db.example.com/reconcile-at", &allowed.to_string())
            .await;
    };
    allow(json!({ "names": [guest.namespace] })).await;
    guest.ready("alice").await;
    allow(json!({ "selector": { "matchLabels": { "team": "a" } } })).await;
    guest
        .condition("alice", "Ready", "False", "NamespaceNotAllowed")
        .await;
    let namespaces: Api<Namespace> = Api::all(home.client.clone());
    let label = json!({ "metadata": { "labels": { "team": "a" } } });
    namespaces
        .patch(&guest.namespace, &PatchParams::default(), &Patch::Merge(&label))
        .await
        .unwrap();
    guest.ready("alice").await;
}

/// F13: the conditions say whether the server was verified, and that a server which asks for the password itself is
/// refused until it is.
#[tokio::test]
async fn the_conditions_say_whether_the_server_was_verified() {
    let hba = std::env::temp_dir().join(format!("{}.conf", unique::name("hba")));
    let lines = "host all clear 127.0.0.1/32 password\nhost all all 127.0.0.1/32 scram-sha-256\n";
    std::fs::write(&hba, lines).unwrap();
    let server = Postgres::builder(any())
        .tls(Tls {
            required: false,
            ..Tls::default()
        })
        .setting("hba_file", &hba.display().to_string())
        .start()
        .await;
    for statement in [
        "CREATE ROLE clear LOGIN SUPERUSER PASSWORD 'c'",
        "CREATE DATABASE app",
    ] {
        server.execute("postgres", statement).await;
    }
    let env = TestEnv::new(any()).await;
    let _operator = env.operator().await;
    env.secret("ca", json!({ "ca.crt": server.authority().unwrap().pem() }))
        .await;
    env.secret("clear", json!({ "username": "clear", "password": "c" }))
        .await;
    env.password("alice", "p").await;
    let verify = json!({ "mode": "verify-full", "caSecretRef": { "name": "ca" } });
    let cases = [
        (
            json!({ "mode": "disable" }),
            "main-admin",
            "the connection is not encrypted, and the server was not verified",
        ),
        (
            json!({ "mode": "require" }),
            "main-admin",
            "the connection is encrypted, but the server was not verified",
        ),
        (verify.clone(), "main-admin", "; the server was verified"),
        (json!({ "mode": "require" }), "clear", ""),
        (verify, "clear", "; the server was verified"),
    ];
    for (tls, secret, said) in cases {
        let (host, port) = ("localhost", server.port());
        let more = json!({ "host": host, "port": port, "tls": tls, "adminSecretRef": { "name": secret } });
        env.instance("main", more).await;
        let reference = json!({ "instanceRef": { "name": "main" }, "database": "app" });
        env.user("alice", &format!("alice_{port}"), reference).await;
        let (status, reason) = if said.is_empty() {
            ("False", "ServerNotVerified")
        } else {
            ("True", "Connected")
        };
        env.wait()
            .until(&env.instances(), "main", |instance: &PostgresInstance| {
                let status_now = instance.status.clone().unwrap_or_default();
                connected(instance) == Some((status.into(), reason.into()))
                    && status_now.message.unwrap_or_default().contains(said)
            })
            .await;
        env.wait()
            .until(&env.users(), "alice", |user: &PostgresUser| {
                condition(user, "DatabaseConnected") == Some((status.into(), reason.into()))
                    && message(user, "DatabaseConnected").contains(said)
            })
            .await;
    }
    // An application finds the CA of a server that it is to verify beside the address.
    let spec = json!({
        "instanceRef": { "name": "main" }, "database": "app", "credentialsSecret": { "name": "out" },
    });
    env.user("alice", &format!("alice_{}", server.port()), spec).await;
    let values = env.values("out").await;
    let target = stanchion_postgres::ConnectionConfig::parse(&values["uri"].clone().into()).unwrap();
    assert_eq!(target.tls(), stanchion_postgres::TlsMode::VerifyFull);
    let connect = async |ca: Option<String>| {
        let target = target.clone().with_tls(target.tls(), ca);
        stanchion_postgres::Session::connect(&target, &stanchion_postgres::Timeouts::default(), Arc::new(()))
            .await
    };
    assert!(connect(None).await.is_err());
    assert!(connect(Some(values["ca.crt"].clone())).await.is_ok());
    std::fs::remove_file(&hba).unwrap();
}
