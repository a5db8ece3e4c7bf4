//! The scenarios of the crash tests, and their required end states.

use k8s_openapi::api::core::v1::Secret;
use regex::Regex;
use serde_json::{Value, json};
use stanchion_api::{PostgresPolicy, PostgresPolicyPlan};
use stanchion_testenv::TestOperator;
use stanchion_testenv::crash::{CrashScenario, SqlCrashScenario};
use stanchion_testkit::faults::Faults;
use stanchion_testkit::proxy::Proxy;
use stanchion_testkit::wait;

use crate::test_env::{TestEnv, WAIT_TIMEOUT};

/// A scenario.
#[derive(Clone, Copy, Debug)]
pub(super) enum PolicyScenario {
    /// Creates roles, a schema and a generated password.
    Create,
    /// Adds and removes roles, and changes a password.
    Update,
    /// Deletes the policy, which revokes what it granted.
    Delete,
}

/// One run of a scenario, with its own namespace and database.
pub(super) struct CrashRun {
    env: TestEnv,
    /// The proxy between the operator and the server.
    proxy: Proxy,
}

impl CrashRun {
    /// Whether the objects that the policy owned are garbage-collected, which the cluster does asynchronously.
    async fn is_collected(&self) -> bool {
        let plans = self.env.normalised::<PostgresPolicyPlan>().await;
        let secrets = self.env.normalised::<Secret>().await;
        let mut all = [&plans, &secrets]
            .into_iter()
            .flat_map(|objects| objects.as_object().unwrap().values());
        all.all(|object| object["metadata"]["ownerReferences"].is_null())
    }

    fn spec(&self, changed: bool) -> Value {
        let (app, old, new, schema) = (
            self.env.role("app"),
            self.env.role("old"),
            self.env.role("new"),
            self.env.role("s"),
        );
        let other = if changed { &new } else { &old };
        let mut spec = json!({
            "interval": "1h", "deletionPolicy": "Revoke",
            "schemas": [{ "name": schema }],
            "roles": [
                { "name": app, "login": true, "password": { "generate": {} } },
                { "name": other, "login": true, "password": { "secretRef": { "name": "password" }, "secretKey": "value" } },
            ],
            "grants": [{ "role": app, "privileges": ["USAGE"], "object": { "type": "schema", "name": schema } }],
            "memberships": [{ "role": app, "members": [{ "name": other }] }],
        });
        if changed {
            spec["retirements"] = json!([{ "role": old }]);
        }
        spec
    }
}

impl PolicyScenario {
    /// Whether the password that an application would read logs in.
    async fn generated(self, run: &CrashRun) -> Option<bool> {
        let env = &run.env;
        let name = format!("hero-pgr-{}", env.role("app").replace('_', "-"));
        let secret = env.secrets().get_opt(&name).await.unwrap()?;
        let password = String::from_utf8(secret.data?.get("password")?.0.clone()).ok()?;
        Some(env.logs_in(&env.role("app"), &password).await)
    }
}

impl CrashScenario for PolicyScenario {
    type Run = CrashRun;

    /// Prepares the scenario with an operator that is then stopped.
    async fn set_up(&self) -> CrashRun {
        let env = TestEnv::new().await;
        let server = env.database.server();
        let proxy = Proxy::postgres(server.address()).await;
        let direct = format!("127.0.0.1:{}", server.port());
        // The proxy cannot read TLS.
        let url = format!("{}&sslmode=disable", env.url()).replace(&direct, &proxy.address().to_string());
        let run = CrashRun { env, proxy };
        let env = &run.env;
        env.secret("db", json!({ "DATABASE_URL": url })).await;
        env.secret("password", json!({ "value": "first" })).await;
        env.policy("hero", run.spec(false)).await;
        if matches!(self, Self::Create) {
            return run;
        }
        let operator = env.operator().await;
        env.ready("hero").await;
        operator.kill().await;
        match self {
            Self::Create => {}
            Self::Update => {
                env.secret("password", json!({ "value": "second" })).await;
                env.policy("hero", run.spec(true)).await;
            }
            Self::Delete => {
                let params = kube::api::DeleteParams::default();
                env.policies().delete("hero", &params).await.unwrap();
            }
        }
        run
    }

