//! What a user does with objects, and sees of them: users, Secrets, instances, events.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use serde_json::{Value, json};
use stanchion_api::{PostgresInstance, PostgresUser};
use stanchion_testenv::secret_values;
use stanchion_testkit::postgres::{ADMIN, ADMIN_PASSWORD};
use stanchion_testkit::unique;

use super::{Running, TestEnv};

impl TestEnv {
    pub(crate) fn users(&self) -> Api<PostgresUser> {
        self.api()
    }

    pub(crate) fn secrets(&self) -> Api<Secret> {
        self.api()
    }

    /// Applies a Secret with a password.
    pub(crate) async fn password(&self, name: &str, password: &str) {
        self.secret(name, json!({ "password": password })).await;
    }

    /// Applies a user with the guide's spec, with `more` merged into it.
    pub(crate) async fn user(&self, name: &str, username: &str, more: Value) -> PostgresUser {
        let mut user = json!({
            "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresUser",
            "metadata": { "name": name },
            "spec": {
                "username": username, "database": self.database.name(), "privileges": ["CONNECT"],
                "passwordSecretRef": { "name": name },
            },
        });
        json_patch::merge(&mut user["spec"], &more);
        self.apply(name, &user).await
    }

    /// Waits until the object is Ready with its current generation.
    pub(crate) async fn ready(&self, name: &str) -> PostgresUser {
        self.condition(name, "Ready", "True", "UserCreated").await
    }

    /// Waits until a condition has this status and reason for the current generation.
    pub(crate) async fn condition(&self, name: &str, kind: &str, status: &str, reason: &str) -> PostgresUser {
        self.until_condition(name, kind, status, reason).await
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.base.delete::<PostgresUser>(name).await;
    }

    pub(crate) async fn gone(&self, name: &str) {
        self.wait().gone(&self.users(), name).await;
    }

    /// Merges a patch into a user.
    pub(crate) async fn patch(&self, name: &str, patch: Value) {
        self.base.patch::<PostgresUser>(name, patch).await;
    }

    /// Requests a reconcile, and waits until one has ended.
    pub(crate) async fn look_again(&self, operator: &Running, name: &str) {
        operator.idle().await;
        let before = operator.passes();
        let value = unique::name("now");
        let patch = json!({ "metadata": { "annotations": { "db.example.com/reconcile-at": value } } });
        self.patch(name, patch).await;
        let passed = async || operator.passes() > before;
        self.wait().eventually("a pass", passed).await;
        operator.idle().await;
    }

    /// The reasons and notes of the events about a user.
    pub(crate) async fn events(&self, name: &str) -> Vec<(String, String)> {
        let of_users = self.events_about(name).await.into_iter().filter(|event| {
            let regarding = event.regarding.as_ref();
            regarding.and_then(|regarding| regarding.kind.as_deref()) == Some("PostgresUser")
        });
        of_users
            .map(|event| (event.reason.unwrap_or_default(), event.note.unwrap_or_default()))
            .collect()
    }

    /// Waits for an event and returns its note.
    pub(crate) async fn event(&self, name: &str, reason: &str) -> String {
        let what = format!("the event {reason}");
        let wait = self.wait().eventually(&what, async || {
            let events = self.events(name).await;
            let found = events.iter().find(|(found, _)| found == reason);
            found.map(|(_, note)| note.clone()).ok_or(format!("{events:?}"))
        });
        wait.await
    }

    pub(crate) async fn annotate(&self, name: &str, annotation: &str, value: &str) {
        self.patch(
            name,
            json!({ "metadata": { "annotations": { annotation: value } } }),
        )
        .await;
    }

    pub(crate) fn instances(&self) -> Api<PostgresInstance> {
        self.api()
    }

    /// Applies an instance for the test's server, with its Secret, and with `more` merged into its spec.
    pub(crate) async fn instance(&self, name: &str, more: Value) {
        let admin = json!({ "username": ADMIN, "password": ADMIN_PASSWORD });
        self.secret(&format!("{name}-admin"), admin).await;
        let mut spec = json!({
            "host": "127.0.0.1", "port": self.database.server().port(),
            "adminSecretRef": { "name": format!("{name}-admin") },
        });
        for (key, value) in more.as_object().cloned().unwrap_or_default() {
            spec[key] = value;
        }
        let instance = json!({
            "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresInstance",
            "metadata": { "name": name }, "spec": spec,
        });
        self.apply::<PostgresInstance>(name, &instance).await;
    }

    /// The values of a Secret, once it exists.
    pub(crate) async fn values(&self, name: &str) -> BTreeMap<String, String> {
        secret_values(self.wait().until(&self.secrets(), name, |_| true).await)
    }

    /// Waits until the user's status satisfies a condition.
    pub(crate) async fn until(
        &self,
        name: &str,
        check: impl Fn(&PostgresUser) -> bool + Send,
    ) -> PostgresUser {
        self.wait().until(&self.users(), name, check).await
    }
}
