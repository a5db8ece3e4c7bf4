//! Every file of `examples/gitlabinstance` becomes Ready on a cluster with the simulated operators, with the default
//! rules: only GitLab's own charts, and no permission beyond the namespace.

use std::collections::BTreeMap;

use kube::ResourceExt as _;
use serde_json::{Value, json};
use stanchion_api::gitlab::Phase;
use stanchion_sandbox::fake_operators::FakeOperators;
use tokio_util::sync::CancellationToken;

use crate::definitions;
use crate::test_env::TestEnv;

#[tokio::test]
async fn every_example_becomes_ready() {
    let env = TestEnv::bare().await;
    env.cluster.install_crds(definitions::best()).await;
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/gitlabinstance");
    let (mut instances, mut versions) = (Vec::new(), BTreeMap::new());
    let _operator = env.operator().await;
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for object in env.cluster.apply(&text, &env.namespace).await {
            match object.types.as_ref().unwrap().kind.as_str() {
                "GitlabInstance" => instances.push(object.name_any()),
                "GitlabVersionMap" => {
                    for (version, entry) in object.data["spec"]["versions"].as_object().unwrap() {
                        let chart = entry["chartVersion"].as_str().unwrap();
                        versions.insert(chart.to_owned(), version.clone());
                    }
                }
                _ => {}
            }
        }
    }
    assert!(instances.len() >= 3 && !versions.is_empty(), "{instances:?}");
    let stop = CancellationToken::new();
    let mut playing = FakeOperators::new(env.client.clone())
        .within(&env.namespace)
        .charts(move |chart| versions.get(chart).cloned())
        .start(&stop);
    for name in instances {
        env.phase(&name, Phase::Ready).await;
        let release = env.release(&name).await;
        let account: Option<&Value> = release.data.pointer("/spec/serviceAccountName");
        assert_eq!(account, Some(&json!(format!("{name}-gitlab-release"))));
    }
    stop.cancel();
    while let Some(ended) = playing.join_next().await {
        ended.unwrap();
    }
}
