//! A minimal API server: one Lease with a resourceVersion, over links that can be cut.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::client::{Body, Client};
use serde_json::json;
use stanchion_kernel::client::{ApiResponse, ApiService};
use tower::{BoxError, ServiceExt};

#[derive(Clone, Default)]
pub(crate) struct Store(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    lease: Option<Lease>,
    version: u64,
    conflicts: usize,
}

/// One client's link to the store.
#[derive(Clone)]
pub(crate) struct Link {
    store: Store,
    latency: Duration,
    cut: Arc<AtomicBool>,
}

impl Store {
    pub(crate) fn link(&self, latency: Duration) -> Link {
        Link {
            store: self.clone(),
            latency,
            cut: Arc::default(),
        }
    }

    pub(crate) fn spec(&self) -> LeaseSpec {
        self.0.lock().unwrap().lease.clone().unwrap().spec.unwrap()
    }

    pub(crate) fn conflicts(&self) -> usize {
        self.0.lock().unwrap().conflicts
    }

    /// A replica that held the Lease and is gone.
    pub(crate) fn hold(&self, holder: &str, renewed: &str) {
        let lease = json!({
            "metadata": { "name": "stanchion", "namespace": "default" },
            "spec": { "holderIdentity": holder, "leaseDurationSeconds": 10, "renewTime": renewed, "leaseTransitions": 0 },
        });
        self.0.lock().unwrap().put(serde_json::from_value(lease).unwrap());
    }

    /// As a person does it with `kubectl label`.
    pub(crate) fn touch(&self) {
        let mut state = self.0.lock().unwrap();
        let lease = state.lease.clone().unwrap();
        state.put(lease);
    }

    pub(crate) fn delete(&self) {
        self.0.lock().unwrap().lease = None;
    }
}

impl State {
    fn put(&mut self, mut lease: Lease) -> ApiResponse {
        self.version += 1;
        lease.metadata.resource_version = Some(self.version.to_string());
        self.lease = Some(lease.clone());
        answer(StatusCode::OK, &serde_json::to_value(lease).unwrap())
    }

    fn handle(&mut self, method: &Method, body: &[u8]) -> ApiResponse {
        let version = self
            .lease
            .as_ref()
            .map(|lease| lease.metadata.resource_version.clone());
        match *method {
            Method::GET => match &self.lease {
                Some(lease) => answer(StatusCode::OK, &serde_json::to_value(lease).unwrap()),
                None => status(StatusCode::NOT_FOUND, "NotFound"),
            },
            Method::POST if version.is_some() => {
                self.conflicts += 1;
                status(StatusCode::CONFLICT, "AlreadyExists")
            }
            Method::POST => self.put(serde_json::from_slice(body).unwrap()),
            Method::PUT => {
                let lease: Lease = serde_json::from_slice(body).unwrap();
                if version == Some(lease.metadata.resource_version.clone()) {
                    self.put(lease)
                } else {
                    self.conflicts += 1;
                    status(StatusCode::CONFLICT, "Conflict")
                }
            }
            _ => status(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed"),
        }
    }
}

impl Link {
    /// A cut link answers nothing: requests hang, as they do when packets are dropped.
    pub(crate) fn cut(&self, cut: bool) {
        self.cut.store(cut, SeqCst);
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.service(), "default")
    }

    pub(crate) fn service(&self) -> ApiService {
        let link = self.clone();
        tower::service_fn(move |request: Request<Body>| {
            let link = link.clone();
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect().await.unwrap().to_bytes();
                tokio::time::sleep(link.latency).await;
                if link.cut.load(SeqCst) {
                    std::future::pending::<()>().await;
                }
                let answer = link.store.0.lock().unwrap().handle(&head.method, &body);
                tokio::time::sleep(link.latency).await;
                if link.cut.load(SeqCst) {
                    std::future::pending::<()>().await;
                }
                Ok::<_, BoxError>(answer)
            }
        })
        .boxed()
    }
}

/// A server that accepts everything and records the method.
pub(crate) fn echo(sent: Arc<Mutex<Vec<String>>>) -> ApiService {
    tower::service_fn(move |request: Request<Body>| {
        sent.lock().unwrap().push(request.method().to_string());
        async { Ok::<_, BoxError>(answer(StatusCode::OK, &json!({ "metadata": { "name": "m" } }))) }
    })
    .boxed()
}

fn answer(status: StatusCode, body: &serde_json::Value) -> ApiResponse {
    let body = Full::new(Bytes::from(body.to_string())).map_err(BoxError::from);
    Response::builder()
        .status(status)
        .body(Box::new(body) as _)
        .unwrap()
}

fn status(code: StatusCode, reason: &str) -> ApiResponse {
    answer(
        code,
        &json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": reason, "code": code.as_u16() }),
    )
}
