//! Reconciles are idempotent: a converged object is left alone, by this operator and by the next.

use futures::future::join_all;
use serde_json::{Value, json};
use stanchion_testkit::faults::Faults;
use stanchion_testkit::wait;

use super::test_env::{How, TestEnv, WAIT_TIMEOUT, any, role_name};

/// Specs with values that PostgreSQL stores in another form.
fn specs(group: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("plain", json!({})),
        (
            "words",
            json!({
                "privileges": ["CONNECT", "TEMP", "READ", "WRITE"],
                "role": {
                    "parameters": { "search_path": "\"$user\",public", "Work_Mem": "64MB", "my.setting": "x" },
                    "connectionLimit": 7, "validUntil": "2099-01-02T03:04:05.678Z", "comment": "it's a test",
                },
                "memberOf": [{ "role": group }],
            }),
        ),
        (
            "generated",
            json!({
                "passwordSecretRef": null, "password": { "generate": { "length": 40 } }, "privileges": ["OWNER"],
                "credentialsSecret": { "name": "words-for-app", "keys": ["uri", "libpq"], "template": { "X": "{{ .Password }}" } },
            }),
        ),
        (
            "disabled",
            json!({ "passwordSecretRef": null, "password": { "disabled": true } }),
        ),
    ]
}

/// C11, C14, A14, A15: a reconcile of a converged object, and a restart, write nothing to the API and to the database.
#[tokio::test]
async fn a_converged_object_is_not_written() {
    let env = TestEnv::new(any()).await;
    let (role, group) = (role_name(), role_name());
    env.database
        .execute(&format!("CREATE ROLE {group}; CREATE TABLE public.t (n int)"))
        .await;
    let faults = Faults::new();
    let first = env.operator_with(&faults).await;
    let specs = specs(&group);
    for (name, spec) in &specs {
        env.password(name, "secret").await;
        env.user(name, &format!("{role}_{name}"), spec.clone()).await;
    }
    for (name, _) in &specs {
        env.ready(name).await;
    }
    faults.settled().await;
    let state = format!(
        "SELECT string_agg(oid || rolpassword || coalesce(rolvaliduntil::text, ''), ';' ORDER BY oid) \
         FROM pg_authid WHERE rolname LIKE '{role}%'"
    );
    let roles = env.server_one(&state).await;
    let versions = versions(&env).await;
    let sql = env.sql_writes();
    let writes = faults.writes().len();
    for (name, _) in &specs {
        env.look_again(&first, name).await;
    }
    assert_eq!(self::versions(&env).await, versions);
    assert_eq!(
        faults.writes().len(),
        writes,
        "{:?}",
        faults.writes()[writes..].to_vec()
    );
    first.kill().await;

    let faults = Faults::new();
    let second = env.operator_with(&faults).await;
    let all = specs.len() as u64;
    wait::eventually(WAIT_TIMEOUT, "a pass over each", async || second.passes() >= all).await;
    assert_eq!(faults.writes(), [], "a restart writes nothing to the API");
    assert_eq!(env.sql_writes(), sql, "nor to the database");
    assert_eq!(env.server_one(&state).await, roles);
    assert_eq!(self::versions(&env).await, versions);
}

/// The resource versions of what the operator may write, without the annotation by which a test requests a reconcile.
async fn versions(env: &TestEnv) -> Vec<Option<String>> {
    let list = kube::api::ListParams::default();
    let secrets = env.secrets().list(&list).await.unwrap().items;
    let users = env.users().list(&list).await.unwrap().items;
    let status = users
        .into_iter()
        .map(|user| serde_json::to_string(&user.status).ok());
    secrets
        .into_iter()
        .map(|secret| secret.metadata.resource_version)
        .chain(status)
        .collect()
}

