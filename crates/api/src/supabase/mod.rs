//! `SupabaseProject`: a complete Supabase on an existing PostgreSQL server and S3 bucket.

mod access;
mod components;
mod dependencies;
mod keys;
mod options;
mod status;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use access::{DisruptionBudget, Gateway, IngressOptions, NetworkRules, ParentRef};
pub use components::{
    Analytics, Auth, ClaimName, ConfigMapName, Functions, FunctionsSource, Imgproxy, Kong, Meta, Pooler,
    Postgrest, Realtime, StorageApi, Studio, image,
};
pub use dependencies::{Database, SecretReference, Storage};
pub use keys::{Jwt, JwtSecretRef};
pub use options::{Autoscaling, Options};
pub use status::{
    ComponentPhase, ComponentStatus, Dependencies, DependencyStatus, Endpoints, KeysStatus, Phase,
    SupabaseProjectStatus,
};

/// The finalizer. It is also the one of the operator that introduced this API.
pub const FINALIZER: &str = "supabase.strrl.dev/finalizer";

/// Annotations that a user sets and the operator only reads.
pub mod annotation {
    /// Any new value triggers a reconcile.
    pub const RECONCILE_AT: &str = "supabase.strrl.dev/reconcile-at";
    /// A new RFC 3339 time triggers a rotation of the signing keys and the API keys.
    pub const ROTATE_KEYS_AT: &str = "supabase.strrl.dev/rotate-keys-at";
}

/// Condition types of a `SupabaseProject`. Each component has its own in addition, such as `KongReady`.
pub mod condition {
    /// Every component is ready.
    pub const READY: &str = "Ready";
    /// The operator is rolling out a change.
    pub const PROGRESSING: &str = "Progressing";
    /// The gateway and the services behind it answer.
    pub const AVAILABLE: &str = "Available";
    /// A deployed component is not ready.
    pub const DEGRADED: &str = "Degraded";
    /// The operator ran a query on the database.
    pub const POSTGRESQL_CONNECTED: &str = "PostgreSQLConnected";
    /// The bucket answered a signed request.
    pub const S3_CONNECTED: &str = "S3Connected";
    /// The Services, the Ingress and the other network objects match the spec.
    pub const NETWORK_READY: &str = "NetworkReady";
    /// The keys and passwords exist.
    pub const SECRETS_READY: &str = "SecretsReady";
}

/// A complete Supabase.
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
    doc = "A complete Supabase on an existing PostgreSQL server and S3 bucket.",
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
    /// The name of the project in the dashboard.
    #[schemars(length(min = 1, max = 253), pattern("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub project_id: String,
    /// The PostgreSQL server.
    pub database: Database,
    /// The S3 bucket.
    pub storage: Storage,
    /// Kong, the API gateway in front of all services.
    #[serde(default)]
    pub kong: Kong,
    /// Sign-up, login and tokens (`GoTrue`).
    #[serde(default)]
    pub auth: Auth,
    /// Database changes, presence and broadcast messages over `WebSockets`.
    #[serde(default)]
    pub realtime: Realtime,
    /// The REST API of the database (`PostgREST`).
    #[serde(default)]
    pub postgrest: Postgrest,
    /// The file storage API.
    #[serde(default)]
    pub storage_api: StorageApi,
    /// The schema API that the dashboard uses (postgres-meta).
    #[serde(default)]
    pub meta: Meta,
    /// The dashboard (Studio).
    #[serde(default)]
    pub studio: Studio,
    /// Image transformations. Without it, images are served unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imgproxy: Option<Imgproxy>,
    /// Edge functions under `/functions/v1/`. Not installed by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub functions: Option<Functions>,
    /// A connection pooler for the database (Supavisor). Not installed by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pooler: Option<Pooler>,
    /// Logs for the dashboard (Logflare). Not installed by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analytics: Option<Analytics>,
    /// An Ingress for the API gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress: Option<IngressOptions>,
    /// An `HTTPRoute` of the Gateway API for the API gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<Gateway>,
    /// Creates `NetworkPolicies` that allow connections to the components only from each other and through the API
    /// gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_policy: Option<NetworkRules>,
    /// Creates a `PodDisruptionBudget` for each component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_disruption_budget: Option<DisruptionBudget>,
    /// JWTs and their signing keys.
    #[serde(default)]
    pub jwt: Jwt,
    /// What happens to the project's database objects when the project is deleted. `Retain` keeps them. `Delete` drops
    /// them with the users and files of the services, except what others use. The bucket stays in either case.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
    /// Stops reconciliation. Deletion of the object still works.
    #[serde(default)]
    pub suspend: bool,
}

/// What happens to the project's database objects when the project is deleted. `Retain` keeps everything. `Delete`
/// drops the logins, roles, schemas and extensions that the operator created for the project, including the data of its
/// services, and keeps everything that existed before or that others use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum DeletionPolicy {
    #[default]
    Retain,
    Delete,
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
        // Without a CA certificate in the spec, the system's CA certificates apply.
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
