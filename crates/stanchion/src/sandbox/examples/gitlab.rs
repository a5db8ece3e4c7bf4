//! A GitLab, with its own database and buckets. Flux and the Redis operator are simulated: no chart is installed, and
//! the output says so.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::Client;
use kube::core::ApiResource;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use stanchion_api::gitlab::condition;
use stanchion_api::{GitlabInstance, GitlabVersionMap};
use stanchion_gitlab::storage::Buckets;
use stanchion_local::s3::REGION;
use stanchion_sandbox::fake_operators::{DEFINITIONS, FakeOperators};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::super::manifests;
use super::super::servers::{ACCESS_KEY, Servers};
use super::fact::{Fact, Source};
use super::{Example, Hint, Kind, Logins, Others, login_secret, secret};

/// The Secret with the database login.
const LOGIN: &str = "code-database";
/// The database of the example, with the name that GitLab expects.
const DATABASE: &str = "gitlabhq_production";
/// How long a simulated installation takes: long enough to be visible.
const PACE: Duration = Duration::from_millis(700);

pub(super) const EXAMPLE: Example = Example {
    controller: "gitlab",
    title: "A GitLab (its database is real; Flux and the operator of its Redis are simulated, and no chart is installed)",
    database: DATABASE,
    // The migrations of a real GitLab create it; an upgrade waits until none of its rows is unfinished.
    content: &[
        "CREATE TABLE public.batched_background_migrations (id bigint PRIMARY KEY, status smallint NOT NULL)",
    ],
    kinds: &[Kind {
        resource: || ApiResource::erase::<GitlabInstance>(&()),
        steps: &[
            condition::POSTGRES_READY,
            condition::REDIS_READY,
            condition::OBJECT_STORAGE_READY,
            condition::RELEASED,
            condition::READY,
        ],
    }],
    prerequisites,
    objects: OBJECTS,
    others: Some(Others {
        definitions: &DEFINITIONS,
        play,
    }),
    facts: &[Fact {
        what: "address (in a cluster; no chart is installed here)",
        source: Source::Field {
            resource: || ApiResource::erase::<GitlabInstance>(&()),
            name: "code",
            path: "/status/host",
        },
    }],
    logins: &[],
    guide,
};

const OBJECTS: &str = include_str!("../../../../../examples/sandbox/gitlabinstance.yaml");

fn prerequisites(servers: &Servers) -> Vec<Value> {
    let storage = &servers.storage;
    let mut buckets = json!({
        "endpoint": storage.endpoint(), "region": REGION,
        "accessKey": ACCESS_KEY, "secretKey": storage.secret().expose_secret(),
    });
    if let Some(buckets) = buckets.as_object_mut() {
        let named = Buckets::NAMES
            .iter()
            .map(|class| (format!("bucket.{class}"), json!(format!("code-{class}"))));
        buckets.extend(named);
    }
    vec![
        login_secret(LOGIN, DATABASE, servers, &[("database", DATABASE)]),
        secret("code-storage", &buckets),
    ]
}

/// The simulated operators, with the charts in the version map of the example.
fn play(client: Client, stop: &CancellationToken) -> JoinSet<()> {
    let charts = charts();
    FakeOperators::new(client)
        .pace(PACE)
        .charts(move |chart| charts.get(chart).cloned())
        .start(stop)
}

/// The version that each chart installs, from the version map of the example.
fn charts() -> BTreeMap<String, String> {
    let documents = manifests::documents(OBJECTS).unwrap_or_default();
    let maps = documents
        .into_iter()
        .filter_map(|document| serde_json::from_value::<GitlabVersionMap>(document).ok());
    maps.flat_map(|map| map.spec.versions)
        .map(|(version, entry)| (entry.chart_version, version))
        .collect()
}

fn guide(_: &Logins) -> Vec<Hint> {
    let hint = |why, line: &str| Hint {
        why,
        line: line.to_owned(),
    };
    vec![
        hint(
            "the instance, and the objects that Flux reads",
            "kubectl get gli,helmreleases,helmrepositories",
        ),
        hint(
            "request a newer version: the operator upgrades through the stop in between, and the phase shows the progress",
            r#"kubectl patch gli code --type=merge -p '{"spec":{"version":"stable"}}'"#,
        ),
        hint(
            "request an older version: the operator refuses it, because migrations cannot be undone",
            r#"kubectl patch gli code --type=merge -p '{"spec":{"version":"17.5"}}'"#,
        ),
        hint(
            "delete the release: the operator creates it again",
            "kubectl delete helmrelease code-gitlab",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_players_know_the_charts_of_the_example() {
        assert_eq!(charts().get("8.11.8").map(String::as_str), Some("17.11.7"));
    }
}
