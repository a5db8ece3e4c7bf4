//! The manifests of the operator: its namespace, its pods, its Service.

use serde_json::{Value, json};

use crate::rbac;
use crate::run::{CERTIFICATE, HEALTH_PORT, SERVICE, SERVICE_PORT, WEBHOOK_PORT};

/// The label of its pods.
const NAME: &str = "app.kubernetes.io/name";
const OPERATOR: &str = "stanchion";
/// An unprivileged user.
const USER: u32 = 65532;
/// The Secret with the default server for `PostgresUser` objects, if there is one.
const INSTANCE: &str = "stanchion-postgres";

/// The operator's own objects.
pub(super) struct Workload<'a> {
    image: &'a str,
    replicas: u16,
    permissions: &'a rbac::Arguments,
}

impl<'a> Workload<'a> {
    pub(super) fn new(image: &'a str, replicas: u16, permissions: &'a rbac::Arguments) -> Self {
        Self {
            image,
            replicas,
            permissions,
        }
    }

    /// The namespace. Its pods meet the strictest pod security standard, and no other pods may run there.
    pub(super) fn namespace(&self) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {
                "name": self.permissions.operator_namespace(),
                "labels": { NAME: OPERATOR, "pod-security.kubernetes.io/enforce": "restricted" },
            },
        })
    }

    /// The Deployment, the Service and the `PodDisruptionBudget`.
    pub(super) fn pods(&self) -> Vec<Value> {
        let mut objects = vec![self.service(), self.network_policy(), self.deployment()];
        if self.replicas > 1 {
            let spec = json!({ "maxUnavailable": 1, "selector": { "matchLabels": labels() } });
            objects.push(self.object("policy/v1", "PodDisruptionBudget", &spec));
        }
        objects
    }

    fn object(&self, version: &str, kind: &str, spec: &Value) -> Value {
        let namespace = self.permissions.operator_namespace();
        json!({
            "apiVersion": version, "kind": kind,
            "metadata": { "name": SERVICE, "namespace": namespace, "labels": labels() },
            "spec": spec,
        })
    }

    /// The API server calls webhooks here, and a scraper with a token reads metrics.
    fn service(&self) -> Value {
        let ports = json!([{ "name": "https", "port": SERVICE_PORT, "targetPort": "https" }]);
        self.object("v1", "Service", &json!({ "selector": labels(), "ports": ports }))
    }

    /// Allows everyone to reach the port of webhooks and metrics, because the addresses of API servers are not known,
    /// and nobody to reach any other port. Webhooks have paths that only the API server knows, metrics need a token,
    /// and the health checks come from the node, which no policy blocks.
    fn network_policy(&self) -> Value {
        let spec = json!({
            "podSelector": { "matchLabels": labels() },
            "policyTypes": ["Ingress"],
            "ingress": [{ "ports": [{ "port": "https", "protocol": "TCP" }] }],
        });
        self.object("networking.k8s.io/v1", "NetworkPolicy", &spec)
    }

    /// For the Prometheus operator. Prometheus uses its own token, whose account must be allowed to get `/metrics`.
    pub(super) fn service_monitor(&self) -> Value {
        let namespace = self.permissions.operator_namespace();
        let endpoint = json!({
            "port": "https", "scheme": "https",
            "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
            "tlsConfig": {
                "serverName": format!("{SERVICE}.{namespace}.svc"),
                "ca": { "secret": { "name": CERTIFICATE, "key": "ca.crt" } },
            },
        });
        let spec = json!({ "selector": { "matchLabels": labels() }, "endpoints": [endpoint] });
        self.object("monitoring.coreos.com/v1", "ServiceMonitor", &spec)
    }

    fn deployment(&self) -> Value {
        let pod = json!({
            "serviceAccountName": self.permissions.service_account_name(),
            "securityContext": {
                "runAsNonRoot": true, "runAsUser": USER, "runAsGroup": USER,
                "seccompProfile": { "type": "RuntimeDefault" },
            },
            "containers": [self.container()],
            "topologySpreadConstraints": [{
                "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": { "matchLabels": labels() },
            }],
        });
        let spec = json!({
            "replicas": self.replicas,
            "selector": { "matchLabels": labels() },
            "template": { "metadata": { "labels": labels() }, "spec": pod },
        });
        self.object("apps/v1", "Deployment", &spec)
    }

    fn container(&self) -> Value {
        let probe = |path: &str| json!({ "httpGet": { "path": path, "port": "health" } });
        json!({
            "name": "operator",
            "image": self.image,
            "args": self.arguments(),
            "env": [{
                "name": "STANCHION_POSTGRES_URL",
                "valueFrom": { "secretKeyRef": { "name": INSTANCE, "key": "url", "optional": true } },
            }],
            "ports": [
                { "name": "health", "containerPort": HEALTH_PORT },
                { "name": "https", "containerPort": WEBHOOK_PORT },
            ],
            "livenessProbe": probe("/livez"),
            "readinessProbe": probe("/readyz"),
            // A thousand projects need 64 MB; the rest is for lists that arrive at once.
            "resources": {
                "requests": { "cpu": "50m", "memory": "64Mi" },
                "limits": { "memory": "256Mi" },
            },
            "securityContext": {
                "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                "capabilities": { "drop": ["ALL"] },
            },
        })
    }

    fn arguments(&self) -> Vec<String> {
        let mut arguments = vec![
            "run".to_owned(),
            "--leader-elect".to_owned(),
            "--log-format=json".to_owned(),
            format!("--health-addr=0.0.0.0:{HEALTH_PORT}"),
            format!("--webhook-addr=0.0.0.0:{WEBHOOK_PORT}"),
        ];
        arguments.extend(self.permissions.scope());
        arguments
    }
}

fn labels() -> Value {
    json!({ NAME: OPERATOR })
}
