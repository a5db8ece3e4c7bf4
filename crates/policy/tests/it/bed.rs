//! A test bed: namespaces, a database, and the operator in this process, restricted to the namespaces.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client, Config, ResourceExt};
use serde_json::{Value, json};
use stanchion_api::{PostgresPolicy, PostgresPolicyPlan};
use stanchion_kernel::Scope;
use stanchion_kernel::client::{self, ApiLayer, Options};
use stanchion_kernel::driver::{Backoff, Environment, Operator, Settings};
use stanchion_kernel::redact::FingerprintKey;
use stanchion_kernel::telemetry::Metrics;
use stanchion_policy::{PolicyController, Setup};
use stanchion_postgres::{PoolSettings, Pools};
use stanchion_testkit::cluster::Cluster;
use stanchion_testkit::faults::Faults;
use stanchion_testkit::operator_log::OperatorLog;
use stanchion_testkit::postgres::{Database, Version};
use stanchion_testkit::wait::Wait;
use stanchion_testkit::{unique, wait};
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::instrument::WithSubscriber;

/// How long anything may take: the machines are slow and busy.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// Two namespaces and a database.
pub(crate) struct Bed {
    pub(crate) cluster: &'static Cluster,
    pub(crate) namespace: String,
    pub(crate) other: String,
    pub(crate) client: Client,
    pub(crate) database: Database<'static>,
    pub(crate) key: Arc<FingerprintKey>,
    /// The name of the operator's sessions, which tells them from those of other tests.
    pub(crate) application: String,
    /// What the names of all roles of this test begin with: roles belong to the whole server.
    pub(crate) prefix: String,
    pub(crate) log: OperatorLog,
}

impl Bed {
    pub(crate) async fn new() -> Self {
        Self::on(Version::V15).await
    }

    /// Fresh namespaces, and a fresh database on a server of this version.
    pub(crate) async fn on(version: Version) -> Self {
        static CRDS: OnceCell<()> = OnceCell::const_new();
        let cluster = Cluster::shared().await;
        CRDS.get_or_init(async || cluster.install_crds(stanchion_api::crds()).await)
            .await;
        Self {
            cluster,
            namespace: cluster.namespace("policy").await,
            other: cluster.namespace("policy").await,
            client: cluster.client().await,
            database: Database::of(version).await,
            key: Arc::new(FingerprintKey::generate()),
            application: unique::name("operator"),
            prefix: unique::name("r").replace('-', "_"),
            log: OperatorLog::in_memory(),
        }
    }

    /// A role name that nobody else uses.
    pub(crate) fn role(&self, name: &str) -> String {
        format!("{}_{name}", self.prefix)
    }

    /// The superuser's URL of this test's database.
    pub(crate) fn url(&self) -> String {
        self.url_through(&self.database.url())
    }

    /// A URL under which the sessions are known as this test's.
    pub(crate) fn url_through(&self, url: &str) -> String {
        let separator = if url.contains('?') { '&' } else { '?' };
        format!("{url}{separator}application_name={}", self.application)
    }

    /// The operator, with nothing in its way.
    pub(crate) async fn operator(&self) -> Running {
        self.operator_with(&Faults::new()).await
    }

    /// The operator, with these faults.
    pub(crate) async fn operator_with(&self, faults: &Faults) -> Running {
        let (operator, metrics) = self.build(self.cluster.config().await, faults.clone());
        Running {
            task: tokio::spawn(operator.run().with_subscriber(self.log.dispatch())),
            metrics,
        }
    }

    /// An operator that is not running yet.
    pub(crate) fn build(&self, config: Config, faults: Faults) -> (Operator, Metrics) {
        let metrics = Metrics::new("test");
        let mut options = Options::new("test");
        options.layers = vec![ApiLayer::new(faults)];
        let client = client::build(config, &metrics, &options).unwrap();
        let pools = Pools::new(PoolSettings::default(), Arc::new(metrics.postgres().clone()));
        let setup = Setup::new(pools, Arc::clone(&self.key), &metrics);
        let environment = Environment {
            client,
            metrics: metrics.clone(),
            instance: "test".into(),
            settings: Settings {
                streaming_lists: true,
                backoff: quick(),
                ..Settings::default()
            },
            shutdown: CancellationToken::new(),
        };
        let mut operator = Operator::new(environment);
        for namespace in [&self.namespace, &self.other] {
            let scope = Scope::Namespace(namespace.clone());
            operator.add(PolicyController::new(setup.clone(), scope.clone()), &scope);
        }
        (operator, metrics)
    }

