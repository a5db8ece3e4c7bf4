//! The original's sample policies, in their original form, reach the conditions that it documents.
//!
//! In the files, `ROLE` stands for the prefix of this test's names, `DATABASE` and `PORT` for its database.

use kube::ResourceExt;
use serde_json::{Value, json};
use stanchion_api::PostgresPolicy;
use stanchion_testkit::postgres::{ADMIN, ADMIN_PASSWORD};

use super::test_env::{Running, TestEnv, condition, message};

const WELL: [(&str, &str, &str); 4] = [
    ("Ready", "True", "Reconciled"),
    ("Degraded", "False", "Reconciled"),
    ("Drifted", "False", "InSync"),
    ("Conflict", "False", "NoConflict"),
];

/// The conditions of a policy that fails with this reason.
fn failed(reason: &str) -> [(&str, &str, &str); 2] {
    [("Ready", "False", reason), ("Degraded", "True", reason)]
}

/// An environment with the operator and the Secret `db`.
async fn stage() -> (TestEnv, Running) {
    let env = TestEnv::new().await;
    let operator = env.operator().await;
    env.database_secret().await;
    (env, operator)
}

/// Applies a sample under this name.
async fn apply(env: &TestEnv, name: &str, sample: &str) {
    let port = env.database.server().port().to_string();
    let text = sample
        .replace("ROLE", &env.prefix)
        .replace("DATABASE", env.database.name())
        .replace("PORT", &port);
    let sample: Value = serde_saphyr::from_str(&text).unwrap();
    let mut spec = json!({ "connection": { "secretRef": null } });
    json_patch::merge(&mut spec, &sample["spec"]);
    env.policy(name, spec).await;
}

/// Waits for the first of these conditions, and checks the others.
async fn comes_to(env: &TestEnv, name: &str, conditions: &[(&str, &str, &str)]) -> PostgresPolicy {
    let (kind, status, reason) = conditions[0];
    let policy = env.condition(name, kind, status, reason).await;
    for (kind, status, reason) in conditions {
        assert_eq!(
            condition(&policy, kind),
            Some(((*status).to_owned(), (*reason).to_owned())),
            "{kind} of {name}"
        );
    }
    policy
}

async fn may_connect(env: &TestEnv, role: &str) -> bool {
    let sql = format!(
        "SELECT count(*) FROM pg_database, aclexplode(datacl) WHERE datname = current_database() \
         AND grantee = '{role}'::regrole AND privilege_type = 'CONNECT'"
    );
    env.one(&sql).await == "1"
}

#[tokio::test]
async fn basic() {
    let (env, _operator) = stage().await;
    env.database.execute("CREATE TABLE public.t (n int)").await;
    apply(&env, "basic", include_str!("samples/basic.yaml")).await;
    comes_to(&env, "basic", &WELL).await;
    let (writes, reads) = (env.role("public_writes"), env.role("public_reads"));
    for (role, privilege, expected) in [
        (&writes, "DELETE", "true"),
        (&reads, "SELECT", "true"),
        (&reads, "DELETE", "false"),
    ] {
        let sql = format!("SELECT has_table_privilege('{role}', 'public.t', '{privilege}')::text");
        assert_eq!(env.one(&sql).await, expected, "{role} {privilege}");
    }
    env.database.execute("CREATE TABLE public.later (n int)").await;
    let sql = format!("SELECT has_table_privilege('{reads}', 'public.later', 'SELECT')::text");
    assert_eq!(env.one(&sql).await, "true", "by default privileges");
}

#[tokio::test]
async fn disjoint() {
    let (env, _operator) = stage().await;
    apply(&env, "one", include_str!("samples/disjoint-one.yaml")).await;
    apply(&env, "other", include_str!("samples/disjoint-other.yaml")).await;
    for name in ["one", "other"] {
        comes_to(&env, name, &WELL).await;
        assert!(may_connect(&env, &env.role(name)).await, "{name}");
    }
}

#[tokio::test]
async fn conflicting() {
    let (env, _operator) = stage().await;
    apply(&env, "one", include_str!("samples/disjoint-one.yaml")).await;
    comes_to(&env, "one", &WELL).await;
    apply(&env, "conflicting", include_str!("samples/conflicting.yaml")).await;
    for (name, rival) in [("conflicting", "one"), ("one", "conflicting")] {
        let conflict = [("Conflict", "True", "ConflictingPolicy")];
        let policy = comes_to(
            &env,
            name,
            &[&conflict[..], &failed("ConflictingPolicy")].concat(),
        )
        .await;
        let said = message(&policy, "Conflict");
        assert!(said.contains(&format!("{}/{rival}", env.namespace)), "{said}");
        assert!(said.contains(&env.role("one")), "{said}");
        env.event(name, "ConflictDetected").await;
    }
}

#[tokio::test]
async fn invalid() {
    let (env, _operator) = stage().await;
    apply(&env, "invalid", include_str!("samples/invalid.yaml")).await;
    let policy = comes_to(&env, "invalid", &failed("InvalidSpec")).await;
    assert!(message(&policy, "Ready").contains("nowhere-defined"));
    env.event("invalid", "InvalidSpec").await;
}

#[tokio::test]
async fn missing_secret() {
    let (env, _operator) = stage().await;
    apply(&env, "missing", include_str!("samples/missing-secret.yaml")).await;
    let policy = comes_to(&env, "missing", &failed("SecretFetchFailed")).await;
    assert!(message(&policy, "Ready").contains("nobody-made-it"));
    env.event("missing", "SecretFetchFailed").await;
    env.secret("nobody-made-it", json!({ "DATABASE_URL": env.url() }))
        .await;
    comes_to(&env, "missing", &WELL).await;
    env.event("missing", "Recovered").await;
}

