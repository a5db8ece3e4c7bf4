//! The objects of the scenario, and what happens to them.

use rand::Rng as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use serde_json::{Value, json};

use super::super::SECRET;
use super::PROJECTS;
use crate::network::bucket;
use crate::scenario::{CANARY, Kind, Operation};

pub(super) const PROJECT: Kind = Kind {
    api_version: "supabase.strrl.dev/v1alpha1",
    kind: "SupabaseProject",
    plural: "supabaseprojects",
};
pub(super) const DEPLOYMENT: Kind = Kind {
    api_version: "apps/v1",
    kind: "Deployment",
    plural: "deployments",
};
pub(super) const SERVICE: Kind = Kind {
    api_version: "v1",
    kind: "Service",
    plural: "services",
};
pub(super) const INGRESS: Kind = Kind {
    api_version: "networking.k8s.io/v1",
    kind: "Ingress",
    plural: "ingresses",
};
pub(super) const NETWORK_POLICY: Kind = Kind {
    api_version: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    plural: "networkpolicies",
};
pub(super) const BUDGET: Kind = Kind {
    api_version: "policy/v1",
    kind: "PodDisruptionBudget",
    plural: "poddisruptionbudgets",
};
pub(super) const AUTOSCALER: Kind = Kind {
    api_version: "autoscaling/v2",
    kind: "HorizontalPodAutoscaler",
    plural: "horizontalpodautoscalers",
};

pub(super) fn anything(name: &str, random: &mut StdRng) -> Operation {
    match random.random_range(0..20) {
        0..6 => Operation::Apply(PROJECT, project(name, random)),
        6 => Operation::Delete(PROJECT, name.to_owned()),
        7 => {
            let at = format!("2030-01-01T00:{:02}:00Z", random.random_range(0..60));
            let patch = json!({ "metadata": { "annotations": { "supabase.strrl.dev/rotate-keys-at": at } } });
            Operation::Merge(PROJECT, name.to_owned(), patch)
        }
        8 => Operation::Delete(SECRET, format!("{name}-jwt")),
        9 => {
            let lost = ["database-password-auth", "anon-key", "jwt-secret", "signing-key"].choose(random);
            let patch = json!({ "data": { *lost.unwrap_or(&"anon-key"): null } });
            Operation::Merge(SECRET, format!("{name}-jwt"), patch)
        }
        10 => Operation::Apply(
            SECRET,
            storage(random.random_bool(0.7), random.random_range(0..100)),
        ),
        11 => Operation::Delete(DEPLOYMENT, format!("{name}-auth")),
        12 => {
            let patch = json!({ "spec": { "replicas": 7 } });
            Operation::Merge(DEPLOYMENT, format!("{name}-postgrest"), patch)
        }
        13 => Operation::Outside(json!({ "drop": name })),
        14 => Operation::Outside(json!({ "create": name })),
        15 => {
            let health = ["down", "silent", "up"].choose(random);
            Operation::Outside(json!({ "bucket": health }))
        }
        _ => {
            let health = ["down", "down", "silent", "up"].choose(random);
            Operation::Outside(json!({ "health": health }))
        }
    }
}

/// What a project has in its database follows from its name: logins of components that are turned off stay.
pub(super) fn project(name: &str, random: &mut StdRng) -> Value {
    let image = ["supabase/gotrue:v2.196.0", "supabase/gotrue:v2.197.0"].choose(random);
    let mut spec = json!({
        "projectId": name,
        "database": {
            "secretRef": { "name": format!("db-{name}") }, "sslMode": "disable",
            "maxConnections": random.random_range(1..30),
        },
        "storage": { "secretRef": { "name": "s3" } },
        "auth": { "image": image, "replicas": random.random_range(0..3) },
        "studio": { "enabled": random.random::<bool>() },
        "deletionPolicy": "Delete",
        "suspend": false,
    });
    if random.random_bool(0.1) {
        spec["suspend"] = json!(true);
    }
    if name == PROJECTS[0] && random.random_bool(0.3) {
        spec["deletionPolicy"] = json!("Retain");
    }
    if name != PROJECTS[0] {
        spec["pooler"] = json!({});
    }
    if random.random_bool(0.2) {
        spec["auth"]["serviceAccountName"] = json!("default");
    }
    if random.random_bool(0.3) {
        spec["imgproxy"] = json!({});
    }
    if random.random_bool(0.3) {
        spec["ingress"] = json!({ "enabled": true, "host": format!("{name}.example.com") });
    }
    if random.random_bool(0.3) {
        spec["networkPolicy"] = json!({});
    }
    if random.random_bool(0.3) {
        spec["podDisruptionBudget"] = json!({ "maxUnavailable": random.random_range(1..3) });
    }
    json!({ "apiVersion": PROJECT.api_version, "kind": PROJECT.kind, "metadata": { "name": name }, "spec": spec })
}

/// The Secret of the bucket, with the key that it knows, or with another one.
pub(super) fn storage(known: bool, number: u32) -> Value {
    let id = if known { bucket::ACCESS_KEY } else { "unknown" };
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s3" },
        "stringData": {
            "endpoint": format!("http://127.0.0.1:{}", bucket::PORT), "region": "eu-1", "bucket": "files",
            "accessKeyId": id, "secretAccessKey": format!("{CANARY}-{number}"),
        },
    })
}
