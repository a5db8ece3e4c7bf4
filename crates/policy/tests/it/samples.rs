//! The original's sample policies, in their original form, reach the conditions that it documents.
//!
//! In the files, `ROLE` stands for the prefix of this test's names, `DATABASE` and `PORT` for its database.

use kube::ResourceExt;
use serde_json::{Value, json};
use stanchion_api::PostgresPolicy;
use stanchion_testkit::postgres::{ADMIN, ADMIN_PASSWORD};

use super::bed::{Bed, Running, condition, message};

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
async fn stage() -> (Bed, Running) {
    let bed = Bed::new().await;
    let operator = bed.operator().await;
    bed.database_secret().await;
    (bed, operator)
}

/// Applies a sample under this name.
async fn apply(bed: &Bed, name: &str, sample: &str) {
    let port = bed.database.server().port().to_string();
    let text = sample
        .replace("ROLE", &bed.prefix)
        .replace("DATABASE", bed.database.name())
        .replace("PORT", &port);
    let sample: Value = serde_saphyr::from_str(&text).unwrap();
    let mut spec = json!({ "connection": { "secretRef": null } });
    json_patch::merge(&mut spec, &sample["spec"]);
    bed.policy(name, spec).await;
}

/// Waits for the first of these conditions, and checks the others.
async fn comes_to(bed: &Bed, name: &str, conditions: &[(&str, &str, &str)]) -> PostgresPolicy {
    let (kind, status, reason) = conditions[0];
    let policy = bed.condition(name, kind, status, reason).await;
    for (kind, status, reason) in conditions {
        assert_eq!(
            condition(&policy, kind),
            Some(((*status).to_owned(), (*reason).to_owned())),
            "{kind} of {name}"
        );
    }
    policy
}

async fn may_connect(bed: &Bed, role: &str) -> bool {
    let sql = format!(
        "SELECT count(*) FROM pg_database, aclexplode(datacl) WHERE datname = current_database() \
         AND grantee = '{role}'::regrole AND privilege_type = 'CONNECT'"
    );
    bed.one(&sql).await == "1"
}

#[tokio::test]
async fn basic() {
    let (bed, _operator) = stage().await;
    bed.database.execute("CREATE TABLE public.t (n int)").await;
    apply(&bed, "basic", include_str!("samples/basic.yaml")).await;
    comes_to(&bed, "basic", &WELL).await;
    let (writes, reads) = (bed.role("public_writes"), bed.role("public_reads"));
    for (role, privilege, expected) in [
        (&writes, "DELETE", "true"),
        (&reads, "SELECT", "true"),
        (&reads, "DELETE", "false"),
    ] {
        let sql = format!("SELECT has_table_privilege('{role}', 'public.t', '{privilege}')::text");
        assert_eq!(bed.one(&sql).await, expected, "{role} {privilege}");
    }
    bed.database.execute("CREATE TABLE public.later (n int)").await;
    let sql = format!("SELECT has_table_privilege('{reads}', 'public.later', 'SELECT')::text");
    assert_eq!(bed.one(&sql).await, "true", "by default privileges");
}

#[tokio::test]
async fn disjoint() {
    let (bed, _operator) = stage().await;
    apply(&bed, "one", include_str!("samples/disjoint-one.yaml")).await;
    apply(&bed, "other", include_str!("samples/disjoint-other.yaml")).await;
    for name in ["one", "other"] {
        comes_to(&bed, name, &WELL).await;
        assert!(may_connect(&bed, &bed.role(name)).await, "{name}");
    }
}

#[tokio::test]
async fn conflicting() {
    let (bed, _operator) = stage().await;
    apply(&bed, "one", include_str!("samples/disjoint-one.yaml")).await;
    comes_to(&bed, "one", &WELL).await;
    apply(&bed, "conflicting", include_str!("samples/conflicting.yaml")).await;
    for (name, rival) in [("conflicting", "one"), ("one", "conflicting")] {
        let conflict = [("Conflict", "True", "ConflictingPolicy")];
        let policy = comes_to(
            &bed,
            name,
            &[&conflict[..], &failed("ConflictingPolicy")].concat(),
        )
        .await;
        let said = message(&policy, "Conflict");
        assert!(said.contains(&format!("{}/{rival}", bed.namespace)), "{said}");
        assert!(said.contains(&bed.role("one")), "{said}");
        bed.event(name, "ConflictDetected").await;
    }
}

#[tokio::test]
async fn invalid() {
    let (bed, _operator) = stage().await;
    apply(&bed, "invalid", include_str!("samples/invalid.yaml")).await;
    let policy = comes_to(&bed, "invalid", &failed("InvalidSpec")).await;
    assert!(message(&policy, "Ready").contains("nowhere-defined"));
    bed.event("invalid", "InvalidSpec").await;
}

#[tokio::test]
async fn missing_secret() {
    let (bed, _operator) = stage().await;
    apply(&bed, "missing", include_str!("samples/missing-secret.yaml")).await;
    let policy = comes_to(&bed, "missing", &failed("SecretFetchFailed")).await;
    assert!(message(&policy, "Ready").contains("nobody-made-it"));
    bed.event("missing", "SecretFetchFailed").await;
    bed.secret("nobody-made-it", json!({ "DATABASE_URL": bed.url() }))
        .await;
    comes_to(&bed, "missing", &WELL).await;
    bed.event("missing", "Recovered").await;
}

