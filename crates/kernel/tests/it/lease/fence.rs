//! The write fence: requests that still leave the process after the Lease is lost.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{ObjectMeta, PostParams},
};
use stanchion_kernel::{
    client::{self, ApiService, Options},
    lease::{Fence, NotLeading, Term},
    telemetry::Metrics,
};
use tokio::time::timeout;

use super::{
    LEASE, leader,
    store::{self, Store},
};

/// The operator's own client, with the fence where the operator has it.
fn fenced(service: ApiService, fence: &Fence) -> Api<ConfigMap> {
    let options = Options::new("test").with_layer(fence.clone());
    Api::default_namespaced(client::over(service, "default", &Metrics::new("test"), &options))
}

#[tokio::test(start_paused = true)]
async fn the_fence_lets_only_reads_through_once_the_lease_is_lost() {
    let store = Store::default();
    let link = store.link(Duration::ZERO);
    let (leadership, task, _stop) = leader(&link, "a").await;
    let fence = Fence::guarded_by(leadership);
    let sent = Arc::new(Mutex::new(Vec::new()));
    let maps = fenced(store::echo(sent.clone()), &fence);
    let map = ConfigMap {
        metadata: ObjectMeta {
            name: Some("m".into()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    };

    maps.create(&PostParams::default(), &map).await.unwrap();
    assert_eq!(fence.check(), Ok(()));

    link.cut(true);
    assert_eq!(task.await.unwrap(), Term::Lost);
    assert_eq!(fence.check(), Err(NotLeading));
    let error = maps.create(&PostParams::default(), &map).await.unwrap_err();
    assert!(Fence::stopped(&error), "{error}");
    let error = maps
        .delete("m", &kube::api::DeleteParams::default())
        .await
        .unwrap_err();
    assert!(Fence::stopped(&error), "{error}");
    maps.get("m").await.unwrap();
    assert_eq!(*sent.lock().unwrap(), ["POST", "GET"]);
}

#[tokio::test(start_paused = true)]
async fn a_write_in_flight_ends_with_the_lease() {
    let store = Store::default();
    let link = store.link(Duration::ZERO);
    let (leadership, _task, _stop) = leader(&link, "a").await;
    let hanging = store.link(Duration::ZERO);
    hanging.cut(true);
    let maps = fenced(hanging.service(), &Fence::guarded_by(leadership));
    link.cut(true);
    let (params, map) = (PostParams::default(), ConfigMap::default());
    let write = timeout(LEASE, maps.create(&params, &map)).await;
    let error = write.expect("ends by the renew deadline").unwrap_err();
    assert!(Fence::stopped(&error), "{error}");
}

#[tokio::test]
async fn without_election_the_fence_is_open() {
    let sent = Arc::new(Mutex::new(Vec::new()));
    let maps = fenced(store::echo(sent.clone()), &Fence::open());
    maps.create(&PostParams::default(), &ConfigMap::default())
        .await
        .unwrap();
    assert_eq!(Fence::open().check(), Ok(()));
    assert_eq!(*sent.lock().unwrap(), ["POST"]);
}
