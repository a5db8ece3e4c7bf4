//! What one object may take of the operator's memory.

use stanchion_kernel::driver::Settings;

use super::start;
use crate::test_env::server::Server;
use crate::test_env::{Widget, reading};

/// An object of another tenant is not affected: the pass ends before it holds more.
#[tokio::test(start_paused = true)]
async fn a_pass_reads_no_more_than_its_share_of_the_memory() {
    let server = Server::default();
    server.secret("small", 1024 * 1024);
    server.secret("large", 13 * 1024 * 1024);
    server.widget("modest", reading("small"));
    server.widget("greedy", reading("large"));
    let _operator = start(&server, Settings::default());
    server.until("modest", Widget::is_ready).await;
    server
        .until("greedy", |widget| widget.fails_with("ReadsTooMuch"))
        .await;
    assert_eq!(server.world.thing("greedy"), None);
    server.secret("large", 1024);
    server.until("greedy", Widget::is_ready).await;
}