#[tokio::test]
async fn insufficient_privileges() {
    let (bed, _operator) = stage().await;
    let login = bed.role("weak");
    bed.database
        .execute(&format!("CREATE ROLE {login} LOGIN PASSWORD 'weak'"))
        .await;
    let url = bed.url_through(&bed.database.url_of(&login, "weak"));
    bed.secret("weak", json!({ "DATABASE_URL": url })).await;
    apply(&bed, "weak", include_str!("samples/insufficient-privileges.yaml")).await;
    comes_to(&bed, "weak", &failed("InsufficientPrivileges")).await;
    bed.event("weak", "InsufficientPrivileges").await;
    assert!(!bed.has_role(&bed.role("refused")).await);
}

#[tokio::test]
async fn plan() {
    let (bed, _operator) = stage().await;
    apply(&bed, "looks", include_str!("samples/plan.yaml")).await;
    let planned = [("Drifted", "True", "DriftDetected"), ("Ready", "True", "Planned")];
    let policy = comes_to(&bed, "looks", &planned).await;
    let status = policy.status.unwrap();
    assert_eq!(status.change_summary.unwrap().roles_created, 1);
    assert!(status.planned_sql.unwrap().contains("CREATE ROLE"));
    bed.event("looks", "DriftDetected").await;
    assert!(!bed.has_role(&bed.role("shown")).await);
    assert_eq!(bed.sql_writes(), Vec::<String>::new());
}

#[tokio::test]
async fn approval() {
    let (bed, _operator) = stage().await;
    apply(&bed, "asks", include_str!("samples/approval.yaml")).await;
    let waits = [("Ready", "True", "Planned"), ("Drifted", "True", "DriftDetected")];
    comes_to(&bed, "asks", &waits).await;
    let role = bed.role("asked_for");
    assert!(!bed.has_role(&role).await);
    let plan = bed.plan_in("asks", "Pending").await;
    bed.annotate_plan(&plan.name_any(), "pgroles.io/approved").await;
    comes_to(&bed, "asks", &WELL).await;
    bed.plan_in("asks", "Applied").await;
    assert!(may_connect(&bed, &role).await);
}

#[tokio::test]
async fn rotated_secret() {
    let (bed, _operator) = stage().await;
    let login = bed.role("login");
    let set = async |password: &str| {
        let url = bed.url_through(&bed.database.url_of(&login, password));
        bed.secret("rotating", json!({ "DATABASE_URL": url })).await;
    };
    bed.database
        .execute(&format!("CREATE ROLE {login} LOGIN SUPERUSER PASSWORD 'old'"))
        .await;
    set("old").await;
    apply(&bed, "rotates", include_str!("samples/rotated-secret.yaml")).await;
    comes_to(&bed, "rotates", &WELL).await;
    set("mistyped").await;
    comes_to(&bed, "rotates", &failed("DatabaseConnectionFailed")).await;
    bed.event("rotates", "DatabaseConnectionFailed").await;
    bed.database
        .execute(&format!("ALTER ROLE {login} PASSWORD 'new'"))
        .await;
    set("new").await;
    comes_to(&bed, "rotates", &WELL).await;
    bed.event("rotates", "Recovered").await;
}

#[tokio::test]
async fn params_connection() {
    let (bed, _operator) = stage().await;
    bed.secret("parts", json!({ "username": ADMIN, "password": ADMIN_PASSWORD }))
        .await;
    apply(&bed, "parts", include_str!("samples/params.yaml")).await;
    comes_to(&bed, "parts", &WELL).await;
    assert!(may_connect(&bed, &bed.role("by_parts")).await);
}

#[tokio::test]
async fn generated_passwords() {
    let (bed, _operator) = stage().await;
    apply(&bed, "made", include_str!("samples/generated-password.yaml")).await;
    comes_to(&bed, "made", &WELL).await;
    let role = bed.role("generated");
    let name = format!("made-pgr-{}", role.replace('_', "-"));
    let secret = bed.secrets().get(&name).await.unwrap();
    let value = |key: &str| String::from_utf8(secret.data.as_ref().unwrap()[key].0.clone()).unwrap();
    assert_eq!(value("password").len(), 32);
    assert!(value("verifier").starts_with("SCRAM-SHA-256$"));
    assert!(bed.logs_in(&role, &value("password")).await);
    assert_eq!(secret.labels()["pgroles.io/policy"], "made");
}

#[tokio::test]
async fn given_passwords() {
    let (bed, _operator) = stage().await;
    let role = bed.role("given");
    apply(&bed, "given", include_str!("samples/given-password.yaml")).await;
    comes_to(&bed, "given", &failed("SecretFetchFailed")).await;
    bed.secret("passwords", json!({ "given": "" })).await;
    comes_to(&bed, "given", &failed("SecretMissing")).await;
    assert!(!bed.has_role(&role).await, "no role without its password");
    bed.secret("passwords", json!({ "given": "hunter2" })).await;
    comes_to(&bed, "given", &WELL).await;
    assert!(bed.logs_in(&role, "hunter2").await);
}

#[tokio::test]
async fn schema_owner() {
    let (bed, _operator) = stage().await;
    apply(&bed, "owns", include_str!("samples/schema-owner.yaml")).await;
    let policy = comes_to(&bed, "owns", &WELL).await;
    assert_eq!(policy.status.unwrap().owned_schemas, [bed.role("schema")]);
    let owner = format!(
        "SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = '{}'",
        bed.role("schema")
    );
    assert_eq!(bed.one(&owner).await, bed.role("owner"));
    bed.database
        .execute(&format!("ALTER SCHEMA {} OWNER TO postgres", bed.role("schema")))
        .await;
    bed.look_again("owns").await;
    comes_to(&bed, "owns", &WELL).await;
    assert_eq!(bed.one(&owner).await, bed.role("owner"), "taken back");
}
