//! Privileges of a role: on databases, tables and schemas, in several databases, and in its own databases.

use serde_json::json;
use stanchion_testkit::postgres::versions;
use stanchion_testkit::unique;

use super::bed::{Bed, any, role_name};

/// Privileges on the database, and bundles in the schema `public`; those that leave the spec are revoked.
#[tokio::test]
async fn words_come_and_go() {
    for version in versions() {
        let bed = Bed::new(version).await;
        let (role, _operator) = (role_name(), bed.operator().await);
        let database = bed.database.name();
        bed.database
            .execute("CREATE TABLE t (n int); CREATE SEQUENCE s; CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'; REVOKE EXECUTE ON FUNCTION f() FROM PUBLIC")
            .await;
        bed.password("alice", "p").await;
        bed.user("alice", &role, json!({ "privileges": ["ALL"] })).await;
        bed.ready("alice").await;
        assert_eq!(bed.words(&role, database).await, "CONNECT,CREATE,TEMPORARY");
        assert!(!bed.can(&role, "p", "SELECT FROM t").await);

        bed.user("alice", &role, json!({ "privileges": ["READ"] })).await;
        bed.ready("alice").await;
        assert_eq!(bed.words(&role, database).await, "CONNECT");
        assert!(
            bed.can(&role, "p", "SELECT FROM t; SELECT last_value FROM s")
                .await
        );
        assert!(!bed.can(&role, "p", "INSERT INTO t VALUES (1)").await);
        // Future tables of the database's owner.
        bed.database.execute("CREATE TABLE later (n int)").await;
        assert!(bed.can(&role, "p", "SELECT FROM later").await);

        bed.user("alice", &role, json!({ "privileges": ["WRITE"] })).await;
        bed.ready("alice").await;
        let write =
            "INSERT INTO t VALUES (1); UPDATE t SET n = 2; DELETE FROM t; SELECT nextval('s'); SELECT f()";
        assert!(bed.can(&role, "p", write).await);
        assert!(!bed.can(&role, "p", "TRUNCATE t").await);
        assert!(!bed.can(&role, "p", "CREATE TABLE public.own (n int)").await);

        bed.user("alice", &role, json!({ "privileges": ["OWNER"] })).await;
        bed.ready("alice").await;
        let own = "TRUNCATE t; CREATE TABLE public.own (n int); DROP TABLE public.own";
        assert!(bed.can(&role, "p", own).await);

        // A table that lacks the privilege does not prevent its revocation on the others.
        bed.database
            .execute(&format!(
                "CREATE TABLE bare (n int); REVOKE ALL ON bare FROM {role}"
            ))
            .await;
        bed.user("alice", &role, json!({ "privileges": ["CONNECT", "SELECT"] }))
            .await;
        bed.ready("alice").await;
        assert!(bed.can(&role, "p", "SELECT FROM t; SELECT FROM bare").await);
        bed.user("alice", &role, json!({ "privileges": ["CONNECT"] }))
            .await;
        let user = bed.ready("alice").await;
        assert!(!bed.can(&role, "p", "SELECT FROM t").await);
        assert!(!bed.can(&role, "p", "SELECT f()").await);
        bed.database.execute("CREATE TABLE last (n int)").await;
        assert!(!bed.can(&role, "p", "SELECT FROM last").await);
        let grants = user.status.unwrap().grants;
        assert_eq!(grants.len(), 1, "{grants:?}");
    }
}

/// `databases[]`: schemas with their own privileges, created schemas, owners of future tables, extensions; a removed
/// entry is revoked.
#[tokio::test]
async fn several_databases_with_schemas() {
    let bed = Bed::new(any()).await;
    let (role, owner) = (role_name(), bed.group("").await);
    let server = bed.database.server();
    let other = unique::name("other").replace('-', "_");
    server
        .execute("postgres", &format!("CREATE DATABASE {other}"))
        .await;
    server
        .execute(&other, "CREATE SCHEMA data; CREATE TABLE data.t (n int); CREATE SCHEMA closed; CREATE TABLE closed.t (n int)")
        .await;
    server
        .execute(&other, &format!("GRANT CREATE ON SCHEMA data TO {owner}"))
        .await;
    let operator = bed.operator().await;
    bed.password("alice", "p").await;
    let entry = json!({
        "name": other, "privileges": ["CONNECT", "READ"], "extensions": ["pgcrypto"],
        "schemas": [
            { "name": "data", "defaultPrivilegesForRoles": [owner] },
            { "name": "made", "create": true, "privileges": ["CREATE", "SELECT"] },
        ],
    });
    bed.user("alice", &role, json!({ "databases": [entry] })).await;
    let user = bed.ready("alice").await;
    let names: Vec<String> = user
        .status
        .unwrap()
        .databases
        .into_iter()
        .map(|it| it.name)
        .collect();
    assert!(
        names.contains(&other) && names.contains(&bed.database.name().to_owned()),
        "{names:?}"
    );
    let there = server.connect(&role, "p", &other).await.unwrap();
    there
        .batch_execute("SELECT FROM data.t; CREATE TABLE made.own (n int)")
        .await
        .unwrap();
    there.batch_execute("SELECT FROM closed.t").await.unwrap_err();
    let extension = "SELECT count(*) FROM pg_extension WHERE extname = 'pgcrypto'";
    assert_eq!(server.scalar(&other, extension).await.as_deref(), Some("1"));
    server
        .execute(
            &other,
            &format!("SET ROLE {owner}; CREATE TABLE data.later (n int)"),
        )
        .await;
    there.batch_execute("SELECT FROM data.later").await.unwrap();
    // Also future tables of the created schema's owner: it converged in one reconcile, and the next one finds nothing.
    server.execute(&other, "CREATE TABLE made.later (n int)").await;
    there.batch_execute("SELECT FROM made.later").await.unwrap();
    let writes = bed.sql_writes().len();
    bed.look_again(&operator, "alice").await;
    assert_eq!(bed.sql_writes()[writes..], [] as [String; 0]);

    bed.user("alice", &role, json!({ "databases": [] })).await;
    let user = bed.ready("alice").await;
    let held = format!(
        "SELECT count(*) FROM pg_shdepend s JOIN pg_database d ON d.oid = s.dbid \
         WHERE s.refobjid = '{role}'::regrole AND d.datname = '{other}' AND s.deptype = 'a'"
    );
    assert_eq!(bed.one(&held).await, "0");
    assert_eq!(bed.words(&role, &other).await, "");
    there.batch_execute("SELECT FROM data.t").await.unwrap_err();
    let status = user.status.unwrap();
    assert!(!status.databases.iter().any(|database| database.name == other));
    assert!(
        !status
            .grants
            .iter()
            .any(|grant| grant.database.as_deref() == Some(&other))
    );
}
