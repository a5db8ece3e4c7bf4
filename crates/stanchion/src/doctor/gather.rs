//! Reads the snapshot for the checks, with the permissions of the current user.

use futures::future::join_all;
use jiff::Timestamp;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams};
use serde_json::{Value, json};

use super::scrape;
use super::snapshot::{Read, Served, Snapshot};
use crate::cluster::{Cluster, ClusterError, Unreadable};
use crate::run;
use crate::status::with_status;

/// The labels of an installation's objects. The chart sets the second on all of them, with any `nameOverride` and
/// `fullnameOverride`; the plain manifest and older releases have the first.
const LABELS: [&str; 2] = ["app.kubernetes.io/name=stanchion", PART];
/// The label that every installation of the chart has.
pub(super) const PART: &str = "app.kubernetes.io/part-of=stanchion";
const CERT_MANAGER: &str = "cert-manager.io";
/// The API groups of other operators that matter.
const GROUPS: [&str; 6] = [
    CERT_MANAGER,
    "helm.toolkit.fluxcd.io",
    "source.toolkit.fluxcd.io",
    "pgv2.percona.com",
    "redis.redis.opstreelabs.in",
    "elasticsearch.k8s.elastic.co",
];

/// Reads everything.
pub(super) async fn gather(
    cluster: &Cluster,
    operator_namespace: Option<&str>,
    now: Timestamp,
) -> Result<Snapshot, ClusterError> {
    let version = cluster.version().await?;
    let place = operator_namespace;
    let all = ListParams::default();
    let named = ListParams::default().fields(&format!("metadata.name={}", run::LEASE));
    let flux = ListParams::default().labels("app.kubernetes.io/part-of=flux");
    let (deployments, pods, leases, services, slices) = tokio::join!(
        installed(cluster, "apps", "Deployment", "deployments", place),
        installed(cluster, "", "Pod", "pods", place),
        list(
            cluster,
            "coordination.k8s.io",
            "v1",
            "Lease",
            "leases",
            place,
            &named
        ),
        installed(cluster, "", "Service", "services", place),
        installed(
            cluster,
            "discovery.k8s.io",
            "EndpointSlice",
            "endpointslices",
            place
        ),
    );
    let (crds, namespaces, flux, served, objects) = tokio::join!(
        list(
            cluster,
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            None,
            &all
        ),
        list(cluster, "", "v1", "Namespace", "namespaces", None, &all),
        list(cluster, "apps", "v1", "Deployment", "deployments", None, &flux),
        served(cluster),
        objects(cluster),
    );
    let (webhooks, rbac) = tokio::join!(webhooks(cluster, place), rbac(cluster, &all));
    let certificates = certificates(cluster, &served, place).await;
    let metrics = scrape::metrics(
        cluster,
        deployments.as_deref().unwrap_or_default(),
        pods.as_deref().unwrap_or_default(),
    )
    .await;
    Ok(Snapshot {
        now,
        version,
        operator_namespace: place.map(str::to_owned),
        crds,
        objects,
        namespaces,
        deployments,
        pods,
        leases,
        services,
        endpoint_slices: slices,
        webhooks,
        certificates,
        rbac,
        served,
        flux,
        metrics,
        contacts: Vec::new(),
    })
}

/// Objects of one kind, with their kind set: a list omits it.
async fn list(
    cluster: &Cluster,
    group: &str,
    version: &str,
    kind: &str,
    plural: &str,
    namespace: Option<&str>,
    params: &ListParams,
) -> Read<Vec<Value>> {
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(cluster.client.clone(), namespace, &resource),
        None => Api::all_with(cluster.client.clone(), &resource),
    };
    let listed = cluster.ask(api.list(params)).await?;
    let values = listed.items.into_iter().map(|object| {
        let mut value =
            serde_json::to_value(object).map_err(|error| Unreadable::Failed(error.to_string()))?;
        if let Some(fields) = value.as_object_mut() {
            fields.insert("kind".to_owned(), json!(kind));
        }
        Ok(value)
    });
    values.collect()
}

/// The objects of one kind that belong to an installation of the operator, each once.
async fn installed(
    cluster: &Cluster,
    group: &str,
    kind: &str,
    plural: &str,
    namespace: Option<&str>,
) -> Read<Vec<Value>> {
    let mut found: Vec<Value> = Vec::new();
    for label in LABELS {
        let params = ListParams::default().labels(label);
        let listed = list(cluster, group, "v1", kind, plural, namespace, &params).await?;
        let is_new = |object: &Value| {
            let uid = object.pointer("/metadata/uid");
            !found.iter().any(|known| known.pointer("/metadata/uid") == uid)
        };
        let new: Vec<Value> = listed.into_iter().filter(is_new).collect();
        found.extend(new);
    }
    Ok(found)
}

