//! What a user does with objects, and sees of them: users, Secrets, instances, events.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use stanchion_api::{PostgresInstance, PostgresUser};
use stanchion_testkit::postgres::{ADMIN, ADMIN_PASSWORD};
use stanchion_testkit::{unique, wait};

use super::{Running, TestEnv, WAIT_TIMEOUT, condition};

impl TestEnv {
    pub(crate) fn users(&self) -> Api<PostgresUser> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Applies a Secret with a password.
    pub(crate) async fn password(&self, name: &str, password: &str) {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": name }, "stringData": { "password": password },
        });
        let params = PatchParams::apply("test").force();
        self.secrets()
            .patch(name, &params, &Patch::Apply(&secret))
            .await
            .unwrap();
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
        let params = PatchParams::apply("test").force();
        self.users()
            .patch(name, &params, &Patch::Apply(&user))
            .await
            .unwrap()
    }

    /// Waits until the object is Ready with its current generation.
    pub(crate) async fn ready(&self, name: &str) -> PostgresUser {
        self.wait()
            .until(&self.users(), name, |user: &PostgresUser| {
                condition(user, "Ready") == Some(("True".into(), "UserCreated".into()))
            })
            .await
    }

    /// Waits until a condition has this status and reason for the current generation.
    pub(crate) async fn condition(&self, name: &str, kind: &str, status: &str, reason: &str) -> PostgresUser {
        self.wait()
            .until(&self.users(), name, |user: &PostgresUser| {
                condition(user, kind) == Some((status.into(), reason.into()))
            })
            .await
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.users().delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub(crate) async fn gone(&self, name: &str) {
        self.wait().gone(&self.users(), name).await;
    }

    /// Merges a patch into an object, as a user would.
    pub(crate) async fn patch(&self, name: &str, patch: Value) {
        let params = PatchParams::default();
        self.users()
            .patch(name, &params, &Patch::Merge(&patch))
            .await
            .unwrap();
    }

    /// Requests a reconcile, and waits until one has ended.
    pub(crate) async fn look_again(&self, operator: &Running, name: &str) {
        operator.idle().await;
        let before = operator.passes();
        let value = unique::name("now");
        let patch = json!({ "metadata": { "annotations": { "db.example.com/reconcile-at": value } } });
        self.patch(name, patch).await;
        wait::eventually(WAIT_TIMEOUT, "a pass", async || operator.passes() > before).await;
        operator.idle().await;
    }

    /// The reasons and notes of the events about a user.
    pub(crate) async fn events(&self, name: &str) -> Vec<(String, String)> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), &self.namespace);
        let about = |event: &Event| {
            let regarding = event.regarding.clone().unwrap_or_default();
            regarding.name.as_deref() == Some(name) && regarding.kind.as_deref() == Some("PostgresUser")
        };
        let listed = events.list(&ListParams::default()).await.unwrap();
        listed
            .items
            .into_iter()
            .filter(about)
            .map(|event| (event.reason.unwrap_or_default(), event.note.unwrap_or_default()))
            .collect()
    }

    /// Waits for an event and returns its note.
    pub(crate) async fn event(&self, name: &str, reason: &str) -> String {
        wait::eventually(WAIT_TIMEOUT, &format!("the event {reason}"), async || {
            let events = self.events(name).await;
            let found = events.iter().find(|(found, _)| found == reason);
            found.map(|(_, note)| note.clone()).ok_or(format!("{events:?}"))
        })
        .await
    }

    pub(crate) async fn annotate(&self, name: &str, annotation: &str, value: &str) {
        self.patch(
            name,
            json!({ "metadata": { "annotations": { annotation: value } } }),
        )
        .await;
    }

    pub(crate) fn instances(&self) -> Api<PostgresInstance> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Applies an instance for the test's server, with its Secret, and with `more` merged into its spec.
    pub(crate) async fn instance(&self, name: &str, more: Value) {
        let (user, password) = (ADMIN, ADMIN_PASSWORD);
        self.keys(
            &format!("{name}-admin"),
            &[("username", user), ("password", password)],
        )
        .await;
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
        let params = PatchParams::apply("test").force();
        self.instances()
            .patch(name, &params, &Patch::Apply(&instance))
            .await
            .unwrap();
    }

    /// Applies a Secret with these values.
    pub(crate) async fn keys(&self, name: &str, values: &[(&str, &str)]) {
        let values: BTreeMap<&str, &str> = values.iter().copied().collect();
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name }, "stringData": values,
        });
        let params = PatchParams::apply("test").force();
        self.secrets()
            .patch(name, &params, &Patch::Apply(&secret))
            .await
            .unwrap();
    }

    /// The values of a Secret, once it exists.
    pub(crate) async fn values(&self, name: &str) -> BTreeMap<String, String> {
        let secret = wait::until(&self.secrets(), name, WAIT_TIMEOUT, |_: &Secret| true).await;
        let data = secret.data.unwrap_or_default();
        data.into_iter()
            .map(|(key, value)| (key, String::from_utf8(value.0).unwrap()))
            .collect()
    }

    /// Waits until the user's status satisfies a condition.
    pub(crate) async fn until(
        &self,
        name: &str,
        check: impl Fn(&PostgresUser) -> bool + Send,
    ) -> PostgresUser {
        wait::until(&self.users(), name, WAIT_TIMEOUT, check).await
    }
}
