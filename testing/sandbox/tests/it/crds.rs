//! CRDs for the tests.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use serde_json::Value;

/// Creates a CRD, and waits until it is served.
pub(crate) async fn define(client: &kube::Client, crd: Value) {
    let crd: CustomResourceDefinition = serde_json::from_value(crd).unwrap();
    let name = crd.metadata.name.clone().unwrap();
    let crds = Api::all(client.clone());
    crds.create(&PostParams::default(), &crd).await.unwrap();
    await_condition(crds, &name, conditions::is_crd_established())
        .await
        .unwrap();
}
