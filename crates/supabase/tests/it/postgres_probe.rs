//! Failures of PostgreSQL connections, from real servers.

use serde_json::json;
use stanchion_api::SupabaseProject;
use stanchion_kernel::{Class, Problem};
use stanchion_postgres::{ConnectionConfig, TlsMode};
use stanchion_supabase::dependencies::postgres::probe;
use stanchion_testkit::postgres::{Postgres, Tls, Version};
use stanchion_testkit::proxy::{Cut, Proxy};
use tokio::net::TcpListener;

use crate::database_env::{DatabaseEnv, pools, target};
use crate::test_env::TestEnv;

async fn refused(target: &ConnectionConfig) -> Problem {
    let problem = probe(&pools(), target).await.unwrap_err();
    assert!(problem.message.contains(&target.to_string()), "{problem}");
    assert!(!problem.message.contains("hunter2"), "{problem}");
    problem
}

#[tokio::test]
async fn a_query_comes_back() {
    let server = Postgres::start(Version::V18).await;
    probe(&pools(), &target(&server.url("postgres"))).await.unwrap();
}

#[tokio::test]
async fn what_the_server_refuses_has_a_reason() {
    let server = Postgres::builder(Version::V15)
        .setting("max_connections", "5")
        .start()
        .await;
    let cases = [
        (
            server.url_of("postgres", "hunter2", "postgres"),
            Class::Dependency,
            "AuthenticationFailed",
        ),
        (
            server.url_of("nobody", "hunter2", "postgres"),
            Class::Dependency,
            "AuthenticationFailed",
        ),
        (
            server.url("no such database"),
            Class::Dependency,
            "DatabaseNotFound",
        ),
        (
            format!("{}?sslmode=require", server.url("postgres")),
            Class::Human,
            "TlsNotOffered",
        ),
    ];
    for (url, class, reason) in cases {
        let problem = refused(&target(&url)).await;
        assert_eq!((problem.class, problem.reason), (class, reason), "{problem}");
    }
    server
        .execute("postgres", "CREATE ROLE app LOGIN PASSWORD 'app'")
        .await;
    let mut full = Vec::new();
    while let Ok(client) = server.connect("app", "app", "postgres").await {
        full.push(client);
    }
    let problem = refused(&target(&server.url_of("app", "app", "postgres"))).await;
    assert_eq!(
        (problem.class, problem.reason),
        (Class::Transient, "TooManyConnections")
    );
}

#[tokio::test]
async fn certificates_are_checked() {
    let server = Postgres::builder(Version::V18)
        .tls(Tls {
            names: vec!["db.example".to_owned()],
            required: false,
        })
        .start()
        .await;
    let ca = server.authority().unwrap().pem();
    let other = stanchion_testkit::certificates::Authority::new();
    let at = |mode, ca: Option<&str>| target(&server.url("postgres")).with_tls(mode, ca.map(str::to_owned));
    probe(&pools(), &at(TlsMode::VerifyCa, Some(ca))).await.unwrap();
    for (target, reason) in [
        (at(TlsMode::VerifyFull, Some(ca)), "CertificateName"),
        (at(TlsMode::VerifyCa, Some(other.pem())), "CertificateUntrusted"),
        (at(TlsMode::VerifyCa, Some("no certificate")), "TlsFailed"),
    ] {
        let problem = refused(&target).await;
        assert_eq!(problem.reason, reason, "{problem}");
    }
}

#[tokio::test]
async fn the_way_there_has_reasons_too() {
    let server = Postgres::start(Version::V15).await;
    let proxy = Proxy::postgres(server.address()).await;
    let direct = server.url("postgres");
    let through = target(&direct.replace(&server.address().to_string(), &proxy.address().to_string()));
    probe(&pools(), &through).await.unwrap();
    proxy.cut(Cut::Refuse).await;
    assert_eq!(refused(&through).await.reason, "ConnectionRefused");
    proxy.restore().await;
    proxy.cut(Cut::Close).await;
    assert_eq!(refused(&through).await.reason, "Unreachable");
    let unknown = target("postgres://postgres:hunter2@db.example.invalid/postgres");
    let problem = refused(&unknown).await;
    assert_eq!(
        (problem.class, problem.reason),
        (Class::Dependency, "HostNotFound")
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_is_not_waited_for() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!(
        "postgres://postgres:hunter2@{}/postgres",
        listener.local_addr().unwrap()
    );
    let problem = refused(&target(&url)).await;
    assert_eq!((problem.class, problem.reason), (Class::Transient, "Timeout"));
}

/// F13: the condition of a project says whether the server that answered was verified.
#[tokio::test]
async fn the_condition_says_whether_the_server_was_verified() {
    let server = Postgres::builder(Version::V18)
        .setting("wal_level", "logical")
        .tls(Tls::default());
    let env = TestEnv::on(DatabaseEnv::of(server.start().await, "shop").await).await;
    let authority = env.db_env.server.authority().unwrap().pem().to_owned();
    env.secret("ca", json!({ "ca.crt": authority })).await;
    let _operator = env.operator().await;
    let cases = [
        (
            json!({ "sslMode": "disable" }),
            "the connection is not encrypted, and the server was not verified",
        ),
        (
            json!({ "sslMode": "require" }),
            "the connection is encrypted, but the server was not verified",
        ),
        // With a CA, `require` verifies the certificate, as libpq does.
        (
            json!({ "sslMode": "require", "caSecretRef": { "name": "ca" } }),
            "the server was verified",
        ),
        (
            json!({ "sslMode": "verify-full", "caSecretRef": { "name": "ca" } }),
            "the server was verified",
        ),
    ];
    for (database, said) in cases {
        env.project("shop", json!({ "database": database })).await;
        let says = |project: &SupabaseProject| {
            let conditions = project.status.iter().flat_map(|status| &status.conditions);
            conditions.into_iter().any(|condition| {
                condition.type_ == "PostgreSQLConnected"
                    && condition.observed_generation == project.metadata.generation
                    && condition.status == "True"
                    && condition.message.starts_with(said)
            })
        };
        env.until("shop", says).await;
    }
}
