//! Status of a `SupabaseProject`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::status::impl_status;

/// Status of a `SupabaseProject`. No field is required, so a status that another operator wrote stays readable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SupabaseProjectStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The state of the project in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// The state of the project in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The components, by their field names in the spec.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub components: BTreeMap<String, ComponentStatus>,
    /// The state of the PostgreSQL server and the bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependencies: Option<Dependencies>,
    /// Suffix of the project's login names in the database. Empty for the first project on a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login_suffix: Option<String>,
    /// URLs of the services.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Endpoints>,
    /// The state of the signing keys and API keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<KeysStatus>,
    /// When the operator last observed a change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub last_reconcile_time: Option<Timestamp>,
    /// The state of the project, as Kubernetes conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

impl_status!(SupabaseProjectStatus);

/// The state of a `SupabaseProject` in one word.
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

/// The state of a component's Deployment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComponentStatus {
    /// The state of the component in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<ComponentPhase>,
    /// Whether every pod of the newest revision is ready and no older pod remains.
    #[serde(default)]
    pub ready: bool,
    /// The container image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The desired number of pods.
    #[serde(default)]
    pub replicas: i32,
    /// The number of ready pods.
    #[serde(default)]
    pub ready_replicas: i32,
    /// Why the component is not ready, as the pod reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Conditions that earlier versions wrote. The conditions of the project describe each component.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// When this status last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub last_update_time: Option<Timestamp>,
}

/// The state of a component in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum ComponentPhase {
    Deploying,
    Running,
    Updating,
    Failed,
    Stopped,
}

/// The state of the PostgreSQL server and the bucket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Dependencies {
    /// The PostgreSQL server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub postgresql: Option<DependencyStatus>,
    /// The bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s3: Option<DependencyStatus>,
}

/// The result of the last check.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DependencyStatus {
    /// Whether the service answered.
    pub connected: bool,
    /// When the service answered. Updated only when something else in this status changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub last_connected_time: Option<Timestamp>,
    /// Why the check failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Duration of that check in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<i32>,
}

/// URLs of the services.
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

/// The state of the signing keys and API keys.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeysStatus {
    /// When the keys were created or last rotated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub rotated_at: Option<Timestamp>,
    /// When new keys were published. The project uses them once every component has rolled out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub published_at: Option<Timestamp>,
    /// Until when the previous keys stay valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub previous_until: Option<Timestamp>,
    /// The last value of the annotation `supabase.strrl.dev/rotate-keys-at` that the operator acted on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotated_at_request: Option<String>,
}
