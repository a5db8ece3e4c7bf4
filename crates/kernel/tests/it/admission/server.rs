//! Requests that no API server would send, and rules that fail.

use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use serde_json::{Value, json};
use stanchion_kernel::admission::{Admission, CertificateSource, Mounted, Webhook, WebhookTarget};
use stanchion_testkit::wait;
use tempfile::TempDir;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    DEADLINE, LOOPBACK, labelling, refusing,
    tls::{connect, presented},
};

const VALIDATE: &str = "/validate/coordination.k8s.io/v1/leases";

struct Served {
    addr: std::net::SocketAddr,
    folder: TempDir,
    stop: CancellationToken,
    task: AbortOnDropHandle<()>,
}

/// Writes a self-signed certificate as cert-manager would mount it, and returns it.
fn mount(folder: &Path) -> CertificateDer<'static> {
    let key = KeyPair::generate().unwrap();
    let pem = CertificateParams::new(vec!["127.0.0.1".into()])
        .unwrap()
        .self_signed(&key)
        .unwrap()
        .pem();
    for (name, text) in [
        ("tls.key", &key.serialize_pem()),
        ("tls.crt", &pem),
        ("ca.crt", &pem),
    ] {
        std::fs::write(folder.join(name), text).unwrap();
    }
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}

async fn serve(webhook: Webhook) -> Served {
    let folder = TempDir::new().unwrap();
    mount(folder.path());
    // A mounted certificate needs no API server.
    let unused = tower::service_fn(|_| async { Err::<http::Response<Full<Bytes>>, _>("no cluster here") });
    let source = Mounted {
        check_every: Duration::from_millis(20),
        ..Mounted::new(folder.path())
    };
    let admission = Admission::start(
        Client::new(unused, "default"),
        LOOPBACK,
        CertificateSource::Mounted(source),
        Arc::new([webhook]),
    )
    .await
    .unwrap();
    let (addr, stop) = (admission.addr(), CancellationToken::new());
    let task = AbortOnDropHandle::new(tokio::spawn(admission.run(stop.clone())));
    Served {
        addr,
        folder,
        stop,
        task,
    }
}

impl Served {
    async fn post(&self, path: &str, body: impl Into<Bytes>) -> (StatusCode, Bytes) {
        let bundle = std::fs::read_to_string(self.folder.path().join("ca.crt")).unwrap();
        let stream = connect(self.addr, &bundle).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .unwrap();
        let _connection = AbortOnDropHandle::new(tokio::spawn(connection));
        let request = Request::post(path)
            .header("host", "localhost")
            .body(Full::new(body.into()))
            .unwrap();
        let response = sender.send_request(request).await.unwrap();
        let status = response.status();
        (status, response.into_body().collect().await.unwrap().to_bytes())
    }

    async fn review(&self, object: Value) -> Value {
        let (status, body) = self.post(VALIDATE, review(&object)).await;
        assert_eq!(status, StatusCode::OK);
        let answer: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(answer["apiVersion"], "admission.k8s.io/v1");
        assert_eq!(answer["response"]["uid"], "a-uid");
        answer["response"].clone()
    }
}

fn review(object: &Value) -> String {
    let lease = json!({ "group": "coordination.k8s.io", "version": "v1" });
    let (mut kind, mut resource) = (lease.clone(), lease);
    kind["kind"] = "Lease".into();
    resource["resource"] = "leases".into();
    let name = object["metadata"]["name"].clone();
    let request = json!({
        "uid": "a-uid", "kind": kind, "resource": resource, "name": name, "namespace": "ns",
        "operation": "UPDATE", "userInfo": {}, "object": object, "oldObject": null, "dryRun": false,
    });
    json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request }).to_string()
}

fn object(name: &str) -> Value {
    json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": name } })
}

#[tokio::test]
async fn a_panic_is_a_500_and_the_server_goes_on() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let served = serve(Webhook::validating(WebhookTarget::of::<Lease>(), move |_| {
        assert!(counted.fetch_add(1, SeqCst) > 0, "the first call panics");
        Ok(vec!["mind the gap".into()])
    }))
    .await;
    let (status, body) = served.post(VALIDATE, review(&object("a"))).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(
        !String::from_utf8_lossy(&body).contains("first call"),
        "no details for strangers"
    );
    let answer = served.review(object("a")).await;
    assert_eq!(answer["allowed"], true);
    assert_eq!(answer["warnings"], json!(["mind the gap"]));
}

#[tokio::test]
async fn a_rule_that_hangs_is_given_up() {
    let served = serve(Webhook::validating_with(WebhookTarget::of::<Lease>(), |_| {
        std::future::pending()
    }))
    .await;
    let (status, _) = served.post(VALIDATE, review(&object("a"))).await;
    assert_eq!(status, StatusCode::GATEWAY_TIMEOUT);
}

