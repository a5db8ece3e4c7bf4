//! The other traps of kube 5: the content of caches (6), events (7), and writes after a lost Lease (8).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, header::ACCEPT};
use kube::Api;
use kube::client::Body;
use serde_json::json;
use stanchion_kernel::client::{self, Options};
use stanchion_kernel::driver::Settings;
use stanchion_kernel::lease::{Elector, Fence, Identity, Leadership, LeaseSettings, Term, Timings};
use stanchion_kernel::telemetry::Metrics;
use stanchion_testkit::faults::{Fault, Faults, Moment, Rule};
use stanchion_testkit::wait;
use tokio_util::sync::CancellationToken;
use tower::util::MapRequestLayer;

use crate::test_env::{POKE, TestEnv, WAIT_TIMEOUT, Widget, environment, reading, settings};

/// Trap 6: four fifths of a cached object are managedFields.
#[tokio::test]
async fn no_pass_is_given_managed_fields() {
    let env = TestEnv::with_a_reader("traps").await;
    let operator = env.operator().await;
    env.settled(&operator, "one").await;
    for size in 2..6 {
        // Right after a write of ours, when the pass uses what the write returned; and later, from the cache.
        env.respec("one", json!({ "size": size })).await;
        env.until(&operator, "one", Widget::is_ready).await;
    }
    env.flush(&operator).await;
    assert!(env.world.passes("one") >= 5);
    assert_eq!(env.world.with_managed_fields(), 0);
}

/// Trap 6: a Secret's data is in no list and no watch, and is read once per pass.
#[tokio::test]
async fn the_data_of_secrets_is_read_on_demand_and_nothing_else() {
    let env = TestEnv::with_a_reader("traps").await;
    env.password("of-another", "x").await;
    // The requests about Secrets and children: whether for one object, and in which format.
    let asked: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
    let asking = Arc::clone(&asked);
    let listen = MapRequestLayer::new(move |request: Request<Body>| {
        let accept = request
            .headers()
            .get(ACCEPT)
            .and_then(|value| value.to_str().ok());
        let asked = (
            request.uri().path().to_owned(),
            accept.unwrap_or_default().to_owned(),
        );
        asking.lock().unwrap().push(asked);
        request
    });
    let metrics = Metrics::new("test");
    let options = Options::new("toy").with_layer(listen);
    let client = client::build(env.cluster.config().await, &metrics, &options).unwrap();
    let operator = env.assemble(environment(client, &metrics, settings()));
    let looking = async {
        let widgets: Api<Widget> = env.api();
        wait::until(&widgets, "one", WAIT_TIMEOUT, Widget::is_ready).await;
    };
    tokio::select! {
        () = operator.run() => panic!("the operator ended"),
        () = looking => {}
    }
    let asked = asked.lock().unwrap().clone();
    let mut collections = 0;
    for (path, accept) in &asked {
        if path.ends_with("/secrets") || path.ends_with("/configmaps") {
            collections += 1;
            assert!(accept.contains("as=PartialObjectMetadata"), "{path}: {accept}");
        }
    }
    assert_eq!(collections, 4, "a list and a watch each: {asked:?}");
    let read = asked.iter().filter(|(path, _)| path.contains("/secrets/"));
    assert!(
        read.clone().all(|(path, _)| path.ends_with("/secrets/mine")),
        "{asked:?}"
    );
    assert!(read.count() <= env.world.passes("one"));
}

