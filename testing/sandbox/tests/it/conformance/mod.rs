//! One suite of API behaviours for two servers. The cases are data (`cases/*.yaml`), with the recorded answers of a
//! real API server (`recorded/*.json`). The sandbox must return the same answers, field by field.
//!
//! In `make test-real` the cases run against the real cluster first, so the recording stays correct. Answers differ
//! between minor versions of Kubernetes, so a real cluster of another minor version than the sandbox's is not compared,
//! and the report lists that. `STANCHION_RECORD=1` records the answers again.

mod mask;
mod run;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use stanchion_sandbox::{Sandbox, User};

use crate::{real_cluster, report, webhook_server};

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it/conformance")
        .join(name)
}

/// Major and minor version of an API server.
async fn version(client: &kube::Client) -> String {
    let info = client.apiserver_version().await.unwrap();
    format!("{}.{}", info.major, info.minor)
}

/// The real cluster of this run, if it has one that the recording is about.
async fn original() -> Option<run::Clients> {
    let kubeconfig = kube::config::Kubeconfig::read_from(real_cluster::kubeconfig()?).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    let mut stranger = config.clone();
    stranger.auth_info = kube::config::AuthInfo::default();
    let admin = kube::Client::try_from(config).unwrap();
    let found = version(&admin).await;
    let recorded = version(&Sandbox::builder().start().unwrap().client()).await;
    if found != recorded {
        report::skipped(&format!(
            "the real cluster is {found}, and the recorded answers are of {recorded}: only the sandbox was compared"
        ));
        return None;
    }
    Some(run::Clients {
        admin,
        stranger: kube::Client::try_from(stranger).unwrap(),
    })
}

/// `STANCHION_CASE` restricts a run to the cases whose names contain it.
fn chosen() -> Option<String> {
    std::env::var("STANCHION_CASE").ok()
}

async fn answers(
    clients: &run::Clients,
    cases: &[run::Case],
    hook: Option<&run::Hook>,
    recorded: Option<&Value>,
) -> Map<String, Value> {
    let only = chosen();
    let mut answers = Map::new();
    for case in cases
        .iter()
        .filter(|case| only.as_deref().is_none_or(|only| case.case.contains(only)))
    {
        let recorded = recorded.map(|recorded| &recorded[&case.case]);
        let answer = run::run(clients, case, hook, recorded).await;
        assert!(
            answers.insert(case.case.clone(), answer).is_none(),
            "two cases are called {:?}",
            case.case
        );
    }
    answers
}

/// Writes the original's answers. A restricted run leaves the answers of the other cases unchanged.
fn record(recording: &Path, cases: &[run::Case], answers: &Map<String, Value>) {
    let before = std::fs::read_to_string(recording).unwrap_or_else(|_| "{}".to_owned());
    let before: Map<String, Value> = serde_json::from_str(&before).unwrap();
    let all: Map<String, Value> = cases
        .iter()
        .filter_map(|case| {
            let answer = answers.get(&case.case).or_else(|| before.get(&case.case))?;
            Some((case.case.clone(), answer.clone()))
        })
        .collect();
    for step in answers.values().filter_map(Value::as_array).flatten() {
        assert_ne!(step["code"], run::NEVER, "the original: {step}");
    }
    std::fs::write(recording, format!("{:#}\n", Value::Object(all))).unwrap();
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
    // Cases may refer to each other's steps any number of times.
    let options =
        serde_saphyr::options! { budget: serde_saphyr::budget! { enforce_alias_anchor_ratio: false } };
    let cases: Vec<run::Case> = serde_saphyr::from_str_with_options(&text, options).unwrap();
    let recording = folder("recorded").join(format!("{file}.json"));
    let hook = if text.contains("{webhook}") {
        let (url, authority) = webhook_server::start().await;
        Some(run::Hook { url, authority })
    } else {
        None
    };
    let read = || serde_json::from_str(&std::fs::read_to_string(&recording).unwrap()).unwrap();
    let recorded: Value = match original().await {
        Some(clients) if std::env::var_os("STANCHION_RECORD").is_some() => {
            record(
                &recording,
                &cases,
                &answers(&clients, &cases, hook.as_ref(), None).await,
            );
            read()
        }
        Some(clients) => {
            let recorded = read();
            let answers = answers(&clients, &cases, hook.as_ref(), Some(&recorded)).await;
            compare("original", &recorded, &answers);
            recorded
        }
        None => read(),
    };
    if hook.is_none() {
        // Nothing here waits for external events: sleeps may be skipped.
        tokio::time::pause();
    }
    let sandbox = Sandbox::builder().start().unwrap();
    let clients = run::Clients {
        admin: sandbox.client(),
        stranger: sandbox.client_as(User::anonymous()),
    };
    compare(
        "sandbox",
        &recorded,
        &answers(&clients, &cases, hook.as_ref(), None).await,
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
    asked,
    builtin,
    changes,
    cluster,
    collections,
    configurations,
    crds,
    definitions,
    deletion,
    discovery,
    endings,
    escalation,
    expressions,
    families,
    garbage,
    identity,
    kinds,
    lists,
    mistakes,
    objects,
    ownership,
    patches,
    pods,
    policies,
    reviews,
    rules,
    schemas,
    strategic,
    structure,
    subresources,
    tables,
    updates,
    versions,
    watches,
    webhooks,
    workloads,
);