    /// A wait that shows the operator's log when it fails.
    pub(crate) fn wait(&self) -> Wait<'_> {
        wait::within(PATIENCE).showing(&self.log)
    }

    pub(crate) fn policies(&self) -> Api<PostgresPolicy> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) fn policies_in(&self, namespace: &str) -> Api<PostgresPolicy> {
        Api::namespaced(self.client.clone(), namespace)
    }

    pub(crate) fn plans(&self) -> Api<PostgresPolicyPlan> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Applies a Secret with these values.
    pub(crate) async fn secret(&self, name: &str, values: Value) {
        self.secret_in(&self.namespace, name, values).await;
    }

    pub(crate) async fn secret_in(&self, namespace: &str, name: &str, values: Value) {
        let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name }, "stringData": values });
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let params = PatchParams::apply("test").force();
        secrets
            .patch(name, &params, &Patch::Apply(&secret))
            .await
            .unwrap();
    }

    /// The Secret `db` with the superuser's URL.
    pub(crate) async fn database_secret(&self) {
        self.secret("db", json!({ "DATABASE_URL": self.url() })).await;
    }

    /// Applies a policy that connects by the Secret `db`, with `more` merged over it.
    pub(crate) async fn policy(&self, name: &str, more: Value) -> PostgresPolicy {
        self.policy_in(&self.namespace, name, more).await
    }

    pub(crate) async fn policy_in(&self, namespace: &str, name: &str, more: Value) -> PostgresPolicy {
        let mut policy = json!({
            "apiVersion": "pgroles.io/v1alpha1", "kind": "PostgresPolicy", "metadata": { "name": name },
            "spec": { "connection": { "secretRef": { "name": "db" } } },
        });
        json_patch::merge(&mut policy["spec"], &more);
        let params = PatchParams::apply("test").force();
        let policies = self.policies_in(namespace);
        policies
            .patch(name, &params, &Patch::Apply(&policy))
            .await
            .unwrap()
    }

    /// Waits until a condition has this status and reason for the present generation.
    pub(crate) async fn condition(
        &self,
        name: &str,
        kind: &str,
        status: &str,
        reason: &str,
    ) -> PostgresPolicy {
        self.condition_in(&self.namespace, name, kind, status, reason)
            .await
    }

    pub(crate) async fn condition_in(
        &self,
        namespace: &str,
        name: &str,
        kind: &str,
        status: &str,
        reason: &str,
    ) -> PostgresPolicy {
        self.wait()
            .until(&self.policies_in(namespace), name, |policy: &PostgresPolicy| {
                condition(policy, kind) == Some((status.into(), reason.into()))
            })
            .await
    }

    /// Waits until the policy holds.
    pub(crate) async fn ready(&self, name: &str) -> PostgresPolicy {
        self.condition(name, "Ready", "True", "Reconciled").await
    }

    pub(crate) async fn get(&self, name: &str) -> PostgresPolicy {
        self.policies().get(name).await.unwrap()
    }

    /// Merges a patch into a policy, as a person would.
    pub(crate) async fn patch(&self, name: &str, patch: Value) {
        let patch = Patch::Merge(&patch);
        self.policies()
            .patch(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    pub(crate) async fn annotate_plan(&self, name: &str, annotation: &str) {
        let patch = json!({ "metadata": { "annotations": { annotation: "true" } } });
        let params = PatchParams {
            field_manager: Some("alice".into()),
            ..PatchParams::default()
        };
        self.plans()
            .patch(name, &params, &Patch::Merge(&patch))
            .await
            .unwrap();
    }

    /// The plans of a policy, the oldest first.
    pub(crate) async fn plans_of(&self, policy: &str) -> Vec<PostgresPolicyPlan> {
        let params = ListParams::default().labels(&format!("pgroles.io/policy={policy}"));
        let mut plans = self.plans().list(&params).await.unwrap().items;
        plans.sort_by_key(|plan| (plan.creation_timestamp(), plan.name_any()));
        plans
    }

    /// Waits until the current plan of a policy has this phase.
    pub(crate) async fn plan_in(&self, policy: &str, phase: &str) -> PostgresPolicyPlan {
        let what = format!("a plan of {policy} in phase {phase}");
        wait::eventually(PATIENCE, &what, async || {
            let name = self.get(policy).await.status?.current_plan_ref?.name;
            let plan = self.plans().get_opt(&name).await.unwrap()?;
            let is_so = plan
                .status
                .as_ref()
                .is_some_and(|status| status.phase.as_str() == phase);
            is_so.then_some(plan)
        })
        .await
    }

    /// Asks for a pass, and waits until it has been made.
    pub(crate) async fn look_again(&self, name: &str) -> PostgresPolicy {
        let value = unique::name("now");
        self.patch(
            name,
            json!({ "metadata": { "annotations": { "reconcile.pgroles.io/requestedAt": value } } }),
        )
        .await;
        self.wait()
            .until(&self.policies(), name, |policy: &PostgresPolicy| {
                policy
                    .status
                    .as_ref()
                    .is_some_and(|status| status.last_attempted_reconcile_at.as_deref() == Some(&value))
            })
            .await
    }

    /// The reasons of the events about a policy.
    pub(crate) async fn events(&self, name: &str) -> Vec<String> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), &self.namespace);
        let events = events.list(&ListParams::default()).await.unwrap().items;
        events
            .into_iter()
            .filter(|event| {
                event
                    .regarding
                    .as_ref()
                    .is_some_and(|regarding| regarding.name.as_deref() == Some(name))
            })
            .filter_map(|event| event.reason)
            .collect()
    }

    /// Waits for an event.
    pub(crate) async fn event(&self, name: &str, reason: &str) {
        let what = format!("the event {reason}");
        wait::eventually(PATIENCE, &what, async || {
            self.events(name).await.iter().any(|event| event == reason)
        })
        .await;
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.policies()
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
        self.wait().gone(&self.policies(), name).await;
    }

    /// A value that one query returns.
    pub(crate) async fn one(&self, sql: &str) -> String {
        self.database.scalar(sql).await.unwrap_or_default()
    }

    /// Whether the role is there.
    pub(crate) async fn has_role(&self, role: &str) -> bool {
        self.one(&format!("SELECT count(*) FROM pg_roles WHERE rolname = '{role}'"))
            .await
            == "1"
    }

    /// What the operator's sessions have executed so far.
    pub(crate) fn statements(&self) -> Vec<String> {
        let log = self.database.server().log();
        log.entries()
            .iter()
            .filter(|entry| entry.application == self.application)
            .filter_map(|entry| entry.statement())
            .map(str::to_owned)
            .collect()
    }

    /// Those of [`Self::statements`] that change something.
    pub(crate) fn sql_writes(&self) -> Vec<String> {
        let reading = ["SELECT", "WITH", "BEGIN", "SET", "COMMIT", "ROLLBACK"];
        let mut all = self.statements();
        all.retain(|sql| {
            let mut parts = sql.split(';').map(str::trim).filter(|part| !part.is_empty());
            !parts.all(|part| reading.iter().any(|word| part.starts_with(word)))
        });
        all
    }

    pub(crate) async fn logs_in(&self, role: &str, password: &str) -> bool {
        self.database.connect(role, password).await.is_ok()
    }
}

