//! Owner references, and what is deleted with a project.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, Service};
use k8s_openapi::api::networking::v1::Ingress;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::DeleteParams;
use kube::{Api, ResourceExt as _};
use serde_json::json;
use stanchion_api::SupabaseProject;

use super::{COMPONENTS, shop};

#[tokio::test]
async fn a10_children_belong_to_their_project_and_go_with_it() {
    let spec = json!({ "ingress": { "enabled": true, "host": "shop.example.com" } });
    let (env, _operator, project) = shop(spec).await;
    // As if the original had added it.
    let finalizer = json!({ "metadata": { "finalizers": ["supabase.strrl.dev/finalizer"] } });
    env.patch::<SupabaseProject>("shop", finalizer).await;
    let owned = |what: &str, owners: &[OwnerReference]| {
        let [owner] = owners else {
            panic!("{what} has one owner: {owners:?}")
        };
        assert_eq!(
            (owner.kind.as_str(), owner.name.as_str(), owner.controller),
            ("SupabaseProject", "shop", Some(true)),
            "{what}"
        );
        assert_eq!(Some(&owner.uid), project.uid().as_ref(), "{what}");
    };
    for (name, _) in COMPONENTS {
        let child = format!("shop-{name}");
        owned(&child, env.get::<Deployment>(&child).await.owner_references());
        owned(&child, env.get::<Service>(&child).await.owner_references());
    }
    let (map, keys) = ("shop-kong-config", "shop-jwt");
    owned(map, env.get::<ConfigMap>(map).await.owner_references());
    owned(keys, env.get::<Secret>(keys).await.owner_references());
    owned("shop", env.get::<Ingress>("shop").await.owner_references());

    env.delete::<SupabaseProject>("shop").await;
    let wait = env.wait();
    Box::pin(wait.gone(&env.api::<SupabaseProject>(), "shop")).await;
    for (name, _) in COMPONENTS {
        let child = format!("shop-{name}");
        wait.gone(&env.api::<Deployment>(), &child).await;
        wait.gone(&env.api::<Service>(), &child).await;
    }
    wait.gone(&env.api::<ConfigMap>(), map).await;
    wait.gone(&env.api::<Secret>(), keys).await;
    wait.gone(&env.api::<Ingress>(), "shop").await;
    // The user's Secrets and everything in the database stay.
    env.get::<Secret>("db").await;
    env.get::<Secret>("s3").await;
    assert_eq!(
        env.db_env
            .scalar("SELECT count(*) FROM pg_roles WHERE rolname = 'authenticator'")
            .await,
        "1"
    );
}

/// The Secrets are deleted before the project, and the webhook is called for everything: neither blocks the deletion.
#[tokio::test]
async fn b06_a_namespace_with_a_project_in_it_comes_to_its_end() {
    let (env, _operator, _) = shop(json!({})).await;
    let served = env.serve().await;
    let finalizer = json!({ "metadata": { "finalizers": ["supabase.strrl.dev/finalizer"] } });
    env.patch::<SupabaseProject>("shop", finalizer).await;
    env.delete::<Secret>("db").await;
    env.delete::<Secret>("s3").await;
    let namespaces: Api<Namespace> = Api::all(env.client.clone());
    namespaces
        .delete(&env.namespace, &DeleteParams::default())
        .await
        .unwrap();
    env.wait().gone(&namespaces, &env.namespace).await;
    served.unregister().await;
}
