//! One namespace's objects never delay another's.

use std::time::Duration;

use futures::future::join_all;
use stanchion_kernel::driver::Settings;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use super::sized;
use crate::test_env::Widget;
use crate::test_env::server::Server;

fn start(server: &Server, settings: Settings) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(server.operator_everywhere(settings).run()))
}

/// Attack a6: sixty objects on a host that never answers, and another tenant's object.
#[tokio::test(start_paused = true)]
async fn sixty_silent_objects_of_one_namespace_delay_no_other() {
    let server = Server::default();
    let evil: Vec<String> = (0..60).map(|number| format!("evil/e{number}")).collect();
    for name in &evil {
        server.widget(name, sized(1));
        server.world.hold(name.split_once('/').unwrap().1);
    }
    let _operator = start(&server, Settings::default());
    server
        .until("evil/e0", |_| server.world.concurrency().0 == 8)
        .await;
    // Enough for their passes to end and begin again.
    sleep(Settings::default().deadline * 3).await;

    server.widget("bank/one", sized(1));
    let took = server.until("bank/one", Widget::is_ready).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_eq!(
        server.world.concurrency().0,
        9,
        "half of the places, and the other's one"
    );
}

/// Attack a25: objects that request passes all the time.
#[tokio::test(start_paused = true)]
async fn objects_that_are_changed_all_the_time_delay_no_other() {
    let server = Server::default();
    let evil: Vec<String> = (0..40).map(|number| format!("evil/e{number}")).collect();
    for name in &evil {
        server.widget(name, sized(1));
    }
    let _operator = start(&server, Settings::default());
    join_all(evil.iter().map(|name| server.until(name, Widget::is_ready))).await;
    for size in 2..30 {
        for name in &evil {
            server.resize(name, size);
        }
        let name = format!("bank/b{size}");
        server.widget(&name, sized(1));
        let took = server.until(&name, Widget::is_ready).await;
        assert!(took < Duration::from_secs(1), "{took:?}");
    }
}

/// Within a namespace, a lane that hangs leaves room for the others.
#[tokio::test(start_paused = true)]
async fn a_dead_server_leaves_room_for_the_others_of_its_namespace() {
    let server = Server::default();
    for number in 0..20 {
        // The toy's lane is the part of its name before the dot.
        let name = format!("shop/dead.{number}");
        server.widget(&name, sized(1));
        server.world.hold(&format!("dead.{number}"));
    }
    let _operator = start(&server, Settings::default());
    server
        .until("shop/dead.0", |_| server.world.concurrency().0 == 4)
        .await;
    sleep(Duration::from_secs(10)).await;
    server.widget("shop/well.0", sized(1));
    let took = server.until("shop/well.0", Widget::is_ready).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_eq!(server.world.concurrency().0, 5);
}

/// The operator's settings limit what a spec asks for.
#[tokio::test(start_paused = true)]
async fn an_interval_has_a_minimum() {
    let server = Server::default();
    let mut spec = sized(1);
    spec.interval = Some(0);
    server.widget("evil/eager", spec);
    let settings = Settings {
        shortest_interval: Duration::from_secs(10),
        ..Settings::default()
    };
    let _operator = start(&server, settings);
    server.until("evil/eager", Widget::is_ready).await;
    let before = server.world.passes("eager");
    sleep(Duration::from_secs(100)).await;
    let passes = server.world.passes("eager") - before;
    assert!((5..=10).contains(&passes), "{passes}");
}

/// The longest interval that a manifest could contain does not panic.
#[tokio::test(start_paused = true)]
async fn no_interval_is_too_long() {
    let server = Server::default();
    let mut spec = sized(1);
    spec.interval = Some(u64::MAX);
    server.widget("one", spec);
    let _operator = start(&server, Settings::default());
    server.until("one", Widget::is_ready).await;
    sleep(Duration::from_mins(2)).await;
    let panics = server
        .scrape()
        .count(r#"controller_runtime_reconcile_panics_total{controller="toy"}"#);
    assert_eq!(panics, 0);
    assert_eq!(server.world.passes("one"), 1, "nothing asks for another one");
}
