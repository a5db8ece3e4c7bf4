//! imgproxy itself, with the environment of its Deployment.

use std::path::Path;

use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::json;
use stanchion_testkit::{port, report};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::service_process::Service;
use crate::test_env::TestEnv;

/// The path of its program.
const VARIABLE: &str = "STANCHION_IMGPROXY_BIN";

/// An image of 64 by 64 pixels.
const IMAGE: &str =
    r#"<svg xmlns="http://www.w3.org/2000/svg" width="64" height="64"><rect width="64" height="64"/></svg>"#;

/// Answers every request with the image, as a bucket does, and returns the port.
async fn bucket() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: image/svg+xml\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{IMAGE}",
                IMAGE.len()
            );
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    port
}

/// The width and the height of a PNG.
fn size(png: &Bytes) -> (u32, u32) {
    assert!(png.starts_with(b"\x89PNG"), "{png:?}");
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}

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
    // The bucket of a cluster has a private address, which imgproxy accepts; here it is on loopback.
    let loopback = "IMGPROXY_ALLOW_LOOPBACK_SOURCE_ADDRESSES".to_owned();
    environment.insert(loopback, "true".to_owned());
    let imgproxy = Service::start(Path::new(&program), &[], &environment, port, "/health").await;
    let (status, _) = imgproxy.send(Method::GET, "/health", None, None).await;
    assert_eq!(status, StatusCode::OK);

    // As Storage asks for an image: without a signature, and with the bucket's URL.
    let source = format!("http%3A%2F%2F127.0.0.1%3A{}%2Fimage.svg", bucket().await);
    let resized = format!("/public/resize:fit:8:8/plain/{source}@png");
    let (status, image) = imgproxy.fetch(&resized).await;
    assert_eq!(status, StatusCode::OK, "{image:?}");
    assert_eq!(size(&image), (8, 8));
}
