//! What is around a user: events, annotations, instances, groups, Secrets, and the operator's log.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use stanchion_api::{PostgresInstance, PostgresUser};
use stanchion_testkit::postgres::{ADMIN, ADMIN_PASSWORD};
use stanchion_testkit::wait;

use super::bed::{Bed, PATIENCE, role_name};

impl Bed {
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
        wait::eventually(PATIENCE, &format!("the event {reason}"), async || {
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

    /// Applies an instance for the bed's server, with its Secret, and with `more` merged over its spec.
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

    /// The values of a Secret, once it is there.
    pub(crate) async fn values(&self, name: &str) -> BTreeMap<String, String> {
        let secret = wait::until(&self.secrets(), name, PATIENCE, |_: &Secret| true).await;
        let data = secret.data.unwrap_or_default();
        data.into_iter()
            .map(|(key, value)| (key, String::from_utf8(value.0).unwrap()))
            .collect()
    }

    /// A role that others can be members of.
    pub(crate) async fn group(&self, attributes: &str) -> String {
        let name = role_name();
        self.database
            .execute(&format!("CREATE ROLE {name} {attributes}"))
            .await;
        name
    }

    /// Whether the role can do this, asked as the role.
    pub(crate) async fn can(&self, role: &str, password: &str, sql: &str) -> bool {
        let client = self.database.connect(role, password).await.unwrap();
        client.batch_execute(sql).await.is_ok()
    }

    /// One column of the role in `pg_roles`.
    pub(crate) async fn attribute(&self, role: &str, column: &str) -> String {
        self.one(&format!("SELECT {column} FROM pg_roles WHERE rolname = '{role}'"))
            .await
    }

    /// Waits until a query returns this.
    pub(crate) async fn becomes(&self, sql: &str, value: &str) {
        wait::eventually(PATIENCE, &format!("{value} from {sql}"), async || {
            let found = self.one(sql).await;
            if found == value { Ok(()) } else { Err(found) }
        })
        .await;
    }

    /// Waits until the user's status is so.
    pub(crate) async fn until(
        &self,
        name: &str,
        check: impl Fn(&PostgresUser) -> bool + Send,
    ) -> PostgresUser {
        wait::until(&self.users(), name, PATIENCE, check).await
    }
}
