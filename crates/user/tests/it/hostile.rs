//! Hostile inputs: nothing but the intended statements runs, and passwords do not leak.

use std::collections::BTreeSet;

use kube::api::{Patch, PatchParams};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use stanchion_api::PostgresUser;
use stanchion_testkit::postgres::Postgres;
use stanchion_testkit::wait;

use super::test_env::{How, TestEnv, WAIT_TIMEOUT, any, role_name};

/// A text that no password, name or comment contains by chance.
const CANARY: &str = "cAnArY";

/// As odd as the rules allow.
const DATABASE: &str = "a$$--b";

/// How many of each kind are generated: usernames and databases (which are refused), and passwords, comments, two
/// parameters, schemas and templates (which are accepted).
const EACH: usize = 30;
const KINDS: usize = 8;
const _: () = assert!(EACH * KINDS >= 200);

/// Text that breaks out of quotes if that is possible.
fn hostile() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "'",
        "''",
        "\"",
        "\"\"",
        "\\",
        "\\'",
        "$$",
        "$x$",
        ";",
        "--",
        "/*",
        "*/",
        "%s",
        "%I",
        "{}",
        "{{",
        "\u{e9}",
        "\u{1f600}",
        " ",
        "\t",
        "x",
        "0",
        "SUPERUSER",
        "VALID UNTIL 'infinity'",
        "DROP ROLE victim",
        "PASSWORD NULL",
        "' SUPERUSER VALID UNTIL 'infinity",
        "\"; DROP ROLE victim; --",
        "'; DROP ROLE victim; --",
        "E'\\x27",
        "U&\"",
    ]);
    prop::collection::vec(pieces, 1..6).prop_map(|pieces| pieces.concat())
}

fn generate(count: usize) -> Vec<String> {
    let mut runner = TestRunner::deterministic();
    let mut found = BTreeSet::new();
    while found.len() < count {
        let text = hostile().new_tree(&mut runner).unwrap().current();
        found.insert(text);
    }
    found.into_iter().collect()
}

