//! `deletionPolicy` and `onDelete`: what happens to a role and its objects.

use serde_json::{Value, json};
use stanchion_testkit::unique;

use super::bed::{Bed, any, message, role_name};

/// A user who owns a table with a row in it, in its own schema.
async fn owner(bed: &Bed, name: &str, role: &str, more: Value) {
    bed.password(name, "secret").await;
    bed.user(name, role, more).await;
    bed.ready(name).await;
    let make = format!("CREATE SCHEMA s AUTHORIZATION {role}; SET ROLE {role}; CREATE TABLE s.kept (n int)");
    bed.database.execute(&make).await;
    bed.database.execute("INSERT INTO s.kept VALUES (7)").await;
}

fn owner_of_kept() -> String {
    "SELECT tableowner FROM pg_tables WHERE tablename = 'kept'".into()
}

/// Retain: the role keeps everything but our mark, and another object can adopt it.
#[tokio::test]
async fn a_retained_role_works_on_and_can_be_adopted() {
    let bed = Bed::new(any()).await;
    let role = role_name();
    let _operator = bed.operator().await;
    owner(&bed, "kim", &role, json!({ "deletionPolicy": "Retain" })).await;
    bed.delete("kim").await;
    bed.gone("kim").await;
    assert!(bed.logs_in(&role, "secret").await);
    assert_eq!(bed.words(&role, bed.database.name()).await, "CONNECT");
    assert_eq!(bed.one(&owner_of_kept()).await, role);
    let comment =
        format!("SELECT shobj_description(oid, 'pg_authid') FROM pg_roles WHERE rolname = '{role}'");
    assert_eq!(bed.one(&comment).await, "");
    bed.user(
        "kim-again",
        &role,
        json!({ "passwordSecretRef": { "name": "kim" }, "existingRolePolicy": "Adopt" }),
    )
    .await;
    let user = bed.ready("kim-again").await;
    assert_eq!(user.status.unwrap().adopted, Some(true));
    bed.delete("kim-again").await;
    bed.gone("kim-again").await;
    assert!(bed.has_role(&role).await, "an adopted role is never dropped");
}

/// Disable: the role stays and cannot log in.
#[tokio::test]
async fn a_disabled_role_stays_and_cannot_log_in() {
    let bed = Bed::new(any()).await;
    let role = role_name();
    let _operator = bed.operator().await;
    owner(&bed, "leo", &role, json!({ "deletionPolicy": "Disable" })).await;
    bed.delete("leo").await;
    bed.gone("leo").await;
    assert!(bed.has_role(&role).await);
    assert!(!bed.logs_in(&role, "secret").await);
    assert_eq!(bed.one(&owner_of_kept()).await, role);
}

/// Drop: what it owns is dropped with it, except databases, which need an explicit request.
#[tokio::test]
async fn what_a_role_owns_is_dropped_only_where_that_is_asked_for() {
    let bed = Bed::new(any()).await;
    let (role, owned) = (role_name(), unique::name("owned"));
    let _operator = bed.operator().await;
    owner(
        &bed,
        "mia",
        &role,
        json!({ "onDelete": { "ownedObjects": "Drop" } }),
    )
    .await;
    let server = bed.database.server();
    server
        .execute("postgres", &format!("CREATE DATABASE {owned} OWNER {role}"))
        .await;
    bed.delete("mia").await;
    bed.gone("mia").await;
    assert!(!bed.has_role(&role).await);
    assert_eq!(
        bed.one("SELECT count(*) FROM pg_tables WHERE tablename = 'kept'")
            .await,
        "0"
    );
    let still_there = format!("SELECT count(*) FROM pg_database WHERE datname = '{owned}'");
    assert_eq!(bed.server_one(&still_there).await, "1");
}

/// A8: Block keeps role and object while the role owns anything, changes nothing, and names the database.
#[tokio::test]
async fn a_role_that_owns_something_can_be_kept_for_it() {
    Bed::on_each_kind(async |bed| {
        let role = role_name();
        let operator = bed.operator().await;
        owner(
            &bed,
            "ned",
            &role,
            json!({ "onDelete": { "ownedObjects": "Block" } }),
        )
        .await;
        bed.delete("ned").await;
        let user = bed.condition("ned", "Ready", "False", "CleanupBlocked").await;
        let said = message(&user, "Ready");
        for part in [role.as_str(), bed.database.name(), "2BP01"] {
            assert!(said.contains(part), "{said}");
        }
        assert_eq!(user.metadata.finalizers.map(|all| all.len()), Some(1));
        assert!(bed.logs_in(&role, "secret").await);
        bed.database.execute("DROP SCHEMA s CASCADE").await;
        bed.look_again(&operator, "ned").await;
        bed.gone("ned").await;
        assert!(!bed.has_role(&role).await);
    })
    .await;
}

/// `reassignTo` names the new owner; a missing one is waited for, and nothing is changed before.
#[tokio::test]
async fn the_heir_can_be_named() {
    let bed = Bed::new(any()).await;
    let (role, heir) = (role_name(), role_name());
    let operator = bed.operator().await;
    owner(&bed, "oda", &role, json!({ "onDelete": { "reassignTo": heir } })).await;
    bed.delete("oda").await;
    let user = bed.condition("oda", "Ready", "False", "CleanupBlocked").await;
    assert!(message(&user, "Ready").contains(&heir));
    assert!(bed.logs_in(&role, "secret").await);
    bed.database.execute(&format!("CREATE ROLE {heir}")).await;
    bed.look_again(&operator, "oda").await;
    bed.gone("oda").await;
    assert_eq!(bed.one(&owner_of_kept()).await, heir);
    assert_eq!(bed.one("SELECT n FROM s.kept").await, "7");
}
