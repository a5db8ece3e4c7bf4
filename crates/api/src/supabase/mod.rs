//! `SupabaseProject`: a whole Supabase on the user's own PostgreSQL and S3.

mod access;
mod components;
mod dependencies;
mod keys;
mod lifecycle;
mod options;
mod status;

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

pub use access::{DisruptionBudget, Gateway, IngressOptions, NetworkRules, ParentRef};
pub use components::{
    Analytics, Auth, ClaimName, ConfigMapName, Functions, FunctionsSource, Imgproxy, Kong, Meta, Pooler,
    Postgrest, Realtime, StorageApi, Studio, image,
};
pub use dependencies::{Database, SecretReference, Storage};
pub use keys::{Jwt, JwtSecretRef};
pub use lifecycle::DeletionPolicy;
pub use options::{Autoscaling, Options};
pub use status::{
    ComponentPhase, ComponentStatus, Dependencies, DependencyStatus, Endpoints, KeysStatus, Phase,
    SupabaseProjectStatus,
};

/// The finalizer of the operator that these objects were first made for, and ours.
pub const FINALIZER: &str = "supabase.strrl.dev/finalizer";

/// Annotations that a user sets and the controller only reads.
pub mod annotation {
    /// Any new value makes the controller look at once.
    pub const RECONCILE_AT: &str = "supabase.strrl.dev/reconcile-at";
    /// A new RFC 3339 time makes the controller replace the signing keys and the API keys.
    pub const ROTATE_KEYS_AT: &str = "supabase.strrl.dev/rotate-keys-at";
}

/// Condition types of a `SupabaseProject`; each component has one more, such as `KongReady`.
pub mod condition {
    /// Every component is ready now.
    pub const READY: &str = "Ready";
    /// Something is on its way to what the spec says.
    pub const PROGRESSING: &str = "Progressing";
    /// The gateway answers, and so does what it leads to.
    pub const AVAILABLE: &str = "Available";
    /// Something that was deployed is not ready.
    pub const DEGRADED: &str = "Degraded";
    /// A query came back.
    pub const POSTGRESQL_CONNECTED: &str = "PostgreSQLConnected";
    /// A signed request on the bucket was answered.
    pub const S3_CONNECTED: &str = "S3Connected";
    /// Services, and whatever else leads to them, are as the spec says.
    pub const NETWORK_READY: &str = "NetworkReady";
    /// Keys and passwords are there.
    pub const SECRETS_READY: &str = "SecretsReady";
}

/// A whole Supabase.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "supabase.strrl.dev",
    version = "v1alpha1",
    kind = "SupabaseProject",
    plural = "supabaseprojects",
    singular = "supabaseproject",
    shortname = "sbp",
    namespaced,
    status = "SupabaseProjectStatus",
    derive = "PartialEq",
    doc = "A whole Supabase on a PostgreSQL server and an S3 bucket of yours.",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(name = "URL", type_ = "string", json_path = ".status.endpoints.api"),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.message",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct SupabaseProjectSpec {
    /// What the dashboard calls the project.
    #[schemars(length(min = 1, max = 253), pattern("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub project_id: String,
    /// The PostgreSQL server.
    pub database: Database,
    /// The S3 bucket.
    pub storage: Storage,
    /// The API gateway, through which everything is reached.
    #[serde(default)]
    pub kong: Kong,
    /// Sign-up, log-in and tokens.
    #[serde(default)]
    pub auth: Auth,
    /// Changes of the database, presence and messages, over web sockets.
    #[serde(default)]
    pub realtime: Realtime,
    /// The database as a REST API.
    #[serde(default)]
    pub postgrest: Postgrest,
    /// Files.
    #[serde(default)]
    pub storage_api: StorageApi,
    /// The database's structure, for the dashboard.
    #[serde(default)]
    pub meta: Meta,
    /// The dashboard.
    #[serde(default)]
    pub studio: Studio,
    /// Images in other sizes; without it they are served as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imgproxy: Option<Imgproxy>,
    /// Functions that answer requests at `/functions/v1/`; none by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub functions: Option<Functions>,
    /// A pooler of connections to the database; none by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pooler: Option<Pooler>,
    /// Logs in the dashboard; none by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analytics: Option<Analytics>,
    /// An Ingress in front of the gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress: Option<IngressOptions>,
    /// An `HTTPRoute` of the Gateway API in front of the gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<Gateway>,
    /// `NetworkPolicies`: the components are reached by each other and through the gateway only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_policy: Option<NetworkRules>,
    /// A `PodDisruptionBudget` for each component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_disruption_budget: Option<DisruptionBudget>,
    /// Tokens and the keys that sign them.
    #[serde(default)]
    pub jwt: Jwt,
    /// What becomes of what was made in the database when the project is deleted: `Retain` leaves it. `Delete` takes it
    /// away, users and files of the services included, but for what others use. The bucket is left in either case.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
    /// Leaves everything as it is; a deletion is still honoured.
    #[serde(default)]
    pub suspend: bool,
}

#[cfg(test)]
mod tests {
    use kube::core::cel::validate_cel;
    use serde_json::{Value, json};

    use super::*;

    fn project(change: impl FnOnce(&mut Value)) -> SupabaseProject {
        let mut object = json!({
            "apiVersion": "supabase.strrl.dev/v1alpha1", "kind": "SupabaseProject", "metadata": {"name": "it"},
            "spec": {
                "projectId": "it",
                "database": {"secretRef": {"name": "db"}},
                "storage": {"secretRef": {"name": "s3"}},
            },
        });
        change(&mut object["spec"]);
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_minimal_project_has_every_component_once() {
        let spec = project(|_| {}).spec;
        assert_eq!(spec.kong.options.replicas, 1);
        assert_eq!(spec.database.max_connections, 20);
        assert!(spec.storage.force_path_style && spec.studio.enabled && spec.imgproxy.is_none());
        assert_eq!(spec.database.ssl_mode, crate::instance::TlsMode::Require);
    }

    #[test]
    fn zero_and_false_are_said_and_not_lost() {
        let spec = project(|spec| {
            spec["meta"] = json!({"replicas": 0});
            spec["storage"]["forcePathStyle"] = json!(false);
        })
        .spec;
        let written = serde_json::to_value(&spec).unwrap();
        assert_eq!(written["meta"]["replicas"], 0);
        assert_eq!(written["storage"]["forcePathStyle"], false);
    }

    #[test]
    fn the_rules_of_the_schema() {
        validate_cel(&project(|_| {})).unwrap();
        // Without a CA of its own, the system's are meant.
        validate_cel(&project(|spec| {
            spec["database"]["sslMode"] = json!("verify-full");
        }))
        .unwrap();
        let refused = [
            (
                project(|spec| spec["database"]["secretRef"] = json!({"name": ""})),
                "database.secretRef.name cannot be empty",
            ),
            (
                project(|spec| spec["storage"]["secretRef"] = json!({})),
                "storage.secretRef.name cannot be empty",
            ),
        ];
        for (object, words) in refused {
            let error = format!("{:?}", validate_cel(&object).unwrap_err());
            assert!(error.contains(words), "{error}");
        }
    }
}
