//! The pods of the chart and those of `stanchion manifest` have two sources: this compares them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{documents, helm, of_kind, template};
use crate::operator::stdout;

/// What one of them has and the other does not, each with its reason.
const DIFFERENCES: &[(&str, &str)] = &[
    (
        "/metadata",
        "the labels of Helm; the annotation is for kubectl logs",
    ),
    (
        "/spec/containers/0/imagePullPolicy",
        "a value of the chart; its default is Kubernetes' own for a tag",
    ),
    (
        "/spec/containers/0/env",
        "the manifest has one name for the Secret of the default server, and the chart mounts a Secret of any name as a file",
    ),
    (
        "/spec/securityContext/fsGroup",
        "the user may then read the files that the chart mounts",
    ),
    (
        "/spec/terminationGracePeriodSeconds",
        "a value of the chart; its default is Kubernetes' own",
    ),
    (
        "/spec/topologySpreadConstraints/0/labelSelector",
        "the selector of the release has its name in addition",
    ),
];

/// Arguments that only one of them gives, by their names.
const ARGUMENTS: &[(&str, &str)] = &[
    ("--webhook-service", "the manifest's Service has the default name"),
    (
        "--controllers",
        "the manifest gives none: all of them. The chart always lists them",
    ),
    (
        "--operator-namespace",
        "the chart always gives it; the manifest only if it is not the default",
    ),
];

fn remove(value: &mut Value, pointer: &str) -> Option<Value> {
    let (parent, last) = pointer.rsplit_once('/').unwrap();
    value.pointer_mut(parent)?.as_object_mut()?.remove(last)
}

#[test]
fn the_pods_of_the_chart_are_those_of_the_manifest() {
    let Some(helm) = helm("workload") else { return };
    let manifest = documents(&stdout([
        "manifest",
        "--image",
        "registry.example.com/stanchion:v1",
    ]));
    let image = "image.repository=registry.example.com/stanchion,image.tag=v1";
    let objects = template(&helm, &["--set", image]);
    let pod = |objects: &[Value]| of_kind(objects, "Deployment")[0]["spec"]["template"].clone();
    let (mut chart, mut program) = (pod(&objects), pod(&manifest));

    let words = |pod: &mut Value| -> BTreeSet<String> {
        let list = remove(pod, "/spec/containers/0/args").unwrap();
        let words = list.as_array().unwrap().iter();
        words.map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    let (of_chart, of_program) = (words(&mut chart), words(&mut program));
    let other: BTreeSet<&str> = of_chart
        .symmetric_difference(&of_program)
        .map(|word| word.split('=').next().unwrap())
        .collect();
    for word in &other {
        assert!(
            ARGUMENTS.iter().any(|(known, _)| known == word),
            "{word} is in one of {of_chart:?} and {of_program:?}"
        );
    }

    for (pointer, reason) in DIFFERENCES {
        let (one, other) = (remove(&mut chart, pointer), remove(&mut program, pointer));
        assert_ne!(one, other, "{pointer} differs no longer: {reason}");
    }
    assert_eq!(chart, program);
    assert_eq!(
        of_kind(&objects, "Deployment")[0]["spec"]["replicas"],
        of_kind(&manifest, "Deployment")[0]["spec"]["replicas"]
    );

    // The Service leads to the same port, and the policy opens it and no other.
    let service = |objects: &[Value]| of_kind(objects, "Service")[0]["spec"]["ports"].clone();
    assert_eq!(service(&objects), service(&manifest));
    let open = |objects: &[Value]| of_kind(objects, "NetworkPolicy")[0]["spec"]["ingress"].clone();
    assert_eq!(open(&objects), open(&manifest));
    assert_ne!(open(&objects), json!([]));
}
