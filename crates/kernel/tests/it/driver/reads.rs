//! Objects that a pass reads and cannot.

use serde_json::json;
use stanchion_kernel::driver::Settings;

use super::start;
use crate::test_env::reading;
use crate::test_env::server::Server;

/// A person has to find the field, and the one who can read the widget may not be allowed to read the Secret.
#[tokio::test(start_paused = true)]
async fn another_object_that_cannot_be_read_is_named_and_waited_for() {
    let server = Server::default();
    server.secret_of("mine", &json!("nonsense"));
    server.widget("one", reading("mine"));
    let _operator = start(&server, Settings::default());
    server.until("one", |widget| widget.fails_with("Malformed")).await;
    let message = server.get("one").condition("Ready").unwrap().message.clone();
    assert!(message.contains("Secret paused/mine"), "{message}");
    assert!(message.contains("its data;"), "{message}");
    assert!(!message.contains("nonsense"), "{message}");
    server.secret("mine", 3);
    server.until("one", stanchion_toy::Widget::is_ready).await;
}
