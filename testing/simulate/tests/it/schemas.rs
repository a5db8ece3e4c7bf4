//! What the API server accepts, the controllers can read: for every kind, values from its schema.

use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stanchion_api::{GitlabInstance, PostgresInstance, PostgresPolicy, PostgresUser, SupabaseProject};
use stanchion_sandbox::Sandbox;
use stanchion_simulate::generate;

/// How many changes of each kind.
const CHANGES: usize = 400;

/// Changes one field of the example after the other; what is accepted must be readable.
async fn is_read<K: DeserializeOwned>(kind: &str, example: Value) {
    let sandbox = Sandbox::builder()
        .seed(1)
        .workloads(None)
        .rbac(false)
        .start()
        .unwrap();
    let client = sandbox.client();
    let definition = stanchion_api::crds()
        .into_iter()
        .find(|crd| crd.spec.names.kind == kind)
        .unwrap();
    let definitions: Api<_> = Api::all(client.clone());
    definitions
        .create(&PostParams::default(), &definition)
        .await
        .unwrap();
    let version = &definition.spec.versions[0].name;
    let gvk = GroupVersionKind::gvk(&definition.spec.group, version, kind);
    let resource = ApiResource::from_gvk_with_plural(&gvk, &definition.spec.names.plural);
    let objects: Api<DynamicObject> = Api::namespaced_with(client, "default", &resource);
    while objects.get_opt("none").await.is_err() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let schema = generate::spec_of(&definition);
    let (mut random, mut accepted) = (StdRng::seed_from_u64(1), 0);
    for number in 0..CHANGES {
        let mut spec = example.clone();
        let fields: Vec<String> = (0..=number % 3)
            .map(|_| generate::change(&schema, &mut spec, &mut random))
            .collect();
        let object: DynamicObject = serde_json::from_value(json!({
            "apiVersion": resource.api_version, "kind": kind, "metadata": { "name": "it" }, "spec": spec,
        }))
        .unwrap();
        // What is not accepted is none of the controller's business.
        let Ok(stored) = objects.create(&dry, &object).await else {
            continue;
        };
        accepted += 1;
        let stored = serde_json::to_value(stored).unwrap();
        if let Err(error) = serde_json::from_value::<K>(stored.clone()) {
            panic!(
                "{kind}: the schema accepts what the type does not ({fields:?}): {error}\n{}",
                stored["spec"]
            );
        }
    }
    assert!(
        accepted * 10 > CHANGES,
        "{kind}: only {accepted} of {CHANGES} were accepted"
    );
}

#[tokio::test]
async fn a_postgres_user_that_is_accepted_is_read() {
    is_read::<PostgresUser>("PostgresUser", example("postgresuser", "PostgresUser")).await;
}

#[tokio::test]
async fn a_postgres_instance_that_is_accepted_is_read() {
    is_read::<PostgresInstance>("PostgresInstance", example("postgresuser", "PostgresInstance")).await;
}

#[tokio::test]
async fn a_postgres_policy_that_is_accepted_is_read() {
    is_read::<PostgresPolicy>("PostgresPolicy", example("postgrespolicy", "PostgresPolicy")).await;
}

#[tokio::test]
async fn a_supabase_project_that_is_accepted_is_read() {
    is_read::<SupabaseProject>("SupabaseProject", example("supabaseproject", "SupabaseProject")).await;
}

#[tokio::test]
async fn a_gitlab_instance_that_is_accepted_is_read() {
    is_read::<GitlabInstance>("GitlabInstance", example("gitlabinstance", "GitlabInstance")).await;
}

/// The spec of the first object of a kind in the examples.
fn example(system: &str, kind: &str) -> Value {
    let directory = format!("{}/../../examples/{system}", env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let objects = files.iter().flat_map(|file| {
        let text = std::fs::read_to_string(file).unwrap();
        serde_saphyr::from_multiple::<Value>(&text).unwrap()
    });
    let found = objects.into_iter().find(|object| object["kind"] == kind);
    found.unwrap()["spec"].clone()
}
