//! Databases that the operator creates for a role, and missing databases.

use serde_json::{Value, json};
use stanchion_api::PostgresUser;
use stanchion_testkit::faults::{CutPoint, Fault, Faults, Rule};
use stanchion_testkit::postgres::versions;

use super::bed::{Bed, any, role_name};

/// Whether the status says that the object created its database.
fn is_made(user: &PostgresUser) -> bool {
    let databases = &user.status.as_ref().unwrap().databases;
    let found = databases
        .iter()
        .find(|database| database.name == user.spec.database);
    found.unwrap().created
}

fn made(name: &str) -> Value {
    json!({ "database": name, "createDatabase": { "enabled": true, "deletionPolicy": "Delete" } })
}

async fn exists(bed: &Bed, database: &str) -> bool {
    let count = format!("SELECT count(*) FROM pg_database WHERE datname = '{database}'");
    bed.server_one(&count).await == "1"
}

/// `createDatabase`, with an administrator without superuser, on each version: the role owns the database, PUBLIC may
/// not connect, and it is dropped with the object on request.
#[tokio::test]
async fn a_database_of_its_own() {
    for version in versions() {
        let bed = Bed::plain(version).await;
        let operator = bed.operator().await;
        let (role, stranger) = (role_name(), bed.group("LOGIN PASSWORD 'p'").await);
        let made = format!("{role}_db");
        let server = bed.database.server();
        bed.password("alice", "p").await;
        let wish = json!({
            "database": made, "privileges": ["CONNECT", "OWNER"],
            "createDatabase": {
                "enabled": true, "owner": true, "template": "template0", "extensions": ["pgcrypto"],
                "schemas": ["app"], "revokePublic": true, "deletionPolicy": "Delete",
            },
        });
        bed.user("alice", &role, wish.clone()).await;
        let user = bed.ready("alice").await;
        assert!(is_made(&user), "{version}");
        let owner = format!("SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = '{made}'");
        assert_eq!(bed.one(&owner).await, role);
        let schema = "SELECT nspowner::regrole FROM pg_namespace WHERE nspname = 'app'";
        assert_eq!(server.scalar(&made, schema).await.as_ref(), Some(&role));
        let there = server.connect(&role, "p", &made).await.unwrap();
        there
            .batch_execute("CREATE TABLE app.t (n int); SELECT gen_random_bytes(1)")
            .await
            .unwrap();
        assert!(server.connect(&stranger, "p", &made).await.is_err());
        let writes = bed.sql_writes().len();
        bed.look_again(&operator, "alice").await;
        assert_eq!(bed.sql_writes()[writes..], [] as [String; 0], "{version}");
        bed.delete("alice").await;
        bed.gone("alice").await;
        assert!(!exists(&bed, &made).await);
        assert!(!bed.has_role(&role).await);

        let mut kept = wish;
        kept["createDatabase"]["deletionPolicy"] = json!("Retain");
        bed.user("alice", &role, kept).await;
        bed.ready("alice").await;
        bed.delete("alice").await;
        bed.gone("alice").await;
        assert!(exists(&bed, &made).await);
        assert!(!bed.has_role(&role).await);
    }
}

/// A missing database that is not to be created is waited for; an unreachable one is named.
#[tokio::test]
async fn a_missing_database_is_named() {
    let bed = Bed::new(any()).await;
    let (role, _operator) = (role_name(), bed.operator().await);
    bed.password("alice", "p").await;
    bed.user("alice", &role, json!({ "databases": [{ "name": "nowhere" }] }))
        .await;
    let user = bed.condition("alice", "Ready", "False", "DatabaseNotFound").await;
    assert!(super::bed::message(&user, "Ready").contains("\"nowhere\""));
    assert!(!bed.has_role(&role).await);
}

/// Killed between the announcement of a database and its creation; somebody else creates it, and keeps it.
#[tokio::test]
async fn a_database_that_somebody_else_made_stays() {
    let bed = Bed::new(any()).await;
    let role = role_name();
    let name = format!("{role}_db");
    // The finalizer and the announcement.
    let faults = Faults::new().with(Rule::write(2, Fault::Cut(CutPoint::Unanswered)));
    let operator = bed.operator_with(&faults).await;
    bed.password("alice", "p").await;
    bed.user("alice", &role, made(&name)).await;
    faults.cut().await;
    operator.kill().await;
    let user = bed.users().get("alice").await.unwrap();
    assert_eq!(user.status.unwrap().provisioned_database.as_ref(), Some(&name));
    assert!(!exists(&bed, &name).await);
    let server = bed.database.server();
    server
        .execute("postgres", &format!("CREATE DATABASE {name}"))
        .await;
    let _operator = bed.operator().await;
    bed.condition("alice", "Ready", "False", "DatabaseConflict").await;
    bed.delete("alice").await;
    bed.gone("alice").await;
    assert!(exists(&bed, &name).await);
    assert!(!bed.has_role(&role).await);
}

/// Two objects request one database: it belongs to the one that created it, and is dropped only with that one.
#[tokio::test]
async fn a_database_has_one_maker() {
    let bed = Bed::new(any()).await;
    let (first, second) = (role_name(), role_name());
    let name = format!("{first}_db");
    let _operator = bed.operator().await;
    for (object, role) in [("first", &first), ("second", &second)] {
        bed.password(object, "p").await;
        bed.user(object, role, made(&name)).await;
        assert_eq!(is_made(&bed.ready(object).await), object == "first");
    }
    bed.delete("second").await;
    bed.gone("second").await;
    assert!(exists(&bed, &name).await);
    bed.delete("first").await;
    bed.gone("first").await;
    assert!(!exists(&bed, &name).await);
}
