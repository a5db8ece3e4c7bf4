//! What the controller says about a `SupabaseProject`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::status::impl_status;

/// Status of a `SupabaseProject`. No field is required: a status that another operator wrote stays readable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SupabaseProjectStatus {
    /// The generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// One word for `kubectl get`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// One sentence for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The components, by their name in the spec.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub components: BTreeMap<String, ComponentStatus>,
    /// What the project stands on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependencies: Option<Dependencies>,
    /// What follows the usual names of the project's logins in the database: empty unless another project of the server
    /// came first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login_suffix: Option<String>,
    /// Where things are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Endpoints>,
    /// The keys' life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<KeysStatus>,
    /// When something was last found to have changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub last_reconcile_time: Option<Timestamp>,
    /// The conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

impl_status!(SupabaseProjectStatus);

/// The life of a `SupabaseProject` in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum Phase {
    Pending,
    ValidatingDependencies,
    InitializingDatabase,
    DeployingSecrets,
    DeployingNetwork,
    DeployingComponents,
    Configuring,
    Running,
    Updating,
    Failed,
    Suspended,
    Terminating,
}

/// One component, as its Deployment is now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComponentStatus {
    /// One word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<ComponentPhase>,
    /// Whether every pod of the newest version is ready, and no other is left.
    #[serde(default)]
    pub ready: bool,
    /// The image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// How many pods shall be there.
    #[serde(default)]
    pub replicas: i32,
    /// How many pods are ready.
    #[serde(default)]
    pub ready_replicas: i32,
    /// What keeps it from being ready, in the pod's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Conditions of earlier versions; the project's own conditions speak of each component.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// When any of this last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub last_update_time: Option<Timestamp>,
}

/// A component in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum ComponentPhase {
    Deploying,
    Running,
    Updating,
    Failed,
    Stopped,
}

/// What the project stands on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Dependencies {
    /// The database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub postgresql: Option<DependencyStatus>,
    /// The bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s3: Option<DependencyStatus>,
}

/// How the last contact went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DependencyStatus {
    /// Whether it answered.
    pub connected: bool,
    /// When it last answered, of those times that changed something in this status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub last_connected_time: Option<Timestamp>,
    /// Why it did not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How long the answer took then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<i32>,
}

/// Where things are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Endpoints {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub realtime: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<String>,
}

/// The keys' life.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeysStatus {
    /// When they were made, or last replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub rotated_at: Option<Timestamp>,
    /// Since when new ones are published: they are used once every component has rolled out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub published_at: Option<Timestamp>,
    /// Until when the old ones are accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub previous_until: Option<Timestamp>,
    /// The value of the annotation `supabase.strrl.dev/rotate-keys-at` that was acted on last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotated_at_request: Option<String>,
}
