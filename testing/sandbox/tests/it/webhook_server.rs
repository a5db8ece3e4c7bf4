//! A webhook server for tests. Its answer depends on the path.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Starts it; returns its URL and its CA certificate.
pub(crate) async fn start() -> (String, String) {
    let issued = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(issued.signing_key.serialize_der());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![issued.cert.der().clone()], key.into())
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else {
                    return;
                };
                let service = hyper::service::service_fn(answer);
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    (url, issued.cert.pem())
}

async fn answer(request: Request<hyper::body::Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await?.to_bytes();
    if path == "/broken" {
        let mut broken = Response::new(Full::new(Bytes::from("broken")));
        *broken.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
        return Ok(broken);
    }
    let review: Value = serde_json::from_slice(&body).unwrap();
    let response = respond(&path, &review["request"]);
    let review =
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
    Ok(Response::new(Full::new(review.to_string().into())))
}

fn respond(path: &str, ask: &Value) -> Value {
    let allow = json!({"uid": ask["uid"], "allowed": true});
    let deny = |status: Value| json!({"uid": ask["uid"], "allowed": false, "status": status});
    let change = |patch: Value| json!({"uid": ask["uid"], "allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(patch.to_string())});
    match path {
        "/mutate" => {
            change(json!([{"op": "add", "path": "/metadata/labels", "value": {"seen": ask["operation"]}}]))
        }
        "/unpatchable" => change(json!([{"op": "remove", "path": "/nowhere"}])),
        "/invalidating" => {
            change(json!([{"op": "add", "path": "/metadata/labels", "value": {"bad key": "x"}}]))
        }
        "/deny" => json!({"uid": ask["uid"], "allowed": false}),
        "/explain" => deny(
            json!({"code": 400, "reason": "BadRequest", "message": "not like this", "details": {"causes": [{"field": "data.k", "message": "is wrong", "reason": "FieldValueInvalid"}]}}),
        ),
        "/reason" => deny(json!({"reason": "only a reason"})),
        "/conflict" => deny(json!({"code": 409, "reason": "Conflict", "message": "later"})),
        "/odd-code" => deny(json!({"code": 200, "message": "odd"})),
        "/warn" => json!({"uid": ask["uid"], "allowed": true, "warnings": ["careful", "really"]}),
        "/other-uid" => json!({"uid": "other", "allowed": true}),
        "/echo" => deny(json!({"message": echo(ask).to_string()})),
        // Rejects objects with the name bad.
        _ if ask["name"] == "bad" => json!({
            "uid": ask["uid"], "allowed": false, "warnings": ["think again"],
            "status": {"code": 422, "reason": "Invalid", "message": "bad is bad"},
        }),
        _ => allow,
    }
}

/// The request to the webhook, without fields that always differ.
fn echo(ask: &Value) -> Value {
    let mut ask = ask.clone();
    ask["uid"] = json!("");
    ask["userInfo"] = json!({"username": ask["userInfo"]["username"]});
    for key in ["object", "oldObject"] {
        if let Some(metadata) = ask[key].get_mut("metadata").and_then(Value::as_object_mut) {
            for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
                metadata.remove(field);
            }
        }
    }
    ask.sort_all_objects();
    ask
}
