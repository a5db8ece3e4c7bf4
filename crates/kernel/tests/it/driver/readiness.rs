//! The state of the watches in `/readyz`.

use std::time::Duration;

use http::Method;
use stanchion_kernel::driver::Settings;
use tokio::time::{sleep, timeout};

use super::{LONG, sized, start};
use crate::test_env::Widget;
use crate::test_env::server::Server;

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_is_named_until_it_succeeds() {
    let server = Server::default();
    server.fault(Method::GET, "/secrets", Some(403));
    let operator = start(&server, Settings::default());
    let named = async {
        loop {
            let missing = operator.readiness.missing();
            if missing.len() == 1 && missing[0].1 != "not read yet" {
                break missing;
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    let missing = timeout(LONG, named).await.unwrap();
    assert_eq!(missing[0].0, "watch of secrets in namespace paused");
    server.relent();
    timeout(LONG, operator.readiness.wait()).await.unwrap();
}

/// kube resumes a broken watch without a new list, and does not report it. An operator must not stay not ready because
/// a connection broke once.
#[tokio::test(start_paused = true)]
async fn a_watch_that_broke_once_is_ready_again() {
    let server = Server::default();
    server.widget("one", sized(1));
    let operator = start(&server, Settings::default());
    timeout(LONG, operator.readiness.wait()).await.unwrap();
    server.until("one", Widget::is_ready).await;

    server.break_watches();
    let broken = async {
        while operator.readiness.missing().len() < 3 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(LONG, broken).await.unwrap();
    timeout(LONG, operator.readiness.wait()).await.unwrap();
    server.resize("one", 2);
    server.until("one", Widget::is_ready).await;
    assert_eq!(operator.readiness.missing(), []);
}

/// A watch that cannot be opened any more stays listed, however long that lasts.
#[tokio::test(start_paused = true)]
async fn a_watch_that_stays_broken_stays_named() {
    let server = Server::default();
    let operator = start(&server, Settings::default());
    timeout(LONG, operator.readiness.wait()).await.unwrap();
    server.fault(Method::GET, "/secrets", Some(403));
    server.break_watches();
    sleep(LONG).await;
    for _ in 0..1000 {
        sleep(Duration::from_secs(1)).await;
        let missing = operator.readiness.missing();
        assert_eq!(missing.len(), 1, "{missing:?}");
        assert_eq!(missing[0].0, "watch of secrets in namespace paused");
    }
    server.relent();
    timeout(LONG, operator.readiness.wait()).await.unwrap();
}
