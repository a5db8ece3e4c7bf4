//! Databases that the operator creates for a role, and missing databases.

use serde_json::{Value, json};
use stanchion_api::PostgresUser;
use stanchion_testkit::faults::{CutPoint, Fault, Faults, Rule};
use stanchion_testkit::postgres::versions;

use super::test_env::{TestEnv, any, role_name};

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

async fn exists(env: &TestEnv, database: &str) -> bool {
    let count = format!("SELECT count(*) FROM pg_database WHERE datname = '{database}'");
    env.server_one(&count).await == "1"
}

/// `createDatabase`, with an administrator without superuser, on each version: the role owns the database, PUBLIC may
/// not connect, and it is dropped with the object on request.
#[tokio::test]
async fn a_database_of_its_own() {
    for version in versions() {
        let env = TestEnv::plain(version).await;
        let operator = env.operator().await;
        let (role, stranger) = (role_name(), env.group("LOGIN PASSWORD 'p'").await);
        let made = format!("{role}_db");
        let server = env.database.server();
        env.password("alice", "p").await;
        let request = json!({
            "database": made, "privileges": ["CONNECT", "OWNER"],
            "createDatabase": {
                "enabled": true, "owner": true, "template": "template0", "extensions": ["pgcrypto"],
                "schemas": ["app"], "revokePublic": true, "deletionPolicy": "Delete",
            },
        });
        env.user("alice", &role, request.clone()).await;
        let user = env.ready("alice").await;
        assert!(is_made(&user), "{version}");
        let owner = format!("SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = '{made}'");
        assert_eq!(env.one(&owner).await, role);
        let schema = "SELECT nspowner::regrole FROM pg_namespace WHERE nspname = 'app'";
        assert_eq!(server.scalar(&made, schema).await.as_ref(), Some(&role));
        let there = server.connect(&role, "p", &made).await.unwrap();
        there
            .batch_execute("CREATE TABLE app.t (n int); SELECT gen_random_bytes(1)")
            .await
            .unwrap();
        assert!(server.connect(&stranger, "p", &made).await.is_err());
        let writes = env.sql_writes().len();
        env.look_again(&operator, "alice").await;
        assert_eq!(env.sql_writes()[writes..], [] as [String; 0], "{version}");
        env.delete("alice").await;
        env.gone("alice").await;
        assert!(!exists(&env, &made).await);
        assert!(!env.has_role(&role).await);

        let mut kept = request;
        kept["createDatabase"]["deletionPolicy"] = json!("Retain");
        env.user("alice", &role, kept).await;
        env.ready("alice").await;
        env.delete("alice").await;
        env.gone("alice").await;
        assert!(exists(&env, &made).await);
        assert!(!env.has_role(&role).await);
    }
}

/// A missing database that is not to be created is waited for; an unreachable one is named.
#[tokio::test]
async fn a_missing_database_is_named() {
    let env = TestEnv::new(any()).await;
    let (role, _operator) = (role_name(), env.operator().await);
    env.password("alice", "p").await;
    env.user("alice", &role, json!({ "databases": [{ "name": "nowhere" }] }))
        .await;
    let user = env.condition("alice", "Ready", "False", "DatabaseNotFound").await;
    assert!(super::test_env::message(&user, "Ready").contains("\"nowhere\""));
    assert!(!env.has_role(&role).await);
}

/// A schema that somebody else creates is waited for, and named with what to do.
#[tokio::test]
async fn a_missing_schema_is_named() {
    let env = TestEnv::new(any()).await;
    let (role, _operator) = (role_name(), env.operator().await);
    let database = env.database.name();
    env.password("alice", "p").await;
    let asks = |more: serde_json::Value| {
        let schema = json!({ "name": "later", "privileges": ["USAGE"] });
        let mut spec = json!({ "databases": [{ "name": database, "schemas": [schema] }] });
        json_patch::merge(&mut spec, &more);
        spec
    };
    env.user("alice", &role, asks(json!({}))).await;
    let user = env.condition("alice", "Ready", "False", "SchemaNotFound").await;
    let message = super::test_env::message(&user, "Ready");
    assert!(
        message.contains("\"later\"") && message.contains("create: true"),
        "{message}"
    );
    assert!(!env.has_role(&role).await);
    env.database.execute("CREATE SCHEMA later").await;
    env.user("alice", &role, asks(json!({ "role": { "connectionLimit": 5 } })))
        .await;
    env.ready("alice").await;
    assert!(env.has_role(&role).await);
}

