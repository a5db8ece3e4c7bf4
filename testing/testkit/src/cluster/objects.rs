//! Creates objects in a cluster: namespaces, CRDs, manifests.

use std::time::Duration;

use k8s_openapi::{
    api::core::v1::Namespace, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt as _,
    api::{DynamicObject, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
    discovery::{self, Scope},
    runtime::wait::{Condition as _, conditions},
};

use super::Cluster;
use crate::{unique, wait};

const ESTABLISHED_DEADLINE: Duration = Duration::from_mins(1);

impl Cluster {
    /// Creates a namespace for one test. It is deleted with the cluster, so no test waits for its deletion.
    pub async fn namespace(&self, prefix: &str) -> String {
        let name = unique::name(&format!("{prefix}-"));
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(name.clone());
        let namespaces: Api<Namespace> = Api::all(self.client().await);
        namespaces
            .create(&PostParams::default(), &namespace)
            .await
            .expect("create a namespace");
        name
    }

    /// Applies CRDs and waits until they are established.
    pub async fn install_crds(&self, crds: impl IntoIterator<Item = CustomResourceDefinition>) {
        let api: Api<CustomResourceDefinition> = Api::all(self.client().await);
        for crd in crds {
            let name = crd.name_any();
            api.patch(&name, &PatchParams::apply("testkit").force(), &Patch::Apply(&crd))
                .await
                .unwrap_or_else(|error| panic!("CRD {name}: {error}"));
            let established =
                |crd: &CustomResourceDefinition| conditions::is_crd_established().matches_object(Some(crd));
            wait::until(&api, &name, ESTABLISHED_DEADLINE, established).await;
        }
    }

    /// Applies every object of a YAML stream as administrator, in `namespace` if the object has none.
    pub async fn apply(&self, manifest: &str, namespace: &str) -> Vec<DynamicObject> {
        let objects: Vec<DynamicObject> =
            serde_saphyr::from_multiple(manifest).unwrap_or_else(|error| panic!("{error}\n{manifest}"));
        let client = self.client().await;
        let mut applied = Vec::new();
        for object in objects {
            let types = object.types.clone().unwrap_or_default();
            let name = object.name_any();
            let what = format!("{} {name}", types.kind);
            let gvk = GroupVersionKind::try_from(types).unwrap_or_else(|error| panic!("{what}: {error}"));
            let (resource, capabilities) = discovery::pinned_kind(&client, &gvk)
                .await
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            let api: Api<DynamicObject> = match capabilities.scope {
                Scope::Cluster => Api::all_with(client.clone(), &resource),
                Scope::Namespaced => {
                    let namespace = object.namespace().unwrap_or_else(|| namespace.to_owned());
                    Api::namespaced_with(client.clone(), &namespace, &resource)
                }
            };
            let patched = api
                .patch(
                    &name,
                    &PatchParams::apply("testkit").force(),
                    &Patch::Apply(&object),
                )
                .await;
            applied.push(patched.unwrap_or_else(|error| panic!("{what}: {error}")));
        }
        applied
    }
}