/// Trap 7: kube's recorder repeats the first note forever, and sends everything again after a restart.
#[tokio::test]
async fn events_have_the_newest_words_and_a_restart_is_silent() {
    let env = TestEnv::new("traps").await;
    env.widget("one", reading("first")).await;
    let operator = env.operator().await;
    let is_missing = |secret: &'static str| {
        move |widget: &Widget| {
            widget.fails_with("SecretMissing") && widget.condition("Ready").unwrap().message.contains(secret)
        }
    };
    env.until(&operator, "one", is_missing("first")).await;
    env.flush(&operator).await;
    env.password("first", "x").await;
    env.settled(&operator, "one").await;
    env.respec("one", json!({ "secretRef": "second" })).await;
    env.until(&operator, "one", is_missing("second")).await;
    env.flush(&operator).await;
    let reported = env.events("one").await;
    let expected = [
        ("SecretMissing", "Secret first has no password"),
        ("Ready", "the thing is there"),
        ("SecretMissing", "Secret second has no password"),
    ];
    assert_eq!(
        reported,
        expected.map(|(reason, note)| (reason.to_owned(), note.to_owned(), 1))
    );

    // The same problem continues: another pass, or a restart, sends no event.
    env.merge::<Widget>("one", json!({ "metadata": { "annotations": { POKE: "now" } } }))
        .await;
    env.flush(&operator).await;
    drop(operator);
    let passes = env.world.passes("one");
    let operator = env.operator().await;
    operator
        .wait()
        .eventually("the second operator to look", async || {
            env.world.passes("one") > passes
        })
        .await;
    env.flush(&operator).await;
    assert_eq!(env.events("one").await, reported);
}

/// Trap 8: a replica that has lost the Lease writes nothing more, not even the current write.
#[tokio::test]
async fn a_lost_lease_stops_all_writes_at_once() {
    let env = TestEnv::with_a_reader("traps").await;
    // The connection to the Lease, which will be cut, and the one to everything else, which will not.
    let (lease_way, way) = (Faults::new(), Faults::new());
    let lease_settings = LeaseSettings {
        namespace: env.namespace.clone(),
        name: "stanchion".into(),
        identity: Identity::new("loser"),
        timings: Timings::new(
            Duration::from_secs(3),
            Duration::from_secs(2),
            Duration::from_millis(200),
        )
        .unwrap(),
    };
    let config = env.cluster.config().await;
    let elector = Elector::new(lease_way.client(config.clone()), lease_settings);
    let (metrics, faults) = (Metrics::new("test"), way.clone());
    let work = async |leadership: Leadership| {
        let fence = Fence::guarded_by(leadership);
        let options = Options::new("toy").with_layer(fence).with_layer(faults);
        let client = client::build(config, &metrics, &options).unwrap();
        env.assemble(environment(client, &metrics, settings()))
            .run()
            .await;
    };
    let lose = async {
        let widgets: Api<Widget> = env.api();
        wait::until(&widgets, "one", WAIT_TIMEOUT, Widget::is_ready).await;
        // Another pass is held half-way, and the Lease cannot be renewed any more.
        env.world.hold("one");
        let passes = env.world.passes("one");
        env.respec("one", json!({ "size": 2 })).await;
        let is_held = async || env.world.passes("one") > passes;
        wait::eventually(WAIT_TIMEOUT, "a pass to be held", is_held).await;
        lease_way.script(Rule::when(|_| true, Fault::Hang(Moment::Before)));
        way.writes().len()
    };
    let (term, writes) = tokio::join!(elector.lead(CancellationToken::new(), work), lose);
    assert_eq!(term, Term::Lost);
    let is_ended = async || env.world.running("one") == 0;
    wait::eventually(WAIT_TIMEOUT, "the pass to end in the middle", is_ended).await;
    env.world.release("one");
    // A successor has plenty of time; the former leader adds nothing.
    let operator = env.operator().await;
    env.settled(&operator, "one").await;
    assert_eq!(env.world.thing("one").unwrap().size, 2);
    assert_eq!(way.writes().len(), writes);
}

/// kube asks for any state that the API server has in its cache, which may be older than what the former leader has seen.
#[tokio::test]
async fn a_streamed_list_is_as_new_as_its_request() {
    let env = TestEnv::with_a_reader("traps").await;
    let settings = Settings {
        streaming_lists: true,
        ..settings()
    };
    let operator = env.operator_with(env.cluster.config().await, settings);
    env.settled(&operator, "one").await;
    let calls = operator.faults.calls();
    let mut lists = calls
        .iter()
        .filter(|call| call.query.contains("sendInitialEvents=true"));
    assert_eq!(lists.clone().count(), 3, "{calls:?}");
    assert!(lists.all(|call| call.served == Some(200) && !call.query.contains("resourceVersion=")));
}
