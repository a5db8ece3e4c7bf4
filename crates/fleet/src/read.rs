//! Reads from the cluster, with the permissions of the current user.

use futures::future::join_all;
use kube::ResourceExt as _;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use serde::Serialize;
use serde_json::Value;

use crate::cluster::{Cluster, Unreadable};
use crate::kinds::Kind;

/// The kinds of children: group, version, kind, plural. Only their metadata is read.
const CHILDREN: &[(&str, &str, &str, &str)] = &[
    ("apps", "v1", "Deployment", "deployments"),
    ("apps", "v1", "StatefulSet", "statefulsets"),
    ("batch", "v1", "Job", "jobs"),
    ("", "v1", "Service", "services"),
    ("", "v1", "Secret", "secrets"),
    ("", "v1", "ConfigMap", "configmaps"),
    ("networking.k8s.io", "v1", "Ingress", "ingresses"),
    ("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies"),
    ("gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes"),
    (
        "autoscaling",
        "v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
    ),
    ("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    ("helm.toolkit.fluxcd.io", "v2", "HelmRelease", "helmreleases"),
    (
        "pgroles.io",
        "v1alpha1",
        "PostgresPolicyPlan",
        "postgrespolicyplans",
    ),
];

/// A kind that could not be read, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unread {
    /// The plural name of the kind.
    pub kind: String,
    /// The cause.
    pub why: Unreadable,
}

/// One object with its children and events.
#[derive(Clone, Debug)]
pub struct Gathered {
    pub kind: Kind,
    pub object: Value,
    /// Kind and metadata.
    pub children: Vec<(String, Value)>,
    pub events: Vec<Value>,
    /// What could not be read.
    pub unreadable: Vec<Unread>,
}

/// All objects of these kinds.
pub async fn all(cluster: &Cluster, kinds: &[Kind]) -> (Vec<(Kind, Value)>, Vec<Unread>) {
    let asked = kinds.iter().map(async |kind| {
        let api = cluster.api(&kind.resource);
        (kind, cluster.list(&api).await)
    });
    let (mut objects, mut unreadable) = (Vec::new(), Vec::new());
    for (kind, answer) in join_all(asked).await {
        match answer {
            Ok(list) => objects.extend(list.into_iter().map(|object| (kind.clone(), object))),
            Err(why) => unreadable.push(Unread {
                kind: kind.plural().to_owned(),
                why,
            }),
        }
    }
    (objects, unreadable)
}

/// One object, its children and its events.
pub async fn one(cluster: &Cluster, kind: &Kind, name: &str) -> Result<Gathered, String> {
    let Some(namespace) = cluster.namespace.as_deref() else {
        return Err(format!(
            "name the namespace of {}/{name} with -n instead of -A",
            kind.plural()
        ));
    };
    let full = format!("{} {namespace}/{name}", kind.resource.kind);
    let asked = cluster.get(&cluster.api(&kind.resource), name).await;
    let object = asked.map_err(|why| match why {
        Unreadable::NotServed => format!("{full} does not exist, or the cluster does not serve its kind"),
        Unreadable::Forbidden => format!("{full}: you may not get it"),
        Unreadable::Failed(why) => format!("{full}: {why}"),
    })?;
    let uid = object.uid().unwrap_or_default();
    let mut unreadable = Vec::new();
    let asked = CHILDREN.iter().map(|(group, version, of, plural)| {
        let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, of), plural);
        children(cluster, namespace, resource, &uid)
    });
    let mut found = Vec::new();
    for ((_, _, kind, plural), answer) in CHILDREN.iter().zip(join_all(asked).await) {
        match answer {
            Ok(list) => found.extend(list.into_iter().map(|child| ((*kind).to_owned(), child))),
            // A kind that is not served has no objects.
            Err(Unreadable::NotServed) => {}
            Err(why) => unreadable.push(Unread {
                kind: (*plural).to_owned(),
                why,
            }),
        }
    }
    let events = match events(cluster, namespace, &uid).await {
        Ok(events) => events,
        Err(why) => {
            unreadable.push(Unread {
                kind: "events".to_owned(),
                why,
            });
            Vec::new()
        }
    };
    let object = serde_json::to_value(object).map_err(|error| error.to_string())?;
    Ok(Gathered {
        kind: kind.clone(),
        object,
        children: found,
        events,
        unreadable,
    })
}

/// The metadata of the objects of a kind that this object owns.
async fn children(
    cluster: &Cluster,
    namespace: &str,
    resource: ApiResource,
    owner: &str,
) -> Result<Vec<Value>, Unreadable> {
    let api: Api<DynamicObject> = Api::namespaced_with(cluster.client.clone(), namespace, &resource);
    let listed = cluster.ask(api.list_metadata(&ListParams::default())).await?;
    let of_this = listed.items.into_iter().filter(|child| {
        let owners = child.metadata.owner_references.iter().flatten();
        owners.into_iter().any(|reference| reference.uid == owner)
    });
    of_this
        .map(|child| serde_json::to_value(child.metadata))
        .collect::<Result<_, _>>()
        .map_err(|error| Unreadable::Failed(error.to_string()))
}

async fn events(cluster: &Cluster, namespace: &str, uid: &str) -> Result<Vec<Value>, Unreadable> {
    let gvk = GroupVersionKind::gvk("events.k8s.io", "v1", "Event");
    let resource = ApiResource::from_gvk_with_plural(&gvk, "events");
    let api: Api<DynamicObject> = Api::namespaced_with(cluster.client.clone(), namespace, &resource);
    let about = ListParams::default().fields(&format!("regarding.uid={uid}"));
    let list = cluster.ask(api.list(&about)).await?;
    list.items
        .into_iter()
        .map(serde_json::to_value)
        .collect::<Result<_, _>>()
        .map_err(|error| Unreadable::Failed(error.to_string()))
}