/// A condition's message.
pub(crate) fn message(policy: &PostgresPolicy, kind: &str) -> String {
    let conditions = policy.status.iter().flat_map(|status| &status.conditions);
    let mut found = conditions.filter(|condition| condition.type_ == kind);
    found
        .next()
        .map(|found| found.message.clone())
        .unwrap_or_default()
}

/// A condition's status and reason, if it speaks of the present generation.
pub(crate) fn condition(policy: &PostgresPolicy, kind: &str) -> Option<(String, String)> {
    let conditions = &policy.status.as_ref()?.conditions;
    let found = conditions.iter().find(|condition| condition.type_ == kind)?;
    (found.observed_generation == policy.metadata.generation)
        .then(|| (found.status.clone(), found.reason.clone()))
}

/// A backoff that is as steep as the usual one and much shorter.
pub(crate) fn quick() -> Backoff {
    Backoff {
        first: Duration::from_millis(50),
        most: Duration::from_millis(1600),
    }
}

/// An operator that runs; dropped, it is killed where it stands.
pub(crate) struct Running {
    task: JoinHandle<()>,
    pub(crate) metrics: Metrics,
}

impl Running {
    /// How many passes have ended.
    pub(crate) fn passes(&self) -> u64 {
        self.total("controller_runtime_reconcile_total{controller=\"policy\"")
    }

    /// Waits until no pass is running.
    pub(crate) async fn idle(&self) {
        let workers = "controller_runtime_active_workers{controller=\"policy\"";
        wait::eventually(PATIENCE, "all passes to end", async || self.total(workers) == 0).await;
    }

    /// The sum of all numbers whose name and labels begin like this.
    pub(crate) fn total(&self, start: &str) -> u64 {
        let text = self.metrics.encode();
        let lines = text.lines().filter(|line| line.starts_with(start));
        lines
            .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
            .sum()
    }

    /// Kills it, as SIGKILL would: nothing of it goes on.
    pub(crate) async fn kill(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}