/// Our objects. Kinds that are not served have none; another check reports that.
async fn objects(cluster: &Cluster) -> Read<Vec<Value>> {
    let asked = with_status().iter().map(async |kind| {
        let listed = cluster.list(&cluster.api(&kind.resource)).await;
        (kind.resource.kind.clone(), listed)
    });
    let mut objects = Vec::new();
    for (kind, listed) in join_all(asked).await {
        match listed {
            Ok(list) => objects.extend(list.into_iter().map(|mut object| {
                if let Some(fields) = object.as_object_mut() {
                    fields.insert("kind".to_owned(), json!(kind));
                }
                object
            })),
            Err(Unreadable::NotServed) => {}
            Err(why) => return Err(why),
        }
    }
    Ok(objects)
}

/// The webhook configurations that our operators have registered, or the operator in this namespace.
async fn webhooks(cluster: &Cluster, namespace: Option<&str>) -> Read<Vec<Value>> {
    const GROUP: &str = "admissionregistration.k8s.io";
    let all = ListParams::default();
    let (validating, mutating) = tokio::join!(
        list(
            cluster,
            GROUP,
            "v1",
            "ValidatingWebhookConfiguration",
            "validatingwebhookconfigurations",
            None,
            &all
        ),
        list(
            cluster,
            GROUP,
            "v1",
            "MutatingWebhookConfiguration",
            "mutatingwebhookconfigurations",
            None,
            &all
        ),
    );
    let mut webhooks = validating?;
    webhooks.extend(mutating?);
    let only = namespace.map(run::registration_name);
    let groups: Vec<String> = stanchion_api::crds()
        .into_iter()
        .map(|crd| crd.spec.group)
        .collect();
    webhooks.retain(|webhook| {
        let name = webhook
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        // Ours by name, and by their rules.
        let rules = webhook["webhooks"]
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|webhook| {
                let rules = webhook["rules"].as_array().into_iter().flatten();
                rules.flat_map(|rule| rule["apiGroups"].as_array().into_iter().flatten())
            });
        let mut reviewed = rules.filter_map(Value::as_str);
        only.as_ref().is_none_or(|only| only == name)
            && name.starts_with("stanchion-")
            && reviewed.any(|group| groups.iter().any(|ours| ours == group))
    });
    Ok(webhooks)
}

/// The `Certificate`s of cert-manager. Without it, the operator makes its own, and nobody needs the permission to list them.
async fn certificates(
    cluster: &Cluster,
    served: &Read<Vec<Served>>,
    namespace: Option<&str>,
) -> Read<Vec<Value>> {
    let groups = served.as_ref().map_err(Clone::clone)?;
    if !groups.iter().any(|served| served.group == CERT_MANAGER) {
        return Ok(Vec::new());
    }
    installed(cluster, CERT_MANAGER, "Certificate", "certificates", namespace).await
}

async fn rbac(cluster: &Cluster, all: &ListParams) -> Read<Vec<Value>> {
    const GROUP: &str = "rbac.authorization.k8s.io";
    let (roles, bindings, cluster_roles, cluster_bindings) = tokio::join!(
        list(cluster, GROUP, "v1", "Role", "roles", None, all),
        list(cluster, GROUP, "v1", "RoleBinding", "rolebindings", None, all),
        list(cluster, GROUP, "v1", "ClusterRole", "clusterroles", None, all),
        list(
            cluster,
            GROUP,
            "v1",
            "ClusterRoleBinding",
            "clusterrolebindings",
            None,
            all
        ),
    );
    Ok([roles?, bindings?, cluster_roles?, cluster_bindings?].concat())
}

/// The served groups of other operators.
async fn served(cluster: &Cluster) -> Read<Vec<Served>> {
    let groups = cluster.ask(cluster.client.list_api_groups()).await?;
    let mut served = Vec::new();
    for group in groups
        .groups
        .iter()
        .filter(|group| GROUPS.contains(&group.name.as_str()))
    {
        let mut resources = Vec::new();
        for version in &group.versions {
            let listed = cluster
                .ask(cluster.client.list_api_group_resources(&version.group_version))
                .await?;
            resources.extend(listed.resources.into_iter().map(|resource| resource.name));
        }
        served.push(Served {
            group: group.name.clone(),
            resources,
        });
    }
    Ok(served)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed_answers;

    /// With two installations, the configuration of the other belongs to an operator that is not read.
    #[tokio::test]
    async fn with_a_namespace_only_the_webhooks_of_its_operator_are_read() {
        let configuration = |name: &str| json!({ "metadata": { "name": name }, "webhooks": [{ "rules": [{ "apiGroups": ["db.example.com"] }] }] });
        let listed = json!({ "metadata": {}, "items": [configuration("stanchion-ops"), configuration("stanchion-team")] });
        let (listed, none) = (
            listed.to_string(),
            json!({ "metadata": {}, "items": [] }).to_string(),
        );
        let path = "/apis/admissionregistration.k8s.io/v1";
        let validating = format!("{path}/validatingwebhookconfigurations?");
        let mutating = format!("{path}/mutatingwebhookconfigurations?");
        let cluster = fixed_answers::cluster(&[(&validating, &listed), (&mutating, &none)]).await;
        for (namespace, expected) in [(None, 2), (Some("ops"), 1), (Some("elsewhere"), 0)] {
            let found = webhooks(&cluster, namespace).await.unwrap();
            assert_eq!(found.len(), expected, "{namespace:?}: {found:?}");
        }
    }
}
