//! An object that disappears while a pass runs: only this pass knows what it has created.

use http::Method;
use stanchion_kernel::driver::Settings;
use tokio::time::sleep;

use super::{LONG, sized, start};
use crate::test_env::Widget;
use crate::test_env::server::Server;

/// The API server answers in the same way if the CRD has lost its status: with a 404 and the name of the object.
#[tokio::test(start_paused = true)]
async fn a_status_that_is_not_found_does_not_mean_that_its_object_is_gone() {
    let server = Server::default();
    server.widget("one", sized(1));
    server.fault(Method::PATCH, "/status", Some(404));
    let _operator = start(&server, Settings::default());
    server.until_passes("one", 3).await;
    assert_eq!(server.world.changes(), 1, "the thing is made, and stays");
    assert!(server.world.thing("one").is_some());
    server.relent();
    server.until("one", Widget::is_ready).await;
    assert_eq!(server.world.changes(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_a_pass_has_made_for_an_object_that_is_gone_is_removed() {
    let server = Server::default();
    server.widget("one", sized(1));
    server.fault(Method::PATCH, "/status", Some(404));
    server.fault(Method::GET, "/widgets/one", Some(404));
    let _operator = start(&server, Settings::default());
    server.until("one", |_| server.world.changes() == 2).await;
    assert_eq!(server.world.thing("one"), None);
}

/// While the API server does not say whether the object is gone, nothing is removed; the watch says it later.
#[tokio::test(start_paused = true)]
async fn a_cleanup_waits_until_it_is_known_that_the_object_is_gone() {
    let server = Server::default();
    server.widget("one", sized(1));
    server.fault(Method::PATCH, "/status", Some(404));
    server.fault(Method::GET, "/widgets/one", Some(403));
    let _operator = start(&server, Settings::default());
    server.until_passes("one", 2).await;
    assert_eq!(server.world.changes(), 1);
    let one = server.get("one");
    server.remove("one");
    server.expire_watches();
    server.widget("two", sized(1));
    server.until("two", |_| server.world.thing("one").is_none()).await;
    assert_eq!(one.status, None);
}

/// The object was there after all. What happens when it is gone is decided then, and not by its state of today.
#[tokio::test(start_paused = true)]
async fn a_doubt_that_passes_leaves_no_cleanup_behind() {
    let server = Server::default();
    server.widget("one", sized(1));
    server.fault(Method::PATCH, "/status", Some(404));
    server.fault(Method::GET, "/widgets/one", Some(403));
    let _operator = start(&server, Settings::default());
    server.until_passes("one", 2).await;
    server.relent();
    server.until("one", Widget::is_ready).await;
    // Somebody removes the finalizer by force.
    server.remove("one");
    server.expire_watches();
    server.widget("two", sized(1));
    server.until("two", Widget::is_ready).await;
    sleep(LONG).await;
    assert!(server.world.thing("one").is_some());
}
