//! Elasticsearch, run by Elastic's operator. The chart has no value for it: the status has what GitLab's settings need.

use kube::ResourceExt as _;
use kube::core::DynamicObject;
use serde_json::{Value, json};
use stanchion_api::gitlab::ElasticsearchAddress;

use super::kinds::{self, ELASTICSEARCH};
use super::pods::claim;
use super::request::ElasticsearchRequest;
use super::{Readiness, observed, text};

/// The version to create: the newest of 8 that was known when this was written. It was not tested with GitLab.
const VERSION: &str = "8.17.0";
/// Default disk size of a node.
const DISK: &str = "20Gi";

/// The name of an instance's Elasticsearch.
pub(crate) fn name(instance: &str) -> String {
    format!("{instance}-es")
}

pub fn object(request: &ElasticsearchRequest<'_>) -> Value {
    let mut pod = json!({});
    request.placement.place(&mut pod);
    let mut nodes = json!({
        "name": "default",
        "count": request.nodes,
        // Otherwise each node would need a kernel setting that only the cluster's administrator can make.
        "config": { "node.store.allow_mmap": false },
        "volumeClaimTemplates": [{
            "metadata": { "name": "elasticsearch-data" },
            "spec": claim(request.storage, DISK),
        }],
    });
    if pod != json!({}) {
        // A template without its container is refused; Elastic's operator fills in the rest.
        pod["containers"] = json!([{ "name": "elasticsearch" }]);
        nodes["podTemplate"] = json!({ "spec": pod });
    }
    let spec = json!({ "version": VERSION, "nodeSets": [nodes] });
    kinds::object(&ELASTICSEARCH, &name(request.instance), &spec)
}

/// Whether it can be used. A single node is never green, because there is no other node for replicas.
pub fn readiness(object: &DynamicObject) -> Readiness {
    let name = object.name_any();
    match (text(object, "/status/phase"), text(object, "/status/health")) {
        _ if !observed(object) => Readiness::NotYet(format!(
            "Elasticsearch {name}: its operator has not seen the last change yet"
        )),
        (Some("Ready"), Some("green" | "yellow")) => Readiness::Ready,
        (Some(phase), health) => Readiness::NotYet(format!(
            "Elasticsearch {name} is in phase {phase}, its health is {}",
            health.unwrap_or("unknown")
        )),
        (None, _) => Readiness::NotYet(format!(
            "Elasticsearch {name} has no status yet: does its operator run?"
        )),
    }
}

pub fn address(instance: &str, namespace: &str) -> ElasticsearchAddress {
    let name = name(instance);
    ElasticsearchAddress {
        url: format!("https://{name}-es-http.{namespace}.svc:9200"),
        password_secret: format!("{name}-es-elastic-user"),
        ca_secret: format!("{name}-es-http-certs-public"),
    }
}

#[cfg(test)]
mod tests {
    use insta::{assert_debug_snapshot, assert_yaml_snapshot};

    use super::*;
    use crate::backends::request::tests::{fullest, live, requests, spec};

    #[test]
    fn the_smallest() {
        let spec = spec(json!({}));
        assert_yaml_snapshot!(object(&requests(&spec).elasticsearch()));
    }

    #[test]
    fn the_fullest() {
        assert_yaml_snapshot!(object(&requests(&fullest()).elasticsearch()));
    }

    #[test]
    fn where_it_is() {
        assert_debug_snapshot!(address("shop", "gl"));
    }

    #[test]
    fn one_node_alone_is_never_green() {
        let of = |status: Value| {
            readiness(&live(
                json!({ "metadata": { "name": "shop-es", "generation": 2 }, "status": status }),
            ))
        };
        let not_yet = |why: &str| Readiness::NotYet(format!("Elasticsearch shop-es {why}"));
        assert_eq!(
            of(json!({ "phase": "Ready", "health": "yellow", "observedGeneration": 2 })),
            Readiness::Ready
        );
        assert_eq!(
            of(json!({ "phase": "Ready", "health": "green" })),
            Readiness::Ready
        );
        assert_eq!(
            of(json!({ "phase": "Ready", "health": "red" })),
            not_yet("is in phase Ready, its health is red")
        );
        assert_eq!(
            of(json!({ "phase": "ApplyingChanges" })),
            not_yet("is in phase ApplyingChanges, its health is unknown")
        );
        assert_eq!(
            of(json!({ "phase": "Ready", "health": "green", "observedGeneration": 1 })),
            Readiness::NotYet("Elasticsearch shop-es: its operator has not seen the last change yet".into())
        );
        assert_eq!(
            of(json!({})),
            not_yet("has no status yet: does its operator run?")
        );
    }
}
