//! `stanchion ui`, and the page of the demo.

use std::path::Path;

use stanchion_testkit::cluster::Cluster;
use stanchion_testkit::process::{Launch, Process, Signal};
use stanchion_testkit::scratch::Scratch;
use stanchion_testkit::wait;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::DEADLINE;
use crate::operator::{BINARY, command, failure};

/// Gets an address, and returns the whole answer.
pub(crate) async fn get(address: &str, headers: &str) -> String {
    let rest = address.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    // A browser resolves every name below localhost to loopback. The system does not everywhere.
    let (_, port) = host.rsplit_once(".localhost:").unwrap();
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).await.unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

/// Opens a printed address like a browser, and returns its cookie as a header.
pub(crate) async fn enter(address: &str) -> String {
    let answer = get(address, "").await;
    let cookie = answer
        .split("set-cookie: ")
        .nth(1)
        .unwrap_or_else(|| panic!("{answer}"));
    format!("Cookie: {}\r\n", cookie.split(';').next().unwrap())
}

fn start(kubeconfig: &Path, scratch: &Scratch, words: &[&str]) -> Process {
    Launch::new(BINARY, scratch.path().join("log"))
        .args(["ui"])
        .args(words.iter().copied())
        .env("KUBECONFIG", kubeconfig)
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn the_page_of_a_namespace_shows_it_until_ctrl_c() {
    let cluster = Cluster::shared().await;
    cluster.install_crds(stanchion_api::crds()).await;
    let namespace = cluster.namespace("page").await;
    let user = serde_json::json!({
        "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresUser", "metadata": { "name": "alice" },
        "spec": { "username": "alice", "database": "none", "privileges": ["CONNECT"], "password": { "generate": {} } },
    });
    cluster.apply(&user.to_string(), &namespace).await;
    let scratch = Scratch::new("stanchion-page-").unwrap();
    let mut page = start(&cluster.kubeconfig_path(), &scratch, &["-n", &namespace]);
    let address = wait::eventually(DEADLINE, "an address", async || {
        let log = page.log();
        let first = log
            .lines()
            .next()
            .filter(|line| line.contains("/?token=") && log.contains("Ctrl-C"));
        first.map(str::to_owned).ok_or(log)
    })
    .await;
    assert!(address.contains(".localhost:"), "{address}");
    let cookie = enter(&address).await;
    let here = address.split_once("?token").unwrap().0;
    wait::eventually(DEADLINE, "alice on the page", async || {
        let answer = get(here, &cookie).await;
        if answer.contains(&format!("/o/postgresusers/{namespace}/alice")) {
            Ok(())
        } else {
            Err(answer)
        }
    })
    .await;
    assert!(
        get(here, "").await.starts_with("HTTP/1.1 401"),
        "the cookie is required"
    );
    page.signal(Signal::Int);
    let ended = tokio::time::timeout(DEADLINE, page.wait()).await.unwrap();
    assert_eq!(ended.code(), Some(0), "{}", page.log());
}

#[tokio::test]
async fn a_taken_port_and_a_missing_cluster_are_said_in_one_line() {
    let cluster = Cluster::shared().await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let mut words = command(["ui", "--port", &port]);
    words.env("KUBECONFIG", cluster.kubeconfig_path());
    let output = tokio::task::spawn_blocking(move || words.output().unwrap())
        .await
        .unwrap();
    let (line, code) = failure(&output);
    assert!(
        line.contains("choose another --port") && line.contains(&port),
        "{line}"
    );
    assert_eq!(code, Some(1));
    let mut words = command(["ui"]);
    words.env("KUBECONFIG", "/does/not/exist");
    let output = tokio::task::spawn_blocking(move || words.output().unwrap())
        .await
        .unwrap();
    let (line, code) = failure(&output);
    assert!(line.contains("set KUBECONFIG"), "{line}");
    assert_eq!(code, Some(1));
}