    async fn operator(&self, run: &CrashRun, faults: Faults) -> TestOperator {
        run.env.build(&faults).await.0
    }

    async fn is_gone(&self, run: &CrashRun) -> bool {
        run.env.is_absent::<PostgresPolicy>("hero").await
    }

    /// Returns when the scenario has converged.
    async fn converge(&self, run: &CrashRun) {
        let env = &run.env;
        match self {
            Self::Create => drop(env.ready("hero").await),
            Self::Update => {
                env.ready("hero").await;
                let role = env.role("new");
                wait::eventually(WAIT_TIMEOUT, "the new password", || env.logs_in(&role, "second")).await;
            }
            Self::Delete => {
                env.wait().gone(&env.policies(), "hero").await;
                wait::eventually(WAIT_TIMEOUT, "the collector", async || run.is_collected().await).await;
            }
        }
    }

    /// The end state. The database is dropped afterwards, because there are many runs.
    async fn end_state(&self, run: &CrashRun) -> Value {
        let env = &run.env;
        let mut policies = env.normalised::<PostgresPolicy>().await;
        if let Some(hero) = policies.get_mut("hero") {
            // These differ between runs.
            // That it is recorded matters, not which number it is.
            let status = &mut hero["status"];
            let is_same = status["applied_database_identity"] == status["managed_database_identity"];
            status["applied_database_identity"] = Value::Bool(is_same);
            status["managed_database_identity"] = Value::Null;
            let marks = hero["status"]["applied_password_source_versions"]
                .as_object_mut()
                .unwrap();
            marks.values_mut().for_each(|mark| *mark = Value::Null);
        }
        let plans = env.normalised::<PostgresPolicyPlan>().await;
        let mut plans: Vec<_> = plans
            .as_object()
            .unwrap()
            .values()
            .map(|plan| {
                json!([
                    plan["status"]["phase"],
                    plan["status"]["changeSummary"],
                    plan["status"]["sqlInline"]
                ])
            })
            .collect();
        // Plans of the same second have no order by name.
        plans.sort_by_key(Value::to_string);
        let secrets = env.normalised::<Secret>().await;
        let names: Vec<&String> = secrets.as_object().unwrap().keys().collect();
        let (app, schema, prefix) = (env.role("app"), env.role("s"), &env.prefix);
        let roles = format!(
            "SELECT string_agg(rolname || rolcanlogin, ',' ORDER BY rolname) FROM pg_roles WHERE rolname LIKE '{prefix}%'"
        );
        let acl = format!("SELECT nspacl::text FROM pg_namespace WHERE nspname = '{schema}'");
        let members = format!(
            "SELECT string_agg(m.rolname, ',' ORDER BY m.rolname) FROM pg_auth_members a JOIN pg_roles g ON g.oid = a.roleid \
             JOIN pg_roles m ON m.oid = a.member WHERE g.rolname = '{app}'"
        );
        let state = json!({
            "policies": policies, "plans": plans, "secrets": names,
            "roles": env.one(&roles).await, "acl": env.one(&acl).await, "members": env.one(&members).await,
            "generated": self.generated(run).await,
            "second": env.logs_in(&env.role("new"), "second").await,
        });
        let drop = format!("DROP DATABASE {} WITH (FORCE)", env.database.name());
        env.database.server().execute("postgres", &drop).await;
        state
    }

    /// Masks the names that differ between runs.
    fn mask(&self, run: &CrashRun, text: &str) -> String {
        let env = &run.env;
        let plan = Regex::new("-plan-[0-9]{8}-[0-9]{6}-[0-9a-f]{12}").unwrap();
        let text = plan.replace_all(text, "-plan-<n>");
        text.replace(&env.namespace, "<namespace>")
            .replace(&env.prefix, "<role>")
            .replace(&env.prefix.replace('_', "-"), "<role>")
            .replace(env.database.name(), "<database>")
            .replace(&run.proxy.address().to_string(), "<server>")
    }
}

impl SqlCrashScenario for PolicyScenario {
    fn proxy(run: &CrashRun) -> &Proxy {
        &run.proxy
    }
}