#[tokio::test]
async fn nonsense_is_refused() {
    let served = serve(refusing()).await;
    let cases = [
        (VALIDATE, "not json".to_owned(), StatusCode::BAD_REQUEST),
        (
            VALIDATE,
            r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#.into(),
            StatusCode::BAD_REQUEST,
        ),
        (
            VALIDATE,
            "x".repeat(9 * 1024 * 1024),
            StatusCode::PAYLOAD_TOO_LARGE,
        ),
        (
            VALIDATE,
            "x".repeat(3 * 1024 * 1024 + 1),
            StatusCode::PAYLOAD_TOO_LARGE,
        ),
        (VALIDATE, "[".repeat(200_000), StatusCode::BAD_REQUEST),
        ("/elsewhere", review(&object("a")), StatusCode::NOT_FOUND),
    ];
    for (path, body, expected) in cases {
        assert_eq!(served.post(path, body).await.0, expected, "{path}");
    }
}

#[tokio::test]
async fn an_object_that_is_going_is_not_reviewed() {
    let served = serve(refusing()).await;
    assert_eq!(served.review(object("refuse-me")).await["allowed"], false);
    let mut going = object("refuse-me");
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    assert_eq!(served.review(going).await["allowed"], true);
}

#[tokio::test]
async fn plain_http_is_not_answered() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let served = serve(labelling()).await;
    let mut plain = tokio::net::TcpStream::connect(served.addr).await.unwrap();
    plain
        .write_all(b"POST / HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
}

#[tokio::test]
async fn a_mounted_certificate_is_reloaded_and_a_broken_one_is_not() {
    let log = Log::default();
    let _logging = tracing::subscriber::set_default(log.subscriber());
    let served = serve(refusing()).await;
    let bundle = || std::fs::read_to_string(served.folder.path().join("ca.crt")).unwrap();
    let (first, old) = (presented(served.addr, &bundle()).await.unwrap(), bundle());

    std::fs::write(served.folder.path().join("tls.crt"), "half a certifi").unwrap();
    wait::eventually(DEADLINE, "the broken one to be noticed", async || {
        log.contains("cannot be used")
    })
    .await;
    assert_eq!(presented(served.addr, &old).await.unwrap(), first);

    let second = mount(served.folder.path());
    wait::eventually(DEADLINE, "the new certificate", async || {
        presented(served.addr, &bundle())
            .await
            .is_ok_and(|shown| shown == second)
    })
    .await;
}

/// What this test's server logs.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn subscriber(&self) -> impl tracing::Subscriber + use<> {
        let log = self.clone();
        tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || log.clone())
            .finish()
    }

    fn contains(&self, words: &str) -> bool {
        String::from_utf8_lossy(&self.0.lock().unwrap()).contains(words)
    }
}

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn shutdown_waits_for_the_requests_that_run() {
    let (started, mut running) = tokio::sync::mpsc::channel(1);
    let release = Arc::new(tokio::sync::Notify::new());
    let gate = release.clone();
    let served = serve(Webhook::validating_with(
        WebhookTarget::of::<Lease>(),
        move |_| {
            let (started, gate) = (started.clone(), gate.clone());
            async move {
                started.send(()).await.unwrap();
                gate.notified().await;
                Ok(vec![])
            }
        },
    ))
    .await;
    let stop = served.stop.clone();
    let (answer, ()) = tokio::join!(served.review(object("a")), async {
        running.recv().await.unwrap();
        stop.cancel();
        release.notify_one();
    });
    assert_eq!(answer["allowed"], true);
    served.task.await.unwrap();
}

/// Attacks a17 to a19: a client on the network without a credential. The API server does not authenticate to webhooks,
/// but only it knows their paths.
#[tokio::test]
async fn a_request_to_an_unknown_path_is_rejected_unread() {
    let served = serve(refusing().behind("v1.only-the-api-server")).await;
    for path in [
        VALIDATE.to_owned(),
        format!("{VALIDATE}/"),
        format!("{VALIDATE}/v1.guessed"),
    ] {
        let (status, body) = served.post(&path, review(&object("refuse-me"))).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
        assert!(body.is_empty(), "{body:?}");
    }
    let (status, body) = served
        .post(
            &format!("{VALIDATE}/v1.only-the-api-server"),
            review(&object("refuse-me")),
        )
        .await;
    assert_eq!(status, StatusCode::OK);
    assert!(String::from_utf8_lossy(&body).contains("must not be me"));
}

/// Attack a19: many large bodies at once. The parsed part is always bounded, and all are answered.
#[tokio::test]
async fn many_large_bodies_are_read_a_few_at_a_time() {
    let served = Arc::new(serve(refusing()).await);
    let posts = (0..24).map(|_| {
        let served = Arc::clone(&served);
        async move {
            let mut large = object("a");
            large["metadata"]["annotations"] = json!({ "a": "x".repeat(2 * 1024 * 1024) });
            served.post(VALIDATE, review(&large)).await.0
        }
    });
    for status in futures::future::join_all(posts).await {
        assert!(
            matches!(
                status,
                StatusCode::OK | StatusCode::SERVICE_UNAVAILABLE | StatusCode::REQUEST_TIMEOUT
            ),
            "{status}"
        );
    }
    assert_eq!(
        served.review(object("a")).await["allowed"],
        true,
        "and it goes on"
    );
}
