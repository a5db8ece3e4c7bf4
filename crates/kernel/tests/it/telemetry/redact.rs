//! The key of the fingerprints, against an API server with three answers.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, client::Body};
use secrecy::SecretString;
use serde_json::{Value, json};
use stanchion_kernel::{
    client::{self, ApiResponse, Options},
    redact::{InstallKeyError, Verdict, install_key},
    telemetry::Metrics,
};
use tower::{BoxError, ServiceExt as _, service_fn};

/// A store of one Secret. A rival, if there is one, is stored just before the first create arrives.
#[derive(Clone, Default)]
struct Store {
    secret: Arc<Mutex<Option<Value>>>,
    rival: Arc<Mutex<Option<Value>>>,
}

impl Store {
    fn secrets(&self) -> Api<Secret> {
        let store = self.clone();
        let service = service_fn(move |request| {
            let store = store.clone();
            async move { Ok::<_, BoxError>(store.answer(request).await) }
        });
        let client = client::over(
            service.boxed(),
            "default",
            &Metrics::new("1"),
            &Options::new("test"),
        );
        Api::namespaced(client, "operator")
    }

    async fn answer(&self, request: Request<Body>) -> ApiResponse {
        let (parts, body) = request.into_parts();
        let body = body.collect_bytes().await.unwrap();
        let mut secret = self.secret.lock().unwrap();
        if parts.method == Method::POST {
            if let Some(rival) = self.rival.lock().unwrap().take() {
                *secret = Some(rival);
            }
            if secret.is_some() {
                return reply(
                    409,
                    &json!({"kind": "Status", "code": 409, "reason": "AlreadyExists", "message": "x"}),
                );
            }
            *secret = Some(serde_json::from_slice(&body).unwrap());
        }
        match &*secret {
            Some(secret) => reply(200, secret),
            None => reply(
                404,
                &json!({"kind": "Status", "code": 404, "reason": "NotFound", "message": "x"}),
            ),
        }
    }
}

fn reply(status: u16, body: &Value) -> ApiResponse {
    let body = Full::new(Bytes::from(body.to_string())).map_err(BoxError::from);
    Response::builder()
        .status(status)
        .body(Box::new(body) as _)
        .unwrap()
}

fn stored(key: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "marks"}, "data": {"key": key}})
}

#[tokio::test]
async fn a_restart_finds_the_key_and_recognises_fingerprints() {
    let store = Store::default();
    let password = SecretString::from("hunter2");
    let fingerprint =
        install_key(&store.secrets(), "marks")
            .await
            .unwrap()
            .fingerprint("uid", "password", &[&password]);
    assert_eq!(store.secret.lock().unwrap().as_ref().unwrap()["immutable"], true);
    let again = install_key(&store.secrets(), "marks").await.unwrap();
    assert_eq!(
        again.compare(&fingerprint, "uid", "password", &[&password]),
        Verdict::Same
    );
}

#[tokio::test]
async fn two_that_start_at_once_agree_on_one_key() {
    let other = Store::default();
    let fingerprint = install_key(&other.secrets(), "marks")
        .await
        .unwrap()
        .fingerprint("uid", "f", &[]);
    let store = Store::default();
    store
        .rival
        .lock()
        .unwrap()
        .clone_from(&other.secret.lock().unwrap());
    let key = install_key(&store.secrets(), "marks").await.unwrap();
    assert_eq!(key.compare(&fingerprint, "uid", "f", &[]), Verdict::Same);
}

#[tokio::test]
async fn a_secret_that_holds_no_key_is_not_overwritten() {
    for data in ["c2hvcnQ=", ""] {
        let store = Store::default();
        *store.secret.lock().unwrap() = Some(stored(data));
        let error = install_key(&store.secrets(), "marks").await.unwrap_err();
        assert!(matches!(error, InstallKeyError::Unusable { .. }), "{error}");
        assert!(error.to_string().contains("delete it"), "{error}");
        assert_eq!(*store.secret.lock().unwrap(), Some(stored(data)));
    }
}
