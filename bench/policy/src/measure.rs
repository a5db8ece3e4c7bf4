//! One operator with one load, from the start until it is idle.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stanchion_bench_env::{BenchEnv, Counted, PASSWORD, Usage};
use stanchion_testkit::cluster::{Grant, rule};
use tokio::time::sleep;

use crate::operator::Operator;

/// The effects of the last status are over by then.
const AFTERMATH: Duration = Duration::from_secs(15);
/// Maximum number of statements per policy and minute when idle.
const MOST_STATEMENTS: f64 = 4.0;

/// The size of the load.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) policies: usize,
    pub(crate) databases: usize,
}

/// The measured cost.
pub(crate) struct Figures {
    /// From the start of the operator until all are Ready.
    pub(crate) ready: Duration,
    /// The work until then.
    pub(crate) made: Counted,
    /// The CPU time until then.
    pub(crate) made_cpu: Duration,
    /// The work when idle.
    pub(crate) rest: Counted,
    /// The duration of the idle phase.
    pub(crate) minutes: f64,
    /// The CPU time when idle.
    pub(crate) rest_cpu: Duration,
    pub(crate) resident_mib: f64,
    pub(crate) file_mib: f64,
    pub(crate) peak_mib: f64,
}

impl Figures {
    /// A number of the idle phase, per minute.
    pub(crate) fn a_minute(&self, total: usize) -> f64 {
        number(total) / self.minutes
    }

    /// Whether the idle operator sends no requests and few statements.
    pub(crate) fn keeps_quiet(&self, load: Load) -> bool {
        let allowed = MOST_STATEMENTS * number(load.policies);
        self.rest.calls() == 0 && self.a_minute(self.rest.statements) <= allowed
    }
}

pub(crate) fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).expect("a count"))
}

pub(crate) async fn measure(operator: &Operator, load: Load, rest: Duration) -> Figures {
    let env = operator.env().await;
    let everything = Grant::Everywhere(vec![rule("*", &["*"], &["*"])]);
    let user = env
        .cluster()
        .user(env.namespace(), "operator", &[everything])
        .await;
    create(&env, load, operator.login()).await;

    let is_its = |request: &stanchion_testkit::cluster::Request| request.user == user.name();
    let (checkpoint, start) = (env.checkpoint(), Instant::now());
    let process = operator.start(&env, &user);
    env.ready(&policy(0, 0), load.policies).await;
    let (ready, made_cpu) = (start.elapsed(), Usage::of(process.pid()).cpu);
    let made = env.count_where(&checkpoint, is_its, operator.login()).await;
    sleep(AFTERMATH).await;

    let (checkpoint, before) = (env.checkpoint(), Usage::of(process.pid()));
    sleep(rest).await;
    let usage = Usage::of(process.pid());
    Figures {
        ready,
        made,
        made_cpu,
        rest: env.count_where(&checkpoint, is_its, operator.login()).await,
        minutes: rest.as_secs_f64() / 60.0,
        rest_cpu: usage.cpu.saturating_sub(before.cpu),
        resident_mib: usage.resident_mib(),
        file_mib: usage.file_mib(),
        peak_mib: usage.peak_mib(),
    }
}

/// Creates the databases, a Secret for each, and the policies.
async fn create(env: &BenchEnv, load: Load, login: &str) {
    let mut secrets = Vec::new();
    for number in 0..load.databases {
        let name = format!("bench_{number}");
        env.server()
            .execute("postgres", &format!("CREATE DATABASE {name}"))
            .await;
        secrets.push(json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": format!("db-{number}") },
            "stringData": { "DATABASE_URL": env.server().url_of(login, PASSWORD, &name) },
        }));
    }
    env.create(secrets).await;
    env.create((0..load.policies).map(|number| policy(number, number % load.databases)))
        .await;
}

/// Two schemas with two profiles each.
fn policy(number: usize, database: usize) -> Value {
    let grants = |privileges: Value| {
        json!([
            { "privileges": ["USAGE"], "object": { "type": "schema" } },
            { "privileges": privileges, "object": { "type": "table", "name": "*" } },
        ])
    };
    let schema = |n: usize| json!({ "name": format!("s{number}_{n}"), "profiles": ["reader", "writer"] });
    json!({
        "apiVersion": "pgroles.io/v1alpha1",
        "kind": "PostgresPolicy",
        "metadata": { "name": format!("policy-{number}") },
        "spec": {
            "connection": { "secretRef": { "name": format!("db-{database}") } },
            "interval": "1m",
            "default_owner": "postgres",
            "profiles": {
                "reader": { "grants": grants(json!(["SELECT"])) },
                "writer": { "grants": grants(json!(["SELECT", "INSERT"])) },
            },
            "schemas": [schema(0), schema(1)],
        },
    })
}
