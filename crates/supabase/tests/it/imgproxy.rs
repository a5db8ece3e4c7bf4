//! imgproxy itself, with the environment of its Deployment.

use std::path::Path;

use http::{Method, StatusCode};
use serde_json::json;
use stanchion_testkit::{port, report};

use crate::service_process::Service;
use crate::test_env::TestEnv;

/// The path of its program.
const VARIABLE: &str = "STANCHION_IMGPROXY_BIN";

#[tokio::test]
async fn imgproxy_starts_with_what_it_is_given() {
    let Some(program) = std::env::var(VARIABLE).ok().filter(|program| !program.is_empty()) else {
        report::skipped(
            "imgproxy as it is deployed",
            &format!("{VARIABLE} names no program"),
        );
        return;
    };
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.project("shop", json!({ "imgproxy": {} })).await;
    env.running("shop").await;
    let pod = env.pod("shop-imgproxy").await;
    let port = port::free();
    let mut environment = pod.environment.clone();
    environment.insert("IMGPROXY_BIND".to_owned(), format!("127.0.0.1:{port}"));
    let imgproxy = Service::start(Path::new(&program), &[], &environment, port, "/health").await;
    let (status, _) = imgproxy.send(Method::GET, "/health", None, None).await;
    assert_eq!(status, StatusCode::OK);
}