/// C11, A15: irrelevant labels and annotations cause no reconcile, and so not even a read.
#[tokio::test]
async fn a_metadata_change_causes_no_query() {
    let env = TestEnv::new(any()).await;
    let role = role_name();
    let operator = env.operator().await;
    env.password("rob", "secret").await;
    env.user("rob", &role, json!({})).await;
    env.ready("rob").await;
    operator.idle().await;
    let before = env.statements().len();
    env.look_again(&operator, "rob").await;
    let one_pass = env.statements().len() - before;
    assert!(one_pass > 0);
    let passes = operator.passes();
    for n in 0..100 {
        let value = n.to_string();
        env.patch(
            "rob",
            json!({ "metadata": { "labels": { "n": value }, "annotations": { "n": value } } }),
        )
        .await;
    }
    // Events arrive in order: once this one has had its effect, the others had theirs.
    env.look_again(&operator, "rob").await;
    assert_eq!(operator.passes(), passes + 1);
    assert_eq!(env.statements().len(), before + 2 * one_pass);
}

/// C13: two operators at once, without leader election, end up with one role for each object and no error.
#[tokio::test]
async fn two_operators_at_once_converge() {
    let env = TestEnv::new(any()).await;
    let role = role_name();
    let _operators = (env.operator().await, env.operator().await);
    env.password("sam", "secret").await;
    let name = |n: usize| format!("sam-{n}");
    let secret = json!({ "passwordSecretRef": { "name": "sam" } });
    join_all((0..8).map(|n| {
        let secret = secret.clone();
        let (env, name, username) = (&env, name(n), format!("{role}_{n}"));
        async move { env.user(&name, &username, secret).await }
    }))
    .await;
    for n in 0..8 {
        let user = env.ready(&name(n)).await;
        assert_eq!(user.status.unwrap().adopted, Some(false));
        assert!(env.logs_in(&format!("{role}_{n}"), "secret").await);
    }
    join_all((0..8).map(async |n| env.delete(&name(n)).await)).await;
    for n in 0..8 {
        env.gone(&name(n)).await;
    }
    // The operator that applied while the other one cleaned up removes its role when it notices the deletion, which may be
    // after the object is gone.
    let left = format!("SELECT count(*) FROM pg_roles WHERE rolname LIKE '{role}%'");
    wait::eventually(WAIT_TIMEOUT, "no role to be left", async || {
        env.server_one(&left).await == "0"
    })
    .await;
}

/// A22: many objects on one database at once lose no grant, and use few connections.
#[tokio::test]
async fn many_objects_at_once_lose_no_grant() {
    const MANY: usize = 40;
    TestEnv::on_each_kind(async |env| {
        let role = role_name();
        let (proxy, admin) = env.proxy().await;
        let _operator = env.start(How {
            admin,
            ..env.how().await
        });
        env.password("tom", "secret").await;
        let names: Vec<String> = (0..MANY).map(|n| format!("tom-{n}")).collect();
        join_all(names.iter().enumerate().map(|(n, name)| {
        let spec =
            json!({ "passwordSecretRef": { "name": "tom" }, "privileges": ["CONNECT", "TEMPORARY", "READ"] });
        let (env, username) = (&env, format!("{role}_{n}"));
        async move { env.user(name, &username, spec).await }
    }))
    .await;
        for name in &names {
            env.ready(name).await;
        }
        let granted = format!(
            "SELECT count(*) FROM pg_database d, aclexplode(d.datacl) a JOIN pg_roles r ON r.oid = a.grantee \
         WHERE d.datname = current_database() AND r.rolname LIKE '{role}%'"
        );
        assert_eq!(env.one(&granted).await, (2 * MANY).to_string());
        join_all(names.iter().map(async |name| env.delete(name).await)).await;
        for name in &names {
            env.gone(name).await;
        }
        let left = format!("SELECT count(*) FROM pg_roles WHERE rolname LIKE '{role}%'");
        assert_eq!(env.server_one(&left).await, "0");
        // Four, and each may be counted twice for a moment while it is replaced by one to another database.
        assert!(
            proxy.seen().most_open <= 8,
            "{} connections",
            proxy.seen().most_open
        );
    })
    .await;
}