#[tokio::test]
async fn insufficient_privileges() {
    let (env, _operator) = stage().await;
    let login = env.role("weak");
    env.database
        .execute(&format!("CREATE ROLE {login} LOGIN PASSWORD 'weak'"))
        .await;
    let url = env.url_through(&env.database.url_of(&login, "weak"));
    env.secret("weak", json!({ "DATABASE_URL": url })).await;
    apply(&env, "weak", include_str!("samples/insufficient-privileges.yaml")).await;
    comes_to(&env, "weak", &failed("InsufficientPrivileges")).await;
    env.event("weak", "InsufficientPrivileges").await;
    assert!(!env.has_role(&env.role("refused")).await);
}

#[tokio::test]
async fn plan() {
    let (env, _operator) = stage().await;
    apply(&env, "looks", include_str!("samples/plan.yaml")).await;
    let planned = [("Drifted", "True", "DriftDetected"), ("Ready", "True", "Planned")];
    let policy = comes_to(&env, "looks", &planned).await;
    let status = policy.status.unwrap();
    assert_eq!(status.change_summary.unwrap().roles_created, 1);
    assert!(status.planned_sql.unwrap().contains("CREATE ROLE"));
    env.event("looks", "DriftDetected").await;
    assert!(!env.has_role(&env.role("shown")).await);
    assert_eq!(env.sql_writes(), Vec::<String>::new());
}

#[tokio::test]
async fn approval() {
    let (env, _operator) = stage().await;
    apply(&env, "asks", include_str!("samples/approval.yaml")).await;
    let waits = [("Ready", "True", "Planned"), ("Drifted", "True", "DriftDetected")];
    comes_to(&env, "asks", &waits).await;
    let role = env.role("asked_for");
    assert!(!env.has_role(&role).await);
    let plan = env.plan_in("asks", "Pending").await;
    env.annotate_plan(&plan.name_any(), "pgroles.io/approved").await;
    comes_to(&env, "asks", &WELL).await;
    env.plan_in("asks", "Applied").await;
    assert!(may_connect(&env, &role).await);
}

#[tokio::test]
async fn rotated_secret() {
    let (env, _operator) = stage().await;
    let login = env.role("login");
    let set = async |password: &str| {
        let url = env.url_through(&env.database.url_of(&login, password));
        env.secret("rotating", json!({ "DATABASE_URL": url })).await;
    };
    env.database
        .execute(&format!("CREATE ROLE {login} LOGIN SUPERUSER PASSWORD 'old'"))
        .await;
    set("old").await;
    apply(&env, "rotates", include_str!("samples/rotated-secret.yaml")).await;
    comes_to(&env, "rotates", &WELL).await;
    set("mistyped").await;
    comes_to(&env, "rotates", &failed("DatabaseConnectionFailed")).await;
    env.event("rotates", "DatabaseConnectionFailed").await;
    env.database
        .execute(&format!("ALTER ROLE {login} PASSWORD 'new'"))
        .await;
    set("new").await;
    comes_to(&env, "rotates", &WELL).await;
    env.event("rotates", "Recovered").await;
}

#[tokio::test]
async fn params_connection() {
    let (env, _operator) = stage().await;
    env.secret("parts", json!({ "username": ADMIN, "password": ADMIN_PASSWORD }))
        .await;
    apply(&env, "parts", include_str!("samples/params.yaml")).await;
    comes_to(&env, "parts", &WELL).await;
    assert!(may_connect(&env, &env.role("by_parts")).await);
}

#[tokio::test]
async fn generated_passwords() {
    let (env, _operator) = stage().await;
    apply(&env, "made", include_str!("samples/generated-password.yaml")).await;
    comes_to(&env, "made", &WELL).await;
    let role = env.role("generated");
    let name = format!("made-pgr-{}", role.replace('_', "-"));
    let secret = env.secrets().get(&name).await.unwrap();
    let value = |key: &str| String::from_utf8(secret.data.as_ref().unwrap()[key].0.clone()).unwrap();
    assert_eq!(value("password").len(), 32);
    assert!(value("verifier").starts_with("SCRAM-SHA-256$"));
    assert!(env.logs_in(&role, &value("password")).await);
    assert_eq!(secret.labels()["pgroles.io/policy"], "made");
}

#[tokio::test]
async fn given_passwords() {
    let (env, _operator) = stage().await;
    let role = env.role("given");
    apply(&env, "given", include_str!("samples/given-password.yaml")).await;
    comes_to(&env, "given", &failed("SecretFetchFailed")).await;
    env.secret("passwords", json!({ "given": "" })).await;
    comes_to(&env, "given", &failed("SecretMissing")).await;
    assert!(!env.has_role(&role).await, "no role without its password");
    env.secret("passwords", json!({ "given": "hunter2" })).await;
    comes_to(&env, "given", &WELL).await;
    assert!(env.logs_in(&role, "hunter2").await);
}

#[tokio::test]
async fn schema_owner() {
    let (env, _operator) = stage().await;
    apply(&env, "owns", include_str!("samples/schema-owner.yaml")).await;
    let policy = comes_to(&env, "owns", &WELL).await;
    assert_eq!(policy.status.unwrap().owned_schemas, [env.role("schema")]);
    let owner = format!(
        "SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = '{}'",
        env.role("schema")
    );
    assert_eq!(env.one(&owner).await, env.role("owner"));
    env.database
        .execute(&format!("ALTER SCHEMA {} OWNER TO postgres", env.role("schema")))
        .await;
    env.look_again("owns").await;
    comes_to(&env, "owns", &WELL).await;
    assert_eq!(env.one(&owner).await, env.role("owner"), "taken back");
}
