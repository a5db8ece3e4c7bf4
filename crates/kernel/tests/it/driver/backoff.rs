//! Retries of failed objects.

use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use stanchion_kernel::Class;
use stanchion_kernel::driver::Settings;
use tokio::time::sleep;

use super::{LONG, sized, start};
use crate::test_env::Widget;
use crate::test_env::server::Server;

/// The steps of the backoff, in seconds.
const STEPS: [u32; 6] = [1, 2, 4, 8, 16, 30];

/// The pauses between `number` passes from `first` on, without their jitter of up to a fifth.
async fn pauses(server: &Server, first: usize, number: usize) -> Vec<u32> {
    server.until_passes("one", first).await;
    let mut pauses = Vec::new();
    for pass in first + 1..=first + number {
        let seconds = server.until_passes("one", pass).await.as_secs_f64();
        let step = STEPS.into_iter().rfind(|&step| f64::from(step) <= seconds + 0.1);
        pauses.push(step.unwrap_or_default());
    }
    pauses
}

#[tokio::test(start_paused = true)]
async fn it_grows_and_our_own_status_writes_do_not_reset_it() {
    let server = Server::default();
    server.widget("one", sized(1));
    server.world.fails("one", Some(Class::Transient));
    let _operator = start(&server, Settings::default());
    // The first failure writes a status and a finalizer, whose events come before the second.
    assert_eq!(pauses(&server, 1, 7).await, [1, 2, 4, 8, 16, 30, 30]);
    assert_eq!(server.calls(&Method::PATCH, "/widgets/one/status"), 1);
    let retries = server
        .scrape()
        .count(r#"workqueue_retries_total{name="toy",controller="toy"}"#);
    assert!((7..=8).contains(&retries), "{retries}");
}

#[tokio::test(start_paused = true)]
async fn a_changed_spec_is_looked_at_at_once_and_starts_from_zero() {
    let server = Server::default();
    server.widget("one", sized(1));
    server.world.fails("one", Some(Class::Transient));
    let _operator = start(&server, Settings::default());
    assert_eq!(pauses(&server, 1, 5).await, [1, 2, 4, 8, 16]);
    server.resize("one", 2);
    assert!(server.until_passes("one", 7).await < Duration::from_secs(1));
    assert_eq!(pauses(&server, 7, 3).await, [1, 2, 4]);
}

#[tokio::test(start_paused = true)]
async fn success_starts_from_zero_too() {
    let server = Server::default();
    server.widget("one", sized(1));
    server.world.fails("one", Some(Class::Transient));
    let _operator = start(&server, Settings::default());
    assert_eq!(pauses(&server, 1, 3).await, [1, 2, 4]);
    server.world.fails("one", None);
    server.until("one", Widget::is_ready).await;
    server.world.fails("one", Some(Class::Transient));
    server.poke("one");
    let next = server.world.passes("one") + 1;
    assert_eq!(pauses(&server, next, 3).await, [1, 2, 4]);
}

#[tokio::test(start_paused = true)]
async fn each_class_is_looked_at_again_when_its_row_says() {
    for (class, minutes) in [(Class::Dependency, 2), (Class::Human, 5)] {
        let server = Server::default();
        server.widget("one", sized(1));
        server.world.fails("one", Some(class));
        let _operator = start(&server, Settings::default());
        server.until_passes("one", 1).await;
        let pause = server.until_passes("one", 2).await;
        let row = Duration::from_mins(minutes);
        assert!((row..row.mul_f64(1.21)).contains(&pause), "{class:?}: {pause:?}");
    }
    let server = Server::default();
    server.widget("one", sized(1));
    server.world.fails("one", Some(Class::Permanent));
    let _operator = start(&server, Settings::default());
    server.until("one", |widget| widget.fails_with("Outage")).await;
    sleep(LONG).await;
    assert_eq!(server.world.passes("one"), 1);
}

/// A cleanup that fails for good would hold its object for ever, because a user does not change an object that they have
/// deleted.
#[tokio::test(start_paused = true)]
async fn a_cleanup_that_fails_for_good_is_tried_again() {
    let server = Server::default();
    server.widget("one", sized(1));
    let _operator = start(&server, Settings::default());
    server.until("one", Widget::is_ready).await;
    server.world.fails("one", Some(Class::Permanent));
    server.change("one", |widget| {
        widget.metadata.deletion_timestamp = Some(Time(Timestamp::now()));
    });
    server.until("one", |widget| widget.fails_with("Outage")).await;
    let status = |widget: &Widget| widget.condition("Stalled").map(|stalled| stalled.status.clone());
    assert_eq!(status(&server.get("one")), Some("True".to_owned()));
    let before = server.world.passes("one");
    let pause = server.until_passes("one", before + 1).await;
    let row = Duration::from_mins(5);
    assert!((row..row.mul_f64(1.21)).contains(&pause), "{pause:?}");
    server.world.fails("one", None);
    server
        .until("one", |widget| {
            widget.metadata.finalizers.as_ref().is_none_or(Vec::is_empty)
        })
        .await;
    assert_eq!(server.world.thing("one"), None);
}

/// A problem that is never retried, and a status that could not be written: without a retry it would never be reported.
#[tokio::test(start_paused = true)]
async fn a_status_that_could_not_be_written_is_tried_again_whatever_the_class() {
    let server = Server::default();
    server.widget("one", sized(0));
    server.fault(Method::PATCH, "/widgets/one/status", Some(500));
    let _operator = start(&server, Settings::default());
    let asked = || server.calls(&Method::PATCH, "/widgets/one/status");
    server.until("one", |_| asked() >= 3).await;
    server.relent();
    server
        .until("one", |widget| widget.fails_with("InvalidSize"))
        .await;
    let before = asked();
    sleep(LONG).await;
    assert_eq!(asked(), before, "once it is shown, nothing is left to try");
}

/// The API server returns 409 for a status patch if too many others write: the object still exists.
#[tokio::test(start_paused = true)]
async fn a_status_that_lost_a_race_is_tried_again() {
    let server = Server::default();
    server.widget("one", sized(1));
    server.fault(Method::PATCH, "/widgets/one/status", Some(409));
    let _operator = start(&server, Settings::default());
    server
        .until("one", |_| server.calls(&Method::PATCH, "/widgets/one/status") > 0)
        .await;
    server.relent();
    server.until("one", Widget::is_ready).await;
}
