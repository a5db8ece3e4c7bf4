//! Trap 5: kube's controller runs any number of reconciles at once.

use futures::future::join_all;
use stanchion_kernel::driver::Settings;

use super::{sized, start};
use crate::test_env::Widget;
use crate::test_env::server::Server;

#[tokio::test(start_paused = true)]
async fn at_most_as_many_as_allowed_run_and_none_twice() {
    let server = Server::default();
    let names: Vec<String> = (0..50).map(|number| format!("w{number}")).collect();
    for name in &names {
        server.widget(name, sized(1));
        server.world.hold(name);
    }
    let _operator = start(&server, Settings::default());
    server.until("w0", |_| server.world.concurrency().0 == 8).await;
    // Everything changes repeatedly while eight hang and the others wait.
    for size in 2..10 {
        for name in &names {
            server.resize(name, size);
        }
    }
    for name in &names {
        server.world.release(name);
    }
    join_all(names.iter().map(|name| server.until(name, Widget::is_ready))).await;
    assert_eq!(server.world.concurrency(), (8, 0));
    for name in &names {
        assert_eq!(server.world.thing(name).unwrap().size, 9);
        // Eight of them ran before the changes; the rest waited, each once in the queue.
        assert!(
            server.world.passes(name) <= 2,
            "{name}: {}",
            server.world.passes(name)
        );
    }
    let depth = server
        .scrape()
        .count(r#"workqueue_depth{name="toy",controller="toy"}"#);
    assert_eq!(depth, 0);
}
