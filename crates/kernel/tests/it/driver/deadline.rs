//! Trap 4: kube's client has no timeout, and repeats a POST or PATCH for minutes.

use std::time::Duration;

use http::Method;
use stanchion_kernel::client::DEADLINE as CALL;
use stanchion_kernel::driver::Settings;

use super::{sized, start};
use crate::test_env::Widget;
use crate::test_env::server::Server;

#[tokio::test(start_paused = true)]
async fn an_observe_that_hangs_ends_at_the_deadline() {
    let server = Server::default();
    server.widget("one", sized(1));
    server.world.hold("one");
    let _operator = start(&server, Settings::default());
    let took = server
        .until("one", |widget| widget.fails_with("DeadlineExceeded"))
        .await;
    let deadline = Settings::default().deadline;
    assert!(
        (deadline..deadline + Duration::from_secs(1)).contains(&took),
        "{took:?}"
    );
    let message = server.get("one").condition("Ready").unwrap().message.clone();
    assert_eq!(message, "observe took longer than 60 s");
    assert_eq!(server.world.running("one"), 0, "what hung is gone");
    server.world.release("one");
    server.until("one", Widget::is_ready).await;
}

#[tokio::test(start_paused = true)]
async fn an_api_call_that_hangs_ends_at_the_clients_deadline() {
    let server = Server::default();
    server.widget("one", sized(1));
    server.widget("two", sized(1));
    server.fault(Method::GET, "/configmaps/one", None);
    let _operator = start(&server, Settings::default());
    let took = server
        .until("one", |widget| widget.fails_with("ApiUnreachable"))
        .await;
    assert!((CALL..CALL + Duration::from_secs(1)).contains(&took), "{took:?}");
    assert!(server.get("two").is_ready(), "the others did not wait for it");
    server.relent();
    server.until("one", Widget::is_ready).await;
}

#[tokio::test(start_paused = true)]
async fn a_status_write_that_hangs_ends_too_and_is_tried_again() {
    let server = Server::default();
    server.widget("one", sized(1));
    server.fault(Method::PATCH, "/widgets/one/status", None);
    let _operator = start(&server, Settings::default());
    server.until_passes("one", 2).await;
    server.relent();
    server.until("one", Widget::is_ready).await;
}

#[tokio::test(start_paused = true)]
async fn a_write_is_never_repeated_within_a_pass() {
    let server = Server::default();
    server.widget("one", sized(1));
    for code in [429, 503, 504] {
        server.relent();
        server.fault(Method::PATCH, "/configmaps/one", Some(code));
        let _operator = start(&server, Settings::default());
        let (passes, calls) = (
            server.world.passes("one"),
            server.calls(&Method::PATCH, "/configmaps/one"),
        );
        server.until_passes("one", passes + 4).await;
        let calls = server.calls(&Method::PATCH, "/configmaps/one") - calls;
        // The fourth pass has begun, and may have reached its write or not.
        assert!((3..=4).contains(&calls), "{code}: {calls} writes in 4 passes");
    }
}
