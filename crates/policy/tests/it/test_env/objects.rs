//! What a user does with objects, and sees of them.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use stanchion_api::{PostgresPolicy, PostgresPolicyPlan};
use stanchion_testkit::unique;

use super::{TestEnv, condition};

impl TestEnv {
    pub(crate) fn policies(&self) -> Api<PostgresPolicy> {
        self.api()
    }

    pub(crate) fn policies_in(&self, namespace: &str) -> Api<PostgresPolicy> {
        Api::namespaced(self.client.clone(), namespace)
    }

    pub(crate) fn plans(&self) -> Api<PostgresPolicyPlan> {
        self.api()
    }

    pub(crate) fn secrets(&self) -> Api<Secret> {
        self.api()
    }

    pub(crate) fn config_maps(&self) -> Api<ConfigMap> {
        self.api()
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
        self.apply_in(namespace, name, &policy).await
    }

    /// Waits until a condition has this status and reason for the current generation.
    pub(crate) async fn condition(
        &self,
        name: &str,
        kind: &str,
        status: &str,
        reason: &str,
    ) -> PostgresPolicy {
        self.until_condition(name, kind, status, reason).await
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

    /// Waits until the policy is Ready.
    pub(crate) async fn ready(&self, name: &str) -> PostgresPolicy {
        self.condition(name, "Ready", "True", "Reconciled").await
    }

    pub(crate) async fn get_in(&self, namespace: &str, name: &str) -> PostgresPolicy {
        self.policies_in(namespace).get(name).await.unwrap()
    }

    pub(crate) async fn get(&self, name: &str) -> PostgresPolicy {
        self.base.get(name).await
    }

    /// Merges a patch into a policy, as a user would.
    pub(crate) async fn patch(&self, name: &str, patch: Value) {
        self.base.patch::<PostgresPolicy>(name, patch).await;
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
        let wait = self.wait();
        wait.eventually(&what, async || {
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

    /// Requests a reconcile, and waits until it is done.
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
        let events = self.events_about(name).await;
        events.into_iter().filter_map(|event| event.reason).collect()
    }

    /// Waits for an event.
    pub(crate) async fn event(&self, name: &str, reason: &str) {
        let what = format!("the event {reason}");
        let happens = async || self.events(name).await.iter().any(|event| event == reason);
        self.wait().eventually(&what, happens).await;
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.base.delete::<PostgresPolicy>(name).await;
        self.wait().gone(&self.policies(), name).await;
    }
}
