//! `stanchion crds`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt as _;
use stanchion_testkit::cluster::Cluster;
use stanchion_testkit::scratch::Scratch;

use crate::operator::stdout;

fn definitions(yaml: &str) -> Vec<CustomResourceDefinition> {
    serde_saphyr::from_multiple(yaml).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_stream_and_the_files_are_the_definitions_of_the_api() {
    let printed = definitions(&stdout(["crds"]));
    assert_eq!(printed, stanchion_api::crds());

    let scratch = Scratch::new("stanchion-crds-").unwrap();
    let folder = scratch.path().join("a/new/folder");
    let said = stdout(["crds".as_ref(), "--output".as_ref(), folder.as_os_str()]);
    assert!(said.is_empty(), "{said}");
    for crd in &printed {
        let file = folder.join(format!("{}.yaml", crd.name_any()));
        let written = definitions(&std::fs::read_to_string(file).unwrap());
        assert_eq!(written.as_slice(), std::slice::from_ref(crd));
    }
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), printed.len());
}

#[tokio::test]
async fn kubectl_takes_them_without_a_warning() {
    let cluster = Cluster::shared().await;
    let Some(kubectl) = cluster.kubectl() else {
        return;
    };
    // With server-side apply: other tests define the same kinds at the same time.
    let arguments = [
        "apply",
        "--server-side",
        "--force-conflicts",
        "--dry-run=server",
        "--validate=strict",
        "--warnings-as-errors",
        "-f",
        "-",
    ];
    let said = kubectl.run_with(&arguments, &stdout(["crds"])).await;
    let said = said.unwrap();
    assert_eq!(said.lines().count(), stanchion_api::crds().len(), "{said}");
}
