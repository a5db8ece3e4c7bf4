//! What a user does with objects, and sees of them.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};
use stanchion_api::SupabaseProject;
use stanchion_api::supabase::Phase;
use stanchion_testenv::secret_values;

use super::TestEnv;

impl TestEnv {
    /// Applies the smallest project, with `more` merged into its spec.
    pub(crate) async fn project(&self, name: &str, more: Value) -> SupabaseProject {
        let mut spec = json!({
            "projectId": name,
            "database": { "secretRef": { "name": "db" }, "sslMode": "disable" },
            "storage": { "secretRef": { "name": "s3" } },
        });
        json_patch::merge(&mut spec, &more);
        let project = json!({
            "apiVersion": "supabase.strrl.dev/v1alpha1", "kind": "SupabaseProject",
            "metadata": { "name": name }, "spec": spec,
        });
        self.apply(name, &project).await
    }

    /// The values of a Secret.
    pub(crate) async fn values(&self, name: &str) -> BTreeMap<String, String> {
        secret_values(self.get::<Secret>(name).await)
    }

    /// The events of an object: type, reason and message of each.
    pub(crate) async fn events(&self, name: &str) -> Vec<[String; 3]> {
        let events = self.events_about(name).await.into_iter();
        events
            .map(|event| [event.type_, event.reason, event.note].map(Option::unwrap_or_default))
            .collect()
    }

    /// Waits until the project satisfies a condition.
    pub(crate) async fn until(
        &self,
        name: &str,
        is: impl Fn(&SupabaseProject) -> bool + Send,
    ) -> SupabaseProject {
        Box::pin(self.wait().until(&self.api(), name, is)).await
    }

    /// Waits until the project's message is this one.
    pub(crate) async fn says(&self, name: &str, words: &str) -> SupabaseProject {
        let says = |project: &SupabaseProject| {
            let status = project.status.as_ref();
            status.is_some_and(|status| status.message.as_deref() == Some(words))
        };
        self.until(name, says).await
    }

    /// Waits until the project runs with its current generation.
    pub(crate) async fn running(&self, name: &str) -> SupabaseProject {
        Box::pin(self.until(name, is_running)).await
    }
}

/// Whether the project runs with its current generation.
pub(crate) fn is_running(project: &SupabaseProject) -> bool {
    project.status.as_ref().is_some_and(|status| {
        status.phase == Some(Phase::Running) && status.observed_generation == project.metadata.generation
    })
}