/// At most PostgreSQL's limit for names.
fn name(text: &str) -> String {
    let mut end = text.len().min(63);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

/// All roles with their dangerous attributes, and all databases: what an injected statement would change.
async fn census(server: &Postgres) -> Vec<Vec<Option<String>>> {
    server
        .query(
            "postgres",
            "SELECT rolname, rolsuper, rolcreaterole, rolbypassrls, rolvaliduntil::text FROM pg_roles \
             UNION ALL SELECT datname, datallowconn, false, false, NULL FROM pg_database ORDER BY 1, 2, 3",
        )
        .await
}

/// Applies a user with this text in every field, and checks that everything arrives unchanged. Returns the number of
/// inputs.
async fn arrives(env: &TestEnv, server: &Postgres, role: &str, schema: &str, text: &str) -> usize {
    let password = format!("{CANARY}{text}");
    env.password("alice", &password).await;
    let schema = name(schema);
    let after = text.replace("{{", "");
    let request = json!({
        "database": DATABASE,
        "role": { "comment": text, "parameters": { "application_name": text, "search_path": format!("\"{}\"", text.replace('"', "\"\"")) } },
        "databases": [{ "name": DATABASE, "schemas": [{ "name": schema, "create": true, "privileges": ["SELECT"] }] }],
        "credentialsSecret": { "name": "out", "template": { "T": format!("{{{{ .Password | conninfo }}}} {after}") } },
    });
    env.user("alice", role, request).await;
    env.ready("alice").await;
    let session = wait::eventually(WAIT_TIMEOUT, "the password", async || {
        server.connect(role, &password, DATABASE).await
    })
    .await;
    let row = "SELECT shobj_description(oid, 'pg_authid'), rolsuper::text FROM pg_roles WHERE rolname = current_user";
    let row = session.query_one(row, &[]).await.unwrap();
    let comment: String = row.get(0);
    assert!(comment.starts_with(&format!("{text} [stanchion ")), "{comment}");
    assert_eq!(row.get::<_, String>(1), "false");
    let there = "SELECT count(*) FROM pg_namespace WHERE nspname = $1";
    assert_eq!(
        session
            .query_one(there, &[&schema])
            .await
            .unwrap()
            .get::<_, i64>(0),
        1,
        "{schema}"
    );
    let path = session
        .query_one("SELECT current_setting('search_path')", &[])
        .await
        .unwrap();
    let (path, quoted) = (
        path.get::<_, String>(0),
        format!("\"{}\"", text.replace('"', "\"\"")),
    );
    assert!(path == text || path == quoted, "{path} for {text}");
    let name = session
        .query_one("SELECT option_value FROM pg_options_to_table((SELECT setconfig FROM pg_db_role_setting WHERE setrole = $1::text::regrole)) WHERE option_name = 'application_name'", &[&role])
        .await
        .unwrap();
    assert_eq!(name.get::<_, String>(0), text);
    let rendered = &env.values("out").await["T"];
    assert!(
        rendered.contains(CANARY) && rendered.ends_with(&after),
        "{rendered}"
    );
    // The password, the comment, two parameters, the schema, the template.
    6
}

/// C40, A16, A18: no generated username or database name is accepted that could be more than a name, by the API server
/// itself and by the controller.
#[tokio::test]
async fn names_are_quoted() {
    let env = TestEnv::new(any()).await;
    let mut judged = 0;
    for text in &generate(EACH) {
        for field in ["username", "database"] {
            let mut spec =
                json!({ "username": "a", "database": "app", "passwordSecretRef": { "name": "s" } });
            spec[field] = json!(text);
            let user = json!({
                "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresUser", "metadata": { "name": "x" }, "spec": spec,
            });
            // An accepted name has no character that could end a quoted name.
            let inert = text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_$-".contains(c));
            let params = PatchParams::apply("test").force().dry_run();
            let let_in = env.users().patch("x", &params, &Patch::Apply(&user)).await;
            assert!(inert || let_in.is_err(), "{field}: {text}");
            let user: PostgresUser = serde_json::from_value(user).unwrap();
            assert!(inert || stanchion_user::check(&user).is_err(), "{field}: {text}");
            judged += 1;
        }
    }
    assert_eq!(judged, 2 * EACH);
}

/// A18: passwords, comments, parameters, templates and names inside of a database arrive unchanged, and nothing else
/// happens. On a separate server, so that nobody else changes its catalog.
#[tokio::test]
async fn nothing_but_the_intended_statement_runs() {
    let server = Postgres::start(any()).await;
    let env = TestEnv::new(any()).await;
    server.execute("postgres", "CREATE ROLE victim SUPERUSER").await;
    server
        .execute("postgres", &format!("CREATE DATABASE \"{DATABASE}\""))
        .await;
    let target = stanchion_postgres::ConnectionConfig::parse(&server.url("postgres").into()).unwrap();
    let operator = env.start(How {
        admin: target,
        ..env.how().await
    });
    let texts = generate(EACH);

    // Values: each arrives unchanged, on a few users at a time.
    let role = role_name();
    let before = census(&server).await;
    let mut arrived = 0;
    for (index, text) in texts.iter().enumerate() {
        arrived += arrives(&env, &server, &role, &format!("s{index}{text}"), text).await;
    }
    assert_eq!(arrived, (KINDS - 2) * EACH);

    let mut after = census(&server).await;
    after.retain(|row| row[0].as_deref() != Some(&role));
    assert_eq!(after, before);
    // Only the intended statements ran.
    let meant = [
        "SELECT",
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "SET",
        "CREATE ROLE \"",
        "ALTER ROLE \"",
        "COMMENT ON ROLE \"",
        "GRANT ",
        "REVOKE ",
        "CREATE SCHEMA IF NOT EXISTS \"",
        "ALTER DEFAULT PRIVILEGES FOR ROLE \"",
        "CREATE DATABASE \"",
        "CREATE ROLE victim",
        "DISCARD",
        "DEALLOCATE",
        "ALTER SYSTEM",
        "SHOW",
    ];
    for sql in server
        .log()
        .entries()
        .iter()
        .filter_map(|entry| entry.statement())
    {
        assert!(meant.iter().any(|word| sql.starts_with(word)), "{sql}");
    }
    // The canary is only in the Secrets.
    assert!(!server.log().text().contains(CANARY));
    let user = env.users().get("alice").await.unwrap();
    let reported: Value = json!([serde_json::to_value(&user).unwrap(), env.events("alice").await]);
    assert!(!reported.to_string().contains(CANARY), "{reported}");
    assert!(reported.to_string().contains("managedFields"));
    assert!(!env.log.text().is_empty() && !env.log.text().contains(CANARY));
    drop(operator);
}

/// A18: a password that the server refuses does not leak, either. The server refuses what an administrator without the
/// privilege sends, and logs the refused statement.
#[tokio::test]
async fn a_rejected_password_is_not_in_the_status_or_events() {
    let env = TestEnv::new(any()).await;
    let server = Postgres::start(any()).await;
    server
        .execute("postgres", "CREATE ROLE weak LOGIN PASSWORD 'w'")
        .await;
    server.execute("postgres", "CREATE DATABASE app").await;
    let target =
        stanchion_postgres::ConnectionConfig::parse(&server.url_of("weak", "w", "postgres").into()).unwrap();
    let operator = env.start(How {
        admin: target,
        ..env.how().await
    });
    env.password("alice", CANARY).await;
    env.user("alice", &role_name(), json!({ "database": "app" }))
        .await;
    let user = env
        .condition("alice", "Ready", "False", "InsufficientPrivilege")
        .await;
    let reported = json!([serde_json::to_value(&user).unwrap(), env.events("alice").await]).to_string();
    assert!(
        !reported.contains(CANARY) && !reported.contains("SCRAM-SHA"),
        "{reported}"
    );
    assert!(!server.log().text().contains(CANARY));
    assert!(!env.log.text().contains(CANARY) && !env.log.text().contains("SCRAM-SHA"));
    drop(operator);
}
