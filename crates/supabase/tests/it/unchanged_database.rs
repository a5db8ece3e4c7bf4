//! A prepared database is read and not written.

use secrecy::SecretString;
use stanchion_postgres::{Session, Timeouts};
use stanchion_supabase::database::{self, Login};
use stanchion_testkit::postgres::{LogEntry, Version, extremes};
use stanchion_testkit::proxy::Proxy;

use crate::database_dump;
use crate::database_env::{DatabaseEnv, full_request, password};

/// The statements of a check.
const READING: &[&str] = &["SELECT", "BEGIN", "COMMIT", "ROLLBACK", "SET"];

#[tokio::test]
async fn the_second_time_nothing_is_written() {
    for version in extremes() {
        let db_env = DatabaseEnv::new(version).await;
        let first = db_env.initialise(&full_request()).await.unwrap();
        let (before, seen) = (
            database_dump::of(&db_env).await,
            db_env.server.log().entries().len(),
        );
        let again = db_env.initialise(&full_request()).await.unwrap();
        assert_eq!(
            (again.ran.len(), &again.names, &again.notes),
            (0, &first.names, &first.notes)
        );
        assert_eq!(
            db_env.inspect(&full_request()).await.unwrap().as_ref(),
            Some(&again)
        );
        let log = db_env.server.log();
        let ours = log.entries()[seen..]
            .iter()
            .filter(|entry| entry.application == "stanchion");
        let statements: Vec<_> = ours.filter_map(LogEntry::statement).collect();
        assert!(!statements.is_empty());
        // A message can contain several statements, each at the beginning of a line.
        for line in statements
            .iter()
            .flat_map(|statement| statement.lines())
            .filter(|line| !line.starts_with([' ', ';']))
        {
            let word = line.split_whitespace().next().unwrap_or("SELECT");
            assert!(READING.contains(&word), "{line}");
        }
        assert_eq!(database_dump::of(&db_env).await, before);
    }
}

#[tokio::test]
async fn a_look_is_two_round_trips() {
    let db_env = DatabaseEnv::new(Version::V18).await;
    db_env.initialise(&full_request()).await.unwrap();
    let proxy = Proxy::postgres(db_env.server.address()).await;
    let target = db_env.through(&proxy);
    let session = Session::connect(&target, &Timeouts::default(), std::sync::Arc::new(()))
        .await
        .unwrap();
    proxy.forget();
    assert!(
        database::inspect(&session, &full_request(), None)
            .await
            .unwrap()
            .is_some()
    );
    assert_eq!(proxy.seen().round_trips, 2);
}

#[tokio::test]
async fn a_new_password_changes_one_role_and_nothing_else() {
    for version in extremes() {
        let db_env = DatabaseEnv::new(version).await;
        db_env.initialise(&full_request()).await.unwrap();
        let before = database_dump::of(&db_env).await;
        let verifiers =
            "SELECT rolname || rolpassword FROM pg_authid WHERE rolpassword IS NOT NULL ORDER BY 1";
        let old = db_env.column(verifiers).await;
        let mut request = full_request();
        request
            .passwords
            .insert(Login::Storage, SecretString::from("another"));
        assert_eq!(db_env.inspect(&request).await.unwrap(), None);
        assert_eq!(db_env.initialise(&request).await.unwrap().ran, Vec::<&str>::new());
        assert_eq!(database_dump::of(&db_env).await, before);
        let new = db_env.column(verifiers).await;
        let changed: Vec<_> = new.iter().filter(|verifier| !old.contains(verifier)).collect();
        assert_eq!(changed.len(), 1, "{changed:?}");
        db_env
            .server
            .connect("supabase_storage_admin", "another", "shop")
            .await
            .unwrap();
        let refused = db_env
            .server
            .connect("supabase_storage_admin", &password(Login::Storage), "shop")
            .await;
        assert!(refused.is_err());
    }
}

/// A proof is valid as long as the server stores the same verifiers, and no longer.
#[tokio::test]
async fn a_verified_password_ends_with_the_stored_one() {
    for version in extremes() {
        let db_env = DatabaseEnv::new(version).await;
        let proof = db_env.initialise(&full_request()).await.unwrap().verified;
        let session = Session::connect(&db_env.target(), &Timeouts::default(), std::sync::Arc::new(()))
            .await
            .unwrap();
        let look = async || {
            let request = full_request();
            database::inspect(&session, &request, Some(proof)).await.unwrap()
        };
        assert_eq!(look().await.map(|found| found.verified), Some(proof));
        db_env
            .execute("ALTER ROLE supabase_auth_admin PASSWORD 'theirs'")
            .await;
        assert_eq!(look().await, None);
    }
}
