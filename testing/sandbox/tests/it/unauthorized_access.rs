//! Attacks by another user of the same machine without the kubeconfig, and by a page in the owner's browser.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use stanchion_sandbox::{Sandbox, User};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::raw_requests::{send, send_with};

/// A client with this token, or with none.
fn client(config: &str, token: Option<&str>) -> kube::Client {
    let config: kube::config::Kubeconfig = kube::config::Kubeconfig::from_yaml(config).unwrap();
    let mut config = futures::executor::block_on(kube::Config::from_custom_kubeconfig(
        config,
        &kube::config::KubeConfigOptions::default(),
    ))
    .unwrap();
    config.auth_info.token = token.map(|token| token.to_owned().into());
    kube::Client::try_from(config).unwrap()
}

#[tokio::test]
async fn without_a_token_nothing_is_readable() {
    let mut sandbox = Sandbox::builder().start().unwrap();
    let address = sandbox.listen(0).await.unwrap();
    assert!(address.ip().is_loopback(), "{address}");
    let config = sandbox.kubeconfig(User::admin()).unwrap();

    let anonymous = client(&config, None);
    let answer = send(&anonymous, "GET /api/v1/secrets", &Value::Null).await;
    assert_eq!(answer.code, 403, "{answer:?}");
    // `{"alg":"none"}`, and a payload that names the administrator.
    let unsigned = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiIsImdyb3VwcyI6WyJzeXN0ZW06bWFzdGVycyJdfQ.";
    for token in [unsigned, "admin", "sandbox-"] {
        let answer = send(&client(&config, Some(token)), "GET /api/v1/secrets", &Value::Null).await;
        assert_eq!(answer.code, 401, "{token}: {answer:?}");
    }

    let theirs = sandbox.kubeconfig(User::new("eve", &[])).unwrap();
    let theirs: Value = serde_json::from_str(&theirs).unwrap();
    let eve = client(&config, theirs["users"][0]["user"]["token"].as_str());
    let headers = [
        ("impersonate-user", "admin"),
        ("impersonate-group", "system:masters"),
    ];
    let answer = send_with(&eve, "GET /api/v1/secrets", &Value::Null, &headers).await;
    assert_eq!(answer.code, 403, "{answer:?}");
}

/// A page of another origin can send requests but must not read the responses; a name that resolves to this machine
/// does not help, because the page has no token.
#[tokio::test]
async fn a_page_of_another_origin_reads_nothing() {
    let mut sandbox = Sandbox::builder().start().unwrap();
    sandbox.listen(0).await.unwrap();
    let config = sandbox.kubeconfig(User::admin()).unwrap();
    let anonymous = client(&config, None);
    for headers in [
        [("origin", "https://evil.example"), ("accept", "*/*")],
        [("host", "evil.example"), ("accept", "*/*")],
    ] {
        let answer = send_with(&anonymous, "GET /api/v1/secrets", &Value::Null, &headers).await;
        assert!([400, 403, 421].contains(&answer.code), "{answer:?}");
        let names: Vec<&str> = answer.headers.keys().map(http::HeaderName::as_str).collect();
        assert!(
            !names.iter().any(|name| name.starts_with("access-control")),
            "{names:?}"
        );
    }
    let preflight = [
        ("origin", "https://evil.example"),
        ("access-control-request-method", "POST"),
    ];
    let answer = send_with(&anonymous, "OPTIONS /api/v1/secrets", &json!(null), &preflight).await;
    assert!(answer.code >= 400, "{answer:?}");
}

#[tokio::test]
async fn plain_http_is_not_answered() {
    let mut sandbox = Sandbox::builder().start().unwrap();
    let address = sandbox.listen(0).await.unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream
        .write_all(b"GET /api/v1/secrets HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert!(!String::from_utf8_lossy(&answer).contains("HTTP/"), "{answer:?}");
}

#[tokio::test]
async fn a_kubeconfig_is_its_owners() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    let mut sandbox = Sandbox::builder().start().unwrap();
    sandbox.listen(0).await.unwrap();
    sandbox.write_kubeconfig(&path).unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
