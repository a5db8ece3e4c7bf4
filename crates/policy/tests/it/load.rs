//! Many policies on few databases, while the Secret that they share changes repeatedly: no policy starves.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stanchion_testkit::unique;
use stanchion_testkit::wait;

use super::test_env::{TestEnv, WAIT_TIMEOUT};

/// The size of the load.
struct Load {
    policies: usize,
    databases: usize,
    /// In all; each becomes two roles.
    schemas: usize,
    churn: Duration,
}

/// pgroles' generated load: 30 schemas and 60 roles on 2 databases.
#[tokio::test]
async fn generated_policies_share_databases() {
    Box::pin(run(&Load {
        policies: 4,
        databases: 2,
        schemas: 30,
        churn: Duration::from_secs(5),
    }))
    .await;
}

/// pgroles' scheduled load: 100 schemas and 200 roles on 3 databases.
#[tokio::test]
#[ignore = "minutes: cargo test -p stanchion-policy --test it load -- --ignored --nocapture"]
async fn scheduled_load() {
    Box::pin(run(&Load {
        policies: 5,
        databases: 3,
        schemas: 100,
        churn: Duration::from_mins(1),
    }))
    .await;
}

/// More than pgroles' load: 500 schemas and 1,000 roles on 5 databases.
#[tokio::test]
#[ignore = "minutes: cargo test -p stanchion-policy --test it load -- --ignored --nocapture"]
async fn hardening() {
    Box::pin(run(&Load {
        policies: 20,
        databases: 5,
        schemas: 500,
        churn: Duration::from_mins(5),
    }))
    .await;
}

fn spec(env: &TestEnv, load: &Load, policy: usize) -> Value {
    let schemas = (0..load.schemas)
        .filter(|schema| schema % load.policies == policy)
        .map(|schema| json!({ "name": env.role(&format!("s{schema}")), "profiles": ["reader", "writer"] }));
    let grant = |privileges: Value| {
        json!({ "grants": [
            { "privileges": ["USAGE"], "object": { "type": "schema" } },
            { "privileges": privileges, "object": { "type": "table", "name": "*" } },
        ] })
    };
    json!({
        "connection": { "secretRef": { "name": format!("db-{}", policy % load.databases) } },
        "interval": "1h", "default_owner": "postgres",
        "profiles": { "reader": grant(json!(["SELECT"])), "writer": grant(json!(["SELECT", "INSERT"])) },
        "schemas": schemas.collect::<Vec<_>>(),
    })
}

async fn run(load: &Load) {
    let env = TestEnv::new().await;
    let server = env.database.server();
    let names: Vec<String> = (0..load.databases).map(|_| unique::name("load")).collect();
    for name in &names {
        server
            .execute("postgres", &format!("CREATE DATABASE {name}"))
            .await;
    }
    let churn = async |round: usize| {
        for (number, name) in names.iter().enumerate() {
            let url = format!(
                "{}?application_name={}&connect_timeout={}",
                server.url(name),
                env.application,
                10 + round % 50
            );
            env.secret(&format!("db-{number}"), json!({ "DATABASE_URL": url }))
                .await;
        }
    };
    churn(0).await;
    let start = Instant::now();
    let operator = env.operator().await;
    let name = |policy: usize| format!("load-{policy}");
    for policy in 0..load.policies {
        env.policy(&name(policy), spec(&env, load, policy)).await;
    }
    for policy in 0..load.policies {
        env.ready(&name(policy)).await;
    }
    let ready = start.elapsed();
    let made = format!(
        "SELECT count(*) FROM pg_roles WHERE rolname LIKE '{}%'",
        env.prefix
    );
    assert_eq!(env.one(&made).await, (2 * load.schemas).to_string());
    let writes = env.sql_writes().len();
    let (mut rounds, mut slowest, churning) = (0, Duration::ZERO, Instant::now());
    while churning.elapsed() < load.churn {
        rounds += 1;
        let (passes, began) = (operator.passes(), Instant::now());
        churn(rounds).await;
        let all = load.policies as u64;
        wait::eventually(WAIT_TIMEOUT, "a pass over every policy", async || {
            operator.passes() >= passes + all
        })
        .await;
        slowest = slowest.max(began.elapsed());
    }
    for policy in 0..load.policies {
        env.ready(&name(policy)).await;
    }
    assert_eq!(
        env.sql_writes().len(),
        writes,
        "other credentials for the same database change nothing"
    );
    println!(
        "{} policies, {} databases, {} schemas, {} roles: ready after {:.1} s; {rounds} changes of all Secrets in {:.0} s, \
         the slowest was followed by all after {:.1} s; {} passes",
        load.policies,
        load.databases,
        load.schemas,
        2 * load.schemas,
        ready.as_secs_f32(),
        churning.elapsed().as_secs_f32(),
        slowest.as_secs_f32(),
        operator.passes(),
    );
}

/// The stored verifiers determine how much a comparison costs, and the owner of the database sets them.
#[tokio::test]
async fn costly_verifiers_do_not_stop_the_operator() {
    const ROLES: usize = 300;
    let env = TestEnv::new().await;
    env.database_secret().await;
    let names: Vec<String> = (0..ROLES).map(|number| env.role(&format!("r{number}"))).collect();
    let keys = format!("{}=:{}=", "A".repeat(43), "A".repeat(43));
    let costly = format!("SCRAM-SHA-256$1000000:c2FsdHNhbHRzYWx0c2FsdA==${keys}");
    let create: Vec<_> = names
        .iter()
        .map(|name| format!("CREATE ROLE {name} LOGIN"))
        .collect();
    env.database.execute(&create.join("; ")).await;
    // With CREATE ROLE the server would compute each of them itself.
    let set = format!(
        "UPDATE pg_authid SET rolpassword = '{costly}' WHERE rolname LIKE '{}%'",
        env.prefix
    );
    env.database.execute(&set).await;
    let passwords: serde_json::Map<_, _> = names
        .iter()
        .map(|name| (name.clone(), json!(format!("secret of {name}"))))
        .collect();
    env.secret("passwords", Value::Object(passwords)).await;
    let roles: Vec<_> = names
        .iter()
        .map(|name| json!({ "name": name, "login": true, "password": { "secretRef": { "name": "passwords" } } }))
        .collect();
    let _operator = env.operator().await;
    env.policy("costly", json!({ "interval": "1h", "roles": roles }))
        .await;
    env.ready("costly").await;
    let left = format!(
        "SELECT count(*) FROM pg_authid WHERE rolname LIKE '{}%' AND rolpassword LIKE 'SCRAM-SHA-256$1000000%'",
        env.prefix
    );
    assert_eq!(env.one(&left).await, "0");
}
