//! The scenarios of the crash tests, and their required end states.

use k8s_openapi::api::core::v1::Secret;
use regex::Regex;
use serde_json::{Value, json};
use stanchion_api::{PostgresPolicy, PostgresPolicyPlan};
use stanchion_testkit::crash::{Scenario, objects};
use stanchion_testkit::faults::Faults;
use stanchion_testkit::proxy::Proxy;
use stanchion_testkit::running::Latest;
use stanchion_testkit::wait;

use crate::bed::{Bed, PATIENCE};

/// A scenario.
#[derive(Clone, Copy, Debug)]
pub(super) enum Story {
    /// Creates roles, a schema and a generated password.
    Create,
    /// Adds and removes roles, and changes a password.
    Update,
    /// Deletes the policy, which revokes what it granted.
    Delete,
}

/// One run of a scenario, with its own namespace and database.
pub(super) struct Told {
    bed: Bed,
    /// The proxy between the operator and the server.
    pub(super) proxy: Proxy,
    operator: Latest,
}

impl Told {
    /// Whether the objects that the policy owned are garbage-collected, which the cluster does asynchronously.
    async fn is_collected(&self) -> bool {
        let (client, namespace) = (|| self.bed.client.clone(), &self.bed.namespace);
        let plans = objects::<PostgresPolicyPlan>(client(), namespace).await;
        let secrets = objects::<Secret>(client(), namespace).await;
        let mut all = [&plans, &secrets]
            .into_iter()
            .flat_map(|objects| objects.as_object().unwrap().values());
        all.all(|object| object["metadata"]["ownerReferences"].is_null())
    }

    fn spec(&self, changed: bool) -> Value {
        let (app, old, new, schema) = (
            self.bed.role("app"),
            self.bed.role("old"),
            self.bed.role("new"),
            self.bed.role("s"),
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

impl Story {
    /// Whether the password that an application would read logs in.
    async fn generated(self, told: &Told) -> Option<bool> {
        let bed = &told.bed;
        let name = format!("hero-pgr-{}", bed.role("app").replace('_', "-"));
        let secret = bed.secrets().get_opt(&name).await.unwrap()?;
        let password = String::from_utf8(secret.data?.get("password")?.0.clone()).ok()?;
        Some(bed.logs_in(&bed.role("app"), &password).await)
    }
}

impl Scenario for Story {
    type Run = Told;

    /// Prepares the scenario with an operator that is then stopped.
    async fn set_up(&self) -> Told {
        let bed = Bed::new().await;
        let server = bed.database.server();
        let proxy = Proxy::postgres(server.address()).await;
        let direct = format!("127.0.0.1:{}", server.port());
        // The proxy cannot read TLS.
        let url = format!("{}&sslmode=disable", bed.url()).replace(&direct, &proxy.address().to_string());
        let told = Told {
            bed,
            proxy,
            operator: Latest::new("policy"),
        };
        let bed = &told.bed;
        bed.secret("db", json!({ "DATABASE_URL": url })).await;
        bed.secret("password", json!({ "value": "first" })).await;
        bed.policy("hero", told.spec(false)).await;
        if matches!(self, Self::Create) {
            return told;
        }
        let operator = bed.operator().await;
        bed.ready("hero").await;
        operator.kill().await;
        match self {
            Self::Create => {}
            Self::Update => {
                bed.secret("password", json!({ "value": "second" })).await;
                bed.policy("hero", told.spec(true)).await;
            }
            Self::Delete => {
                let params = kube::api::DeleteParams::default();
                bed.policies().delete("hero", &params).await.unwrap();
            }
        }
        told
    }

    async fn operate(&self, told: &Told, faults: Faults) {
        let config = told.bed.cluster.config().await;
        let (operator, metrics, _) = told.bed.build(config, faults);
        let _now = told.operator.runs(move || metrics.encode());
        operator.run().await;
    }

    async fn has_looked(&self, told: &Told) -> bool {
        told.operator.has_looked() || told.bed.policies().get_opt("hero").await.unwrap().is_none()
    }

    /// Returns when the scenario has converged.
    async fn converge(&self, told: &Told) {
        let bed = &told.bed;
        match self {
            Self::Create => drop(bed.ready("hero").await),
            Self::Update => {
                bed.ready("hero").await;
                let role = bed.role("new");
                wait::eventually(PATIENCE, "the new password", || bed.logs_in(&role, "second")).await;
            }
            Self::Delete => {
                bed.wait().gone(&bed.policies(), "hero").await;
                wait::eventually(PATIENCE, "the collector", async || told.is_collected().await).await;
            }
        }
    }

    /// The end state. The database is dropped afterwards, because there are many runs.
    async fn end_state(&self, told: &Told) -> Value {
        let bed = &told.bed;
        let mut policies = objects::<PostgresPolicy>(bed.client.clone(), &bed.namespace).await;
        if let Some(hero) = policies.get_mut("hero") {
            // These differ between runs.
            hero["status"]["managed_database_identity"] = Value::Null;
            let marks = hero["status"]["applied_password_source_versions"]
                .as_object_mut()
                .unwrap();
            marks.values_mut().for_each(|mark| *mark = Value::Null);
        }
        let plans = objects::<PostgresPolicyPlan>(bed.client.clone(), &bed.namespace).await;
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
        let secrets = objects::<Secret>(bed.client.clone(), &bed.namespace).await;
        let names: Vec<&String> = secrets.as_object().unwrap().keys().collect();
        let (app, schema, prefix) = (bed.role("app"), bed.role("s"), &bed.prefix);
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
            "roles": bed.one(&roles).await, "acl": bed.one(&acl).await, "members": bed.one(&members).await,
            "generated": self.generated(told).await,
            "second": bed.logs_in(&bed.role("new"), "second").await,
        });
        let drop = format!("DROP DATABASE {} WITH (FORCE)", bed.database.name());
        bed.database.server().execute("postgres", &drop).await;
        state
    }

    /// Masks the names that differ between runs.
    fn mask(&self, told: &Told, text: &str) -> String {
        let bed = &told.bed;
        let plan = Regex::new("-plan-[0-9]{8}-[0-9]{6}-[0-9a-f]{12}").unwrap();
        let text = plan.replace_all(text, "-plan-<n>");
        text.replace(&bed.namespace, "<namespace>")
            .replace(&bed.prefix, "<role>")
            .replace(&bed.prefix.replace('_', "-"), "<role>")
            .replace(bed.database.name(), "<database>")
            .replace(&told.proxy.address().to_string(), "<server>")
    }
}
