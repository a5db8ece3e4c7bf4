//! The end of an operator: running passes finish, and no others begin.

use stanchion_kernel::driver::Settings;
use tokio::time::{sleep, timeout};

use super::{LONG, sized, start};
use crate::test_env::server::Server;

#[tokio::test(start_paused = true)]
async fn what_runs_is_finished_and_nothing_else_is_begun() {
    let server = Server::default();
    let settings = Settings {
        concurrency: 1,
        ..Settings::default()
    };
    for name in ["one", "two"] {
        server.widget(name, sized(1));
        server.world.hold(name);
    }
    let mut operator = start(&server, settings);
    let held = || {
        ["one", "two"]
            .into_iter()
            .find(|name| server.world.running(name) == 1)
    };
    server.until("one", |_| held().is_some()).await;
    let (running, waiting) = match held() {
        Some("one") => ("one", "two"),
        _ => ("two", "one"),
    };
    server.shutdown.cancel();
    let soon = Settings::default().deadline / 2;
    assert!(
        timeout(soon, &mut operator.task).await.is_err(),
        "it waits for what runs"
    );
    server.world.release(running);
    timeout(LONG, &mut operator.task).await.unwrap().unwrap();
    assert!(server.get(running).is_ready());
    sleep(LONG).await;
    assert_eq!(server.world.passes(waiting), 0);
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_is_dropped_stops_in_the_middle() {
    let server = Server::default();
    server.widget("one", sized(1));
    server.world.hold("one");
    let operator = start(&server, Settings::default());
    server.until("one", |_| server.world.running("one") == 1).await;
    drop(operator);
    server.until("one", |_| server.world.running("one") == 0).await;
    server.world.release("one");
    sleep(LONG).await;
    assert_eq!(server.world.thing("one"), None);
    assert_eq!(server.get("one").status, None);
}