/// What an owner was granted in addition, and is not any more, stays with the ownership.
#[tokio::test]
async fn an_owner_keeps_what_comes_with_the_database() {
    let env = TestEnv::new(any()).await;
    let (role, _operator) = (role_name(), env.operator().await);
    let own = format!("{role}_db");
    env.password("alice", "p").await;
    let asks = |words: &[&str]| {
        json!({
            "database": own, "privileges": words,
            "createDatabase": { "enabled": true, "owner": true, "deletionPolicy": "Delete" },
        })
    };
    env.user("alice", &role, asks(&["CONNECT", "TEMPORARY"])).await;
    env.ready("alice").await;
    env.user("alice", &role, asks(&["CONNECT"])).await;
    env.ready("alice").await;
    assert_eq!(env.words(&role, &own).await, "CONNECT,CREATE,TEMPORARY");
    env.delete("alice").await;
    env.gone("alice").await;
}

/// Killed between the status that records a database and its creation; somebody else creates it, and keeps it.
#[tokio::test]
async fn a_database_that_somebody_else_made_stays() {
    let env = TestEnv::new(any()).await;
    let role = role_name();
    let name = format!("{role}_db");
    // The finalizer, and the status that records what follows.
    let faults = Faults::new().with(Rule::write(2, Fault::Cut(CutPoint::Unanswered)));
    let operator = env.operator_with(&faults).await;
    env.password("alice", "p").await;
    env.user("alice", &role, made(&name)).await;
    faults.cut().await;
    operator.kill().await;
    let user = env.users().get("alice").await.unwrap();
    assert_eq!(user.status.unwrap().provisioned_database.as_ref(), Some(&name));
    assert!(!exists(&env, &name).await);
    let server = env.database.server();
    server
        .execute("postgres", &format!("CREATE DATABASE {name}"))
        .await;
    let _operator = env.operator().await;
    env.condition("alice", "Ready", "False", "DatabaseConflict").await;
    env.delete("alice").await;
    env.gone("alice").await;
    assert!(exists(&env, &name).await);
    assert!(!env.has_role(&role).await);
}

/// Two objects request one database: it belongs to the one that created it, and is dropped only with that one.
#[tokio::test]
async fn only_one_object_creates_a_database() {
    let env = TestEnv::new(any()).await;
    let (first, second) = (role_name(), role_name());
    let name = format!("{first}_db");
    let _operator = env.operator().await;
    for (object, role) in [("first", &first), ("second", &second)] {
        env.password(object, "p").await;
        env.user(object, role, made(&name)).await;
        assert_eq!(is_made(&env.ready(object).await), object == "first");
    }
    env.delete("second").await;
    env.gone("second").await;
    assert!(exists(&env, &name).await);
    env.delete("first").await;
    env.gone("first").await;
    assert!(!exists(&env, &name).await);
}

/// A database that was renamed keeps its oid, which is derived from the old name. The object creates another one, with the
/// next oid.
#[tokio::test]
async fn a_renamed_database_is_created_again() {
    let env = TestEnv::new(any()).await;
    let role = role_name();
    let (made, renamed) = (format!("{role}_db"), format!("{role}_old"));
    let operator = env.operator().await;
    env.password("alice", "p").await;
    let spec = json!({ "database": made, "createDatabase": { "enabled": true, "deletionPolicy": "Delete" } });
    env.user("alice", &role, spec).await;
    env.ready("alice").await;
    let server = env.database.server();
    let rename = format!("ALTER DATABASE {made} RENAME TO {renamed}");
    let close =
        format!("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{made}'");
    operator.kill().await;
    server.execute("postgres", &close).await;
    server.execute("postgres", &rename).await;
    let operator = env.operator().await;
    env.look_again(&operator, "alice").await;
    env.ready("alice").await;
    let both = format!("SELECT count(*) FROM pg_database WHERE datname IN ('{made}', '{renamed}')");
    assert_eq!(env.server_one(&both).await, "2");
    env.delete("alice").await;
    env.gone("alice").await;
    let left =
        format!("SELECT string_agg(datname, ',') FROM pg_database WHERE datname IN ('{made}', '{renamed}')");
    assert_eq!(env.server_one(&left).await, renamed, "only its own one goes");
    server
        .execute("postgres", &format!("DROP DATABASE {renamed}"))
        .await;
}
