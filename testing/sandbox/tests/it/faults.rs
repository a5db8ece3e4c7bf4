//! Fault injection, and clients that survive the faults.

use std::pin::pin;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::{Value, json};
use stanchion_sandbox::{Effect, MASTERS, Match, Sandbox, User};

use crate::raw_requests::send;

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"k": "1"}})).unwrap()
}

fn secret(name: &str) -> Secret {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

async fn create(api: &Api<Secret>, name: &str) {
    api.create(&PostParams::default(), &secret(name)).await.unwrap();
}

fn name(event: &WatchEvent<Secret>) -> String {
    match event {
        WatchEvent::Added(object) => object.metadata.name.clone().unwrap(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_watcher_lists_anew_when_its_history_is_gone() {
    let sandbox = Sandbox::builder().start().unwrap();
    let api: Api<Secret> = Api::default_namespaced(sandbox.client());
    sandbox
        .faults()
        .once(Match::verb("watch").on("secrets"), Effect::EndWatch(2));
    create(&api, "a").await;
    let mut events = pin!(watcher(api.clone(), watcher::Config::default()).default_backoff());
    while !matches!(
        events.try_next().await.unwrap().unwrap(),
        watcher::Event::InitDone
    ) {}
    for name in ["b", "c"] {
        create(&api, name).await;
        let event = events.try_next().await.unwrap().unwrap();
        assert!(
            matches!(event, watcher::Event::Apply(object) if object.metadata.name.as_deref() == Some(name))
        );
    }
    assert_eq!(sandbox.faults().waiting(), 0, "the watch has ended");

    create(&api, "d").await;
    sandbox.compact();
    create(&api, "e").await;
    let gone = events.next().await.unwrap().unwrap_err();
    assert!(matches!(gone, watcher::Error::WatchError(status) if status.code == 410));
    let event = events.try_next().await.unwrap().unwrap();
    assert!(matches!(event, watcher::Event::Init), "{event:?}");
    let mut seen = Vec::new();
    loop {
        match events.try_next().await.unwrap().unwrap() {
            watcher::Event::InitApply(object) => seen.push(object.metadata.name.unwrap()),
            watcher::Event::InitDone => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(seen, ["a", "b", "c", "d", "e"]);
}

#[tokio::test(start_paused = true)]
async fn a_fault_of_watches_strikes_one_after_those_it_skips() {
    let sandbox = Sandbox::builder().start().unwrap();
    let (client, faults) = (sandbox.client(), sandbox.faults());
    let api: Api<Secret> = Api::default_namespaced(client.clone());
    create(&api, "a").await;
    create(&api, "b").await;
    let watch = "GET /api/v1/namespaces/default/secrets?watch=1&timeoutSeconds=5";
    let events = async || send(&client, watch, &Value::Null).await.body;
    let count = |events: Value| events.as_array().map_or(1, Vec::len);

    // A single event is not a list.
    faults.once(Match::verb("watch"), Effect::EndWatch(1));
    assert_eq!(count(events().await), 1);
    assert_eq!(count(events().await), 2, "only once");
    faults.add(Match::default(), 1, 1, Effect::EndWatch(1));
    api.get("a").await.unwrap();
    assert_eq!(
        count(events().await),
        2,
        "the first is skipped; other requests do not count"
    );
    assert_eq!(count(events().await), 1);
    assert_eq!(faults.waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_watch_can_lag() {
    let sandbox = Sandbox::builder().start().unwrap();
    let api: Api<Secret> = Api::default_namespaced(sandbox.client());
    let version = api
        .list(&ListParams::default())
        .await
        .unwrap()
        .metadata
        .resource_version
        .unwrap();
    let lag = Duration::from_secs(30);
    sandbox.faults().once(Match::verb("watch"), Effect::LagWatch(lag));
    for late in [true, false] {
        let mut events = pin!(api.watch(&WatchParams::default(), &version).await.unwrap());
        if late {
            create(&api, "a").await;
        }
        let before = tokio::time::Instant::now();
        assert_eq!(name(&events.try_next().await.unwrap().unwrap()), "a");
        assert_eq!(before.elapsed() >= lag, late);
    }
}

#[tokio::test(start_paused = true)]
async fn history_that_is_gone_is_said_to_be() {
    let sandbox = Sandbox::builder().start().unwrap();
    let client = sandbox.client();
    let api: Api<Secret> = Api::default_namespaced(client.clone());
    create(&api, "a").await;
    create(&api, "b").await;
    let secrets = "GET /api/v1/namespaces/default/secrets";
    let page = send(&client, &format!("{secrets}?limit=1"), &Value::Null)
        .await
        .body;
    let version = page["metadata"]["resourceVersion"].as_str().unwrap();
    let token = page["metadata"]["continue"].as_str().unwrap();
    create(&api, "c").await;
    sandbox.compact();

    let watch = send(
        &client,
        &format!("{secrets}?watch=1&resourceVersion={version}"),
        &Value::Null,
    )
    .await;
    assert_eq!(
        (watch.code, &watch.body["type"]),
        (200, &json!("ERROR")),
        "{watch:?}"
    );
    let status = &watch.body["object"];
    assert_eq!(
        (&status["code"], &status["reason"]),
        (&json!(410), &json!("Expired"))
    );
    let list = send(
        &client,
        &format!("{secrets}?limit=1&continue={token}"),
        &Value::Null,
    )
    .await;
    assert_eq!((list.code, &list.body["reason"]), (410, &json!("Expired")));
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watch_gets_a_bookmark_every_minute() {
    let sandbox = Sandbox::builder().start().unwrap();
    let api: Api<Secret> = Api::default_namespaced(sandbox.client());
    let others: Api<ConfigMap> = Api::default_namespaced(sandbox.client());
    let mut events = pin!(api.watch(&WatchParams::default(), "0").await.unwrap());
    let other = others
        .create(&PostParams::default(), &config_map("a"))
        .await
        .unwrap();
    let before = tokio::time::Instant::now();
    let event = events.try_next().await.unwrap().unwrap();
    let WatchEvent::Bookmark(bookmark) = event else {
        panic!("{event:?}")
    };
    assert_eq!(before.elapsed().as_secs(), 60);
    let version: u64 = bookmark.metadata.resource_version.parse().unwrap();
    let reached: u64 = other.metadata.resource_version.unwrap().parse().unwrap();
    assert!(
        version >= reached,
        "it lets the watch resume after what it did not see"
    );
}

#[tokio::test(start_paused = true)]
async fn faults_strike_where_they_are_told() {
    let sandbox = Sandbox::builder().start().unwrap();
    let api: Api<ConfigMap> = Api::default_namespaced(sandbox.client());
    let create = async |name: &str| api.create(&PostParams::default(), &config_map(name)).await;
    let faults = sandbox.faults();

    faults.once(Match::verb("create"), Effect::Fail(500));
    assert!(create("a").await.is_err());
    assert!(api.get_opt("a").await.unwrap().is_none());
    faults.once(Match::verb("create"), Effect::FailAfter(500));
    assert!(create("a").await.is_err());
    assert!(api.get_opt("a").await.unwrap().is_some());
    faults.once(Match::verb("patch").on("configmaps"), Effect::Conflict);
    let patch = Patch::Merge(json!({"data": {"k": "2"}}));
    let error = api.patch("a", &PatchParams::default(), &patch).await.unwrap_err();
    assert!(matches!(error, kube::Error::Api(status) if status.code == 409));
    faults.once(Match::verb("get"), Effect::Delay(Duration::from_mins(1)));
    let before = tokio::time::Instant::now();
    api.get("a").await.unwrap();
    assert_eq!(before.elapsed(), Duration::from_mins(1));
}

#[tokio::test(start_paused = true)]
async fn refusals_say_why_and_write_nothing() {
    let sandbox = Sandbox::builder().start().unwrap();
    let client = sandbox.client();
    let body = serde_json::to_value(config_map("a")).unwrap();
    let post = || send(&client, "POST /api/v1/namespaces/default/configmaps", &body);
    for (effect, code, reason, seconds) in [
        (Effect::Throttle(7), 429, "TooManyRequests", json!(7)),
        (Effect::Expire, 410, "Expired", Value::Null),
        (Effect::Fail(503), 503, "ServiceUnavailable", Value::Null),
    ] {
        sandbox.faults().once(Match::writes(), effect.clone());
        let answer = post().await;
        assert_eq!(
            (answer.code, &answer.body["reason"]),
            (code, &json!(reason)),
            "{effect:?}"
        );
        assert_eq!(answer.body["details"]["retryAfterSeconds"], seconds, "{effect:?}");
        let header = answer
            .headers
            .get("retry-after")
            .map(|value| value.to_str().unwrap());
        assert_eq!(
            header,
            seconds.as_u64().map(|s| s.to_string()).as_deref(),
            "{effect:?}"
        );
    }
    sandbox.faults().once(Match::writes(), Effect::Hang);
    assert!(
        tokio::time::timeout(Duration::from_hours(1), post())
            .await
            .is_err()
    );
    assert_eq!(sandbox.faults().waiting(), 0);
    assert_eq!(post().await.code, 201, "nothing was written before");
}

#[tokio::test(start_paused = true)]
async fn a_client_can_die_after_its_second_write() {
    let sandbox = Sandbox::builder().start().unwrap();
    let operator = User::new("operator", &[MASTERS]);
    let own: Api<Secret> = Api::default_namespaced(sandbox.client_as(operator));
    let others: Api<Secret> = Api::default_namespaced(sandbox.client());
    sandbox
        .faults()
        .add(Match::writes().by("operator"), 1, 1, Effect::Crash);
    let mut open = pin!(own.watch(&WatchParams::default().timeout(60), "0").await.unwrap());
    let mut other = pin!(others.watch(&WatchParams::default(), "0").await.unwrap());
    create(&own, "a").await;
    assert_eq!(name(&open.try_next().await.unwrap().unwrap()), "a");

    let never = Duration::from_hours(1);
    assert!(tokio::time::timeout(never, create(&own, "b")).await.is_err());
    assert!(sandbox.faults().is_dead("operator"));
    assert_eq!(sandbox.faults().writes("operator"), 2);
    assert!(
        others.get_opt("b").await.unwrap().is_some(),
        "the second write was committed"
    );
    for wanted in ["a", "b"] {
        assert_eq!(name(&other.try_next().await.unwrap().unwrap()), wanted);
    }
    assert!(
        tokio::time::timeout(never, open.try_next()).await.is_err(),
        "its watch neither reports nor ends"
    );
}
