//! Changes that happened while no watch ran take effect once the list is complete.

use std::time::Duration;

use http::Method;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;
use stanchion_kernel::driver::Settings;
use tokio::time::sleep;

use super::{sized, start};
use crate::test_env::server::Server;
use crate::test_env::{FINALIZER, POKE, Thing};

/// The cache changes when a list ends. A pass that starts earlier reads the old object, or none, and nothing wakes it
/// again.
#[tokio::test(start_paused = true)]
async fn changes_that_arrive_by_a_new_list_are_followed() {
    let server = Server::default();
    for name in ["edited", "gone", "leaving", "zuletzt"] {
        server.widget(name, sized(1));
    }
    let _operator = start(&server, Settings::default());
    for name in ["edited", "gone", "leaving", "zuletzt"] {
        server.until(name, stanchion_toy::Widget::is_ready).await;
    }
    let lists = server.calls(&Method::GET, "/widgets");

    let second_page = server.hold_second_page();
    server.expire_watches();
    server.resize("edited", 2);
    server.change("leaving", |widget| {
        widget.metadata.deletion_timestamp = Some(Time(jiff::Timestamp::UNIX_EPOCH));
    });
    server.widget("made", sized(3));
    server.remove("gone");
    // The first page was sent, and every pass that it causes has run.
    server
        .until("edited", |_| server.calls(&Method::GET, "/widgets") >= lists + 2)
        .await;
    sleep(Duration::from_secs(5)).await;
    second_page.send_replace(true);

    server
        .until("edited", |widget| {
            widget.status.as_ref().and_then(|status| status.size) == Some(2)
        })
        .await;
    server.until("made", stanchion_toy::Widget::is_ready).await;
    let is_released = |finalizers: &Option<Vec<String>>| {
        finalizers
            .iter()
            .flatten()
            .all(|finalizer| finalizer != FINALIZER)
    };
    server
        .until("leaving", |widget| is_released(&widget.metadata.finalizers))
        .await;
    assert_eq!(server.world.thing("leaving"), None);
    assert_eq!(server.world.thing("made").map(|thing: Thing| thing.size), Some(3));

    // A deleted object is no longer counted, and one with the same name is a new object.
    server.widget("gone", sized(7));
    server
        .until("gone", |widget| {
            widget.is_ready() && server.world.thing("gone").is_some_and(|thing| thing.size == 7)
        })
        .await;
}

/// The response to the write of the finalizer contains the annotation, and so does everything that the watch reports later.
/// The pass has not validated it.
#[tokio::test(start_paused = true)]
async fn an_annotation_that_is_set_during_a_write_of_ours_is_followed() {
    let server = Server::default();
    server.widget("one", sized(1));
    server.meanwhile(|widget| widget["metadata"]["annotations"] = json!({ POKE: "now" }));
    let _operator = start(&server, Settings::default());
    server.until_passes("one", 2).await;
    server.until("one", stanchion_toy::Widget::is_ready).await;
}

/// Everything fails for a minute, the API server has lost its history, and what changes meanwhile is followed soon after.
#[tokio::test(start_paused = true)]
async fn changes_during_an_outage_of_the_api_server_are_followed_soon_after_it() {
    let server = Server::default();
    server.widget("one", sized(1));
    let _operator = start(&server, Settings::default());
    server.until("one", stanchion_toy::Widget::is_ready).await;
    for method in [Method::GET, Method::PATCH, Method::POST] {
        server.fault(method, "", Some(503));
    }
    server.expire_watches();
    server.resize("one", 2);
    server.widget("two", sized(3));
    sleep(Duration::from_mins(1)).await;
    assert_eq!(server.world.thing("two"), None, "the server is away");
    server.relent();
    let followed = |name: &str, size| {
        let world = server.world.clone();
        let name = name.to_owned();
        move |_: &stanchion_toy::Widget| world.thing(&name).is_some_and(|thing| thing.size == size)
    };
    let took = server.until("one", followed("one", 2)).await + server.until("two", followed("two", 3)).await;
    assert!(took < Duration::from_secs(15), "{took:?}");
}
