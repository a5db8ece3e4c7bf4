//! One suite of API behaviours, two servers. The cases are data (`cases/*.yaml`); what a real API server
//! answered to them is recorded (`recorded/*.json`). The sandbox must give the same answers, field by field.
//!
//! In `make test-real` the cases run against the real cluster first, so that the recording cannot drift from the
//! original. With `STANCHION_RECORD=1` it is made anew.

mod mask;
mod run;

use std::path::PathBuf;

use serde_json::{Map, Value};
use stanchion_sandbox::Sandbox;

use crate::hook;

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it/conformance")
        .join(name)
}

/// The real cluster that was started for this run, if it has one.
async fn original() -> Option<kube::Client> {
    if std::env::var("STANCHION_TEST_CLUSTER").as_deref() != Ok("real") {
        return None;
    }
    let kubeconfig = std::env::var_os("STANCHION_TEST_KUBECONFIG")?;
    let kubeconfig = kube::config::Kubeconfig::read_from(kubeconfig).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    Some(kube::Client::try_from(config).unwrap())
}

async fn answers(client: &kube::Client, cases: &[run::Case], hook: Option<&run::Hook>) -> Map<String, Value> {
    let only = std::env::var("STANCHION_CASE").ok();
    let mut answers = Map::new();
    for case in cases
        .iter()
        .filter(|case| only.as_deref().is_none_or(|only| case.case.contains(only)))
    {
        let answer = run::run(client, case, hook).await;
        assert!(
            answers.insert(case.case.clone(), answer).is_none(),
            "two cases are called {:?}",
            case.case
        );
    }
    answers
}

fn compare(server: &str, recorded: &Value, answers: &Map<String, Value>) {
    let mut differences = Vec::new();
    for (case, answer) in answers {
        mask::differences(case, &recorded[case], answer, &mut differences);
    }
    assert!(
        differences.is_empty(),
        "{server}: {} differences:\n{}",
        differences.len(),
        differences.join("\n")
    );
}

async fn check(file: &str) {
    let text = std::fs::read_to_string(folder("cases").join(format!("{file}.yaml"))).unwrap();
    let cases: Vec<run::Case> = serde_saphyr::from_str(&text).unwrap();
    let recording = folder("recorded").join(format!("{file}.json"));
    let hook = if text.contains("{webhook}") {
        let (url, authority) = hook::start().await;
        Some(run::Hook { url, authority })
    } else {
        None
    };
    let original = match original().await {
        Some(client) => Some(answers(&client, &cases, hook.as_ref()).await),
        None => None,
    };
    if let (Some(answers), Some(_)) = (&original, std::env::var_os("STANCHION_RECORD")) {
        std::fs::create_dir_all(folder("recorded")).unwrap();
        let sorted: Value = serde_json::to_value(answers).unwrap();
        std::fs::write(&recording, format!("{sorted:#}\n")).unwrap();
    }
    let recorded: Value = serde_json::from_str(&std::fs::read_to_string(&recording).unwrap()).unwrap();
    if let Some(answers) = original {
        compare("original", &recorded, &answers);
    }
    if hook.is_none() {
        // Nothing here waits for the world: sleeps may be skipped.
        tokio::time::pause();
    }
    let sandbox = Sandbox::builder().start().unwrap();
    compare(
        "sandbox",
        &recorded,
        &answers(&sandbox.client(), &cases, hook.as_ref()).await,
    );
}

macro_rules! files {
    ($($name:ident),* $(,)?) => {$(
        #[tokio::test]
        async fn $name() {
            check(stringify!($name)).await;
        }
    )*};
}

files!(
    access,
    apply,
    builtin,
    crds,
    definitions,
    deletion,
    discovery,
    lists,
    mistakes,
    objects,
    patches,
    policies,
    rules,
    schemas,
    subresources,
    watches,
    webhooks,
    workloads,
);
