//! Changes reach an open page.

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use stanchion_testenv::WAIT_TIMEOUT;

use crate::fleet::shows;
use crate::test_env::{TestEnv, user};

/// Waits for the next event of a stream.
async fn change(body: &mut Incoming) {
    let heard = async {
        loop {
            let frame = body.frame().await.expect("the stream goes on").unwrap();
            let text = String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap();
            if text.contains("event: change") {
                return;
            }
        }
    };
    tokio::time::timeout(WAIT_TIMEOUT, heard)
        .await
        .expect("no change was announced");
}

#[tokio::test]
async fn a_change_is_announced_and_shown() {
    let env = TestEnv::new("ui-live").await;
    let browser = env.open().await;
    shows(&browser, "/", "No objects").await;
    let answer = browser
        .send(browser.request("GET", "/live?at=%2F", &[], ""))
        .await;
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let mut stream = answer.into_body();
    // The first one is for what was missed.
    change(&mut stream).await;
    env.apply(&user("alice")).await;
    change(&mut stream).await;
    shows(&browser, "/", "alice").await;
}

#[tokio::test]
async fn too_many_streams_are_refused_and_a_closed_one_makes_room() {
    let env = TestEnv::new("ui-seats").await;
    let browser = env.open().await;
    let mut open = Vec::new();
    for _ in 0..32 {
        let answer = browser.send(browser.request("GET", "/live", &[], "")).await;
        assert_eq!(answer.status(), 200);
        open.push(answer.into_body());
    }
    let refused = browser.get("/live", &[]).await;
    assert_eq!(refused.status, 503);
    assert_eq!(browser.get("/", &[]).await.status, 200, "pages are still served");
    drop(open);
    stanchion_testkit::wait::within(WAIT_TIMEOUT)
        .eventually("room for a stream", async || {
            let answer = browser.send(browser.request("GET", "/live", &[], "")).await;
            if answer.status() == 200 {
                Ok(())
            } else {
                Err(answer.status().to_string())
            }
        })
        .await;
}
