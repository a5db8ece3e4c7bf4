//! The five modes against servers with and without TLS.

use stanchion_postgres::{Class, ConnectionConfig, Kind, Query, TlsMode};
use stanchion_testkit::certificates::Authority;
use stanchion_testkit::postgres::{ADMIN, ADMIN_PASSWORD, Postgres, Tls, Version};

use crate::support::{connect, target};

const MODES: [TlsMode; 5] = [
    TlsMode::Disable,
    TlsMode::Prefer,
    TlsMode::Require,
    TlsMode::VerifyCa,
    TlsMode::VerifyFull,
];

fn at(server: &Postgres, host: &str, mode: TlsMode, ca: Option<&str>) -> ConnectionConfig {
    ConnectionConfig::new(host, server.port(), "postgres", ADMIN)
        .unwrap()
        .with_password(ADMIN_PASSWORD.into())
        .with_tls(mode, ca.map(str::to_owned))
}

/// Whether the session is encrypted, or what went wrong.
async fn outcome(target: &ConnectionConfig) -> Result<bool, Kind> {
    let session = connect(target).await.map_err(|error| error.kind())?;
    let rows = session
        .query(&Query::new(
            "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()",
        ))
        .await
        .unwrap();
    Ok(rows[0].get(0))
}

#[tokio::test]
async fn with_a_certificate_of_our_ca() {
    let server = Postgres::builder(Version::V15)
        .tls(Tls {
            names: vec!["localhost".into()],
            required: false,
        })
        .start()
        .await;
    let ours = server.authority().unwrap().pem();
    let other = Authority::new();
    let theirs = other.pem();
    // The certificate contains `localhost` and not the address.
    let cases = [
        (
            "localhost",
            None,
            [Ok(false), Ok(true), Ok(true), Err(()), Err(())],
        ),
        (
            "localhost",
            Some(ours),
            [Ok(false), Ok(true), Ok(true), Ok(true), Ok(true)],
        ),
        (
            "127.0.0.1",
            Some(ours),
            [Ok(false), Ok(true), Ok(true), Ok(true), Err(())],
        ),
        (
            "localhost",
            Some(theirs),
            [Ok(false), Ok(true), Err(()), Err(()), Err(())],
        ),
    ];
    for (host, ca, expected) in cases {
        for (mode, expected) in MODES.into_iter().zip(expected) {
            let seen = outcome(&at(&server, host, mode, ca)).await;
            assert_eq!(seen.map_err(|_| ()), expected, "{host} {mode:?} {seen:?}");
        }
    }
    let kind = |target| async move { outcome(&target).await.unwrap_err() };
    assert_eq!(
        kind(at(&server, "127.0.0.1", TlsMode::VerifyFull, Some(ours))).await,
        Kind::CertificateName
    );
    assert_eq!(
        kind(at(&server, "localhost", TlsMode::VerifyFull, Some(theirs))).await,
        Kind::CertificateUntrusted
    );
    assert_eq!(
        kind(at(&server, "localhost", TlsMode::Require, Some(theirs))).await,
        Kind::CertificateUntrusted
    );
}

#[tokio::test]
async fn without_tls_on_the_server() {
    let server = Postgres::shared(Version::V15).await;
    let authority = Authority::new();
    for (mode, expected) in MODES.into_iter().zip([
        Ok(false),
        Ok(false),
        Err(Kind::TlsRefused),
        Err(Kind::TlsRefused),
        Err(Kind::TlsRefused),
    ]) {
        let target = at(server, "localhost", mode, Some(authority.pem()));
        assert_eq!(outcome(&target).await, expected, "{mode:?}");
    }
    let error = connect(&at(server, "localhost", TlsMode::Require, None))
        .await
        .unwrap_err();
    assert_eq!(error.class(), Class::Human);
    assert!(error.to_string().contains("does not offer TLS"), "{error}");
}

#[tokio::test]
async fn a_server_that_wants_tls_gets_it() {
    let server = Postgres::builder(Version::V15).tls(Tls::default()).start().await;
    server
        .execute("postgres", "CREATE ROLE ann LOGIN PASSWORD 'secret'")
        .await;
    let url = server.url_of("ann", "secret", "postgres");
    assert_eq!(outcome(&target(&url)).await, Ok(true));
    let refused = connect(&target(&format!("{url}?sslmode=disable")))
        .await
        .unwrap_err();
    assert_eq!(
        (refused.sqlstate(), refused.class()),
        (Some("28000"), Class::Dependency)
    );
    // The channel is bound to the certificate: nobody in between can log in with what we send.
    let bound = target(&format!("{url}?sslmode=require&channel_binding=require"));
    assert_eq!(outcome(&bound).await, Ok(true));
}
