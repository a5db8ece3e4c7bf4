//! Raw requests, for what typed clients cannot express.

use http::{HeaderMap, Request};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Value, json};

/// The response: a body of several lines is a list, and one that is not JSON is text.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

/// Sends a request such as `GET /api/v1/pods`.
pub(crate) async fn send(client: &kube::Client, request: &str, body: &Value) -> Answer {
    send_with(client, request, body, &[]).await
}

/// Sends a request with additional headers.
pub(crate) async fn send_with(
    client: &kube::Client,
    request: &str,
    body: &Value,
    headers: &[(&str, &str)],
) -> Answer {
    let (method, path) = request.split_once(' ').unwrap();
    let mut builder = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json");
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    let body = match body {
        Value::Null => Vec::new(),
        body => body.to_string().into_bytes(),
    };
    let answer = client
        .send(builder.body(Body::from(body)).unwrap())
        .await
        .unwrap();
    let (parts, body) = answer.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    let text = String::from_utf8_lossy(&bytes);
    let body = serde_json::from_str(&text).unwrap_or_else(|_| {
        let lines: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
        lines.map_or_else(|_| json!(text), |lines| json!(lines))
    });
    Answer {
        code: parts.status.as_u16(),
        headers: parts.headers,
        body,
    }
}
