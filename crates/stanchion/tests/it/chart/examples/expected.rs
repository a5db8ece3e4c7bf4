//! When an object of an example is ready.

use kube::api::DynamicObject;
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};
use stanchion_api::instance::CONNECTED;

/// An object of ours, and the condition that says that it is ready.
pub(super) struct Expected {
    pub(super) api: Api<DynamicObject>,
    pub(super) kind: String,
    namespace: String,
    pub(super) name: String,
}

impl Expected {
    /// `None` for a kind without conditions, or of others.
    pub(super) fn of(client: &Client, object: &Value, namespace: &str) -> Option<Self> {
        let (group, version) = object["apiVersion"].as_str()?.split_once('/')?;
        let kind = object["kind"].as_str()?;
        let plural = match kind {
            "PostgresUser" => "postgresusers",
            "PostgresInstance" => "postgresinstances",
            "PostgresPolicy" => "postgrespolicies",
            "SupabaseProject" => "supabaseprojects",
            "GitlabInstance" => "gitlabinstances",
            _ => return None,
        };
        let resource =
            ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or(namespace);
        Some(Self {
            api: Api::namespaced_with(client.clone(), namespace, &resource),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: object["metadata"]["name"].as_str()?.to_owned(),
        })
    }

    /// What keeps it from being ready.
    pub(super) async fn missing(&self) -> Option<String> {
        let wanted = if self.kind == "PostgresInstance" {
            CONNECTED
        } else {
            "Ready"
        };
        let about = format!("{} {}/{}", self.kind, self.namespace, self.name);
        let object = match self.api.get(&self.name).await {
            Ok(object) => object,
            Err(error) => return Some(format!("{about}: {error}")),
        };
        let generation = json!(object.metadata.generation);
        let conditions = object
            .data
            .pointer("/status/conditions")
            .cloned()
            .unwrap_or_default();
        let conditions = conditions.as_array().cloned().unwrap_or_default();
        let is_ready = conditions.iter().any(|condition| {
            condition["type"] == wanted
                && condition["status"] == "True"
                && (condition["observedGeneration"].is_null()
                    || condition["observedGeneration"] == generation)
        });
        (!is_ready).then(|| format!("{about}: {}", Value::Array(conditions)))
    }
}
