//! Names and passwords that need quoting.

use std::collections::BTreeMap;

use secrecy::{ExposeSecret as _, SecretString};
use stanchion_supabase::database::{Login, Request};
use stanchion_testkit::postgres::{Version, extremes};

use crate::database_dump;
use crate::database_env::{DatabaseEnv, full_request, request};

const DATABASES: &[&str] = &[
    "Shop",
    "my shop",
    r#"sh"op"#,
    "sh'op",
    "shop$stanchion$; DROP ROLE anon",
    "%s %I",
    r"back\slash",
    "läden",
];

#[tokio::test]
async fn any_database_name() {
    for version in extremes() {
        let mut db_env = DatabaseEnv::named(version, "plain").await;
        db_env.initialise(&full_request()).await.unwrap();
        let expected = database_dump::of(&db_env).await;
        for name in DATABASES {
            db_env.renew(name).await;
            let initialised = db_env.initialise(&full_request()).await;
            initialised.unwrap_or_else(|problem| panic!("{name}: {problem:?}"));
            assert!(db_env.inspect(&full_request()).await.unwrap().is_some(), "{name}");
            // Only its own line differs.
            let expected: Vec<_> = expected
                .lines()
                .filter(|line| !line.starts_with("plain of"))
                .collect();
            let (state, own) = (database_dump::of(&db_env).await, format!("{name} of"));
            let found: Vec<_> = state.lines().filter(|line| !line.starts_with(&own)).collect();
            assert_eq!(found, expected, "{name}");
        }
    }
}

#[tokio::test]
async fn the_database_of_analytics_is_nobody_elses() {
    let db_env = DatabaseEnv::named(Version::V18, "_supabase").await;
    let problem = db_env.initialise(&full_request()).await.unwrap_err();
    assert_eq!(problem.reason, "DatabaseReserved");
    db_env.initialise(&request()).await.unwrap();
}

const PASSWORDS: &[&str] = &[
    "p@ss/w#rd%",
    "quo'te",
    r#"dou"ble"#,
    r"back\slash\\",
    "$stanchion$; DROP ROLE anon",
    "pässwörd ☃",
    " leading and trailing ",
    "SCRAM-SHA-256$4096:not$a:verifier",
    "md5short",
    "'; ALTER ROLE anon SUPERUSER; --",
];

#[tokio::test]
async fn any_password_and_none_in_the_log() {
    for version in extremes() {
        let db_env = DatabaseEnv::new(version).await;
        let passwords: BTreeMap<_, _> = Login::ALL
            .into_iter()
            .zip(PASSWORDS.iter().map(|password| SecretString::from(*password)))
            .collect();
        assert_eq!(passwords.len(), PASSWORDS.len());
        let request = Request {
            passwords,
            ..full_request()
        };
        db_env.initialise(&request).await.unwrap();
        assert!(db_env.inspect(&request).await.unwrap().is_some());
        for (login, password) in &request.passwords {
            let database = match login {
                Login::Analytics | Login::Pooler => "_supabase",
                _ => "shop",
            };
            let connected = db_env
                .server
                .connect(login.role(), password.expose_secret(), database)
                .await;
            connected.unwrap_or_else(|error| panic!("{login:?} {}: {error:?}", password.expose_secret()));
        }
        let log = db_env.server.log();
        let verifiers = db_env
            .column(
                "SELECT rolpassword FROM pg_authid WHERE rolname <> 'postgres' AND rolpassword IS NOT NULL",
            )
            .await;
        assert_eq!(verifiers.len(), Login::ALL.len());
        for secret in PASSWORDS
            .iter()
            .copied()
            .chain(verifiers.iter().map(String::as_str))
        {
            assert!(!log.text().contains(secret), "{secret} is in the log");
        }
    }
}
