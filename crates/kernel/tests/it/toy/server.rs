//! A minimal API server for a driver: objects with versions, lists and watches, in memory and with a paused clock, so
//! that minutes of backoff take milliseconds and tests can check them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use futures::channel::mpsc;
use futures::{FutureExt as _, StreamExt as _};
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, StreamBody};
use kube::client::{Body, Client};
use serde_json::{Value, json};
use stanchion_kernel::Scope;
use stanchion_kernel::client::{self, ApiResponse, Options};
use stanchion_kernel::driver::{Environment, Operator, Settings};
use stanchion_kernel::telemetry::Metrics;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tower::{BoxError, ServiceExt as _};

use super::{POKE, Toy, Widget, WidgetSpec, World, environment};

const NAMESPACE: &str = "paused";
const WIDGETS: &str = "/apis/test.stanchion.dev/v1";

/// The server, the external world, and the operator's metrics.
#[derive(Clone)]
pub(crate) struct Server {
    state: Arc<Mutex<State>>,
    pub(crate) world: World,
    pub(crate) metrics: Metrics,
    /// Ends the operators that were started on this server.
    pub(crate) shutdown: CancellationToken,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Value>,
    version: u64,
    watches: Vec<(String, mpsc::UnboundedSender<Bytes>)>,
    calls: Vec<String>,
    /// Method and end of a path, and the answer to such a request: a status, or none at all.
    faults: Vec<(Method, String, Option<u16>)>,
    /// If set: a list of widgets has two pages, and the second one waits for this.
    second_page: Option<watch::Receiver<bool>>,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            state: Arc::default(),
            world: World::default(),
            metrics: Metrics::new("test"),
            shutdown: CancellationToken::new(),
        }
    }
}

impl Server {
    /// Creates a widget, `name` or `namespace/name`.
    pub(crate) fn widget(&self, name: &str, spec: WidgetSpec) {
        let (namespace, plain) = name.split_once('/').unwrap_or((NAMESPACE, name));
        let mut widget = Widget::new(plain, spec);
        widget.metadata.namespace = Some(namespace.into());
        widget.metadata.uid = Some(format!("uid of {name}"));
        widget.metadata.generation = Some(1);
        self.state()
            .put(&path(name), serde_json::to_value(widget).unwrap());
    }

    /// Changes a widget; a changed spec is a new generation.
    pub(crate) fn change(&self, name: &str, change: impl FnOnce(&mut Widget)) {
        let before = self.get(name);
        let mut widget = before.clone();
        change(&mut widget);
        if widget.spec != before.spec {
            widget.metadata.generation = widget.metadata.generation.map(|generation| generation + 1);
        }
        self.state()
            .put(&path(name), serde_json::to_value(widget).unwrap());
    }

    /// Changes a widget's size.
    pub(crate) fn resize(&self, name: &str, size: u32) {
        self.change(name, |widget| widget.spec.size = size);
    }

    /// Changes the annotation that the toy honours.
    pub(crate) fn poke(&self, name: &str) {
        let value = self.state().version.to_string();
        self.change(name, |widget| {
            let annotations = widget.metadata.annotations.get_or_insert_default();
            annotations.insert(POKE.into(), value);
        });
    }

    /// The current state of a widget.
    pub(crate) fn get(&self, name: &str) -> Widget {
        serde_json::from_value(self.state().objects[&path(name)].clone()).unwrap()
    }

    /// Answers requests of this method whose path ends so with an error, or not at all.
    pub(crate) fn fault(&self, method: Method, path_end: &str, answer: Option<u16>) {
        self.state().faults.push((method, path_end.into(), answer));
    }

    /// Removes all faults.
    pub(crate) fn relent(&self) {
        self.state().faults.clear();
    }

    /// Breaks the connections of all watches.
    pub(crate) fn break_watches(&self) {
        for (_, watch) in self.state().watches.drain(..) {
            let _ = watch.unbounded_send(Bytes::from_static(b"nonsense\n"));
        }
    }

    /// Ends all watches as expired: each kind has to be listed again.
    pub(crate) fn expire_watches(&self) {
        for (_, watch) in self.state().watches.drain(..) {
            let status = json!({ "kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old" });
            let line = format!("{}\n", json!({ "type": "ERROR", "object": status }));
            let _ = watch.unbounded_send(line.into());
        }
    }

    /// From now on the last widget of a list is on a separate page, which waits for the sender.
    pub(crate) fn hold_second_page(&self) -> watch::Sender<bool> {
        let (sender, receiver) = watch::channel(false);
        self.state().second_page = Some(receiver);
        sender
    }

    /// Removes a widget without an event.
    pub(crate) fn remove(&self, name: &str) {
        self.state().objects.remove(&path(name));
    }

    /// Number of requests of this method whose path ends so.
    pub(crate) fn calls(&self, method: &Method, path_end: &str) -> usize {
        let is_such = |call: &&String| call.starts_with(method.as_str()) && call.ends_with(path_end);
        self.state().calls.iter().filter(is_such).count()
    }

    /// An operator of the toy on this server.
    pub(crate) fn operator(&self, settings: Settings) -> Operator {
        let environment = Environment {
            shutdown: self.shutdown.clone(),
            ..environment(self.client(), &self.metrics, settings)
        };
        let mut operator = Operator::new(environment);
        let world = self.world.clone();
        operator.add(Toy { world }, &Scope::Namespace(NAMESPACE.into()));
        operator
    }

    /// The same for all namespaces.
    pub(crate) fn operator_everywhere(&self, settings: Settings) -> Operator {
        let environment = Environment {
            shutdown: self.shutdown.clone(),
            ..environment(self.client(), &self.metrics, settings)
        };
        let mut operator = Operator::new(environment);
        let world = self.world.clone();
        operator.add(Toy { world }, &Scope::Cluster);
        operator
    }

    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move { server.serve(request).await }.boxed()
        });
        client::over(service.boxed(), NAMESPACE, &self.metrics, &Options::new("toy"))
    }

    async fn serve(&self, request: Request<Body>) -> Result<ApiResponse, BoxError> {
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let path = head.uri.path().to_owned();
        let fault = {
            let mut state = self.state();
            state.calls.push(format!("{} {path}", head.method));
            let is_meant = |(method, end, _): &&(Method, String, Option<u16>)| {
                *method == head.method && path.ends_with(end.as_str())
            };
            state.faults.iter().find(is_meant).map(|fault| fault.2)
        };
        match fault {
            Some(Some(code)) => return Ok(failure(code)),
            Some(None) => std::future::pending().await,
            None => {}
        }
        let query = head.uri.query().unwrap_or_default();
        let second_page = self.state().second_page.clone();
        if let Some(mut held) = second_page
            && path.ends_with("/widgets")
            && !query.contains("watch=true")
        {
            let last = query.contains("continue=");
            if last {
                held.wait_for(|open| *open).await?;
            }
            return Ok(self.state().page(&path, last));
        }
        let mut state = self.state();
        let watches = head.uri.query().is_some_and(|query| query.contains("watch=true"));
        Ok(match head.method {
            Method::GET if watches => state.watch(&path),
            Method::GET => state.read(&path),
            Method::PATCH => {
                let json_patch = head.headers["content-type"] == "application/json-patch+json";
                state.patch(&path, &serde_json::from_slice(&body)?, json_patch)
            }
            // Events are accepted and dropped.
            _ => answer(StatusCode::CREATED, &serde_json::from_slice(&body)?),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

impl State {
    fn put(&mut self, path: &str, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let known = self.objects.insert(path.into(), object.clone()).is_some();
        let kind = if known { "MODIFIED" } else { "ADDED" };
        let line = format!("{}\n", json!({ "type": kind, "object": object }));
        self.watches.retain(|(collection, watch)| {
            !is_in(collection, path) || watch.unbounded_send(line.clone().into()).is_ok()
        });
        object
    }

    fn read(&self, path: &str) -> ApiResponse {
        if let Some(object) = self.objects.get(path) {
            return answer(StatusCode::OK, object);
        }
        let collection = ["widgets", "configmaps", "secrets"];
        if !collection.iter().any(|name| path.ends_with(name)) {
            return failure(404);
        }
        let is_in = |entry: &(&String, &Value)| is_in(path, entry.0);
        let items: Vec<&Value> = self.objects.iter().filter(is_in).map(|entry| entry.1).collect();
        let metadata = json!({ "resourceVersion": self.version.to_string() });
        answer(StatusCode::OK, &json!({ "metadata": metadata, "items": items }))
    }

    /// All of a list but its last item, or that one.
    fn page(&self, path: &str, last: bool) -> ApiResponse {
        let is_in = |entry: &(&String, &Value)| is_in(path, entry.0);
        let mut items: Vec<&Value> = self.objects.iter().filter(is_in).map(|entry| entry.1).collect();
        let rest = items.split_off(items.len() - 1);
        let version = self.version.to_string();
        let (items, token) = if last { (rest, "") } else { (items, "more") };
        let metadata = json!({ "resourceVersion": version, "continue": token });
        answer(StatusCode::OK, &json!({ "metadata": metadata, "items": items }))
    }

    fn watch(&mut self, path: &str) -> ApiResponse {
        let (sender, lines) = mpsc::unbounded();
        self.watches.push((path.to_owned(), sender));
        let body = StreamBody::new(lines.map(|line| Ok::<_, BoxError>(Frame::data(line))));
        Response::new(Box::new(body))
    }

    fn patch(&mut self, path: &str, wish: &Value, json_patch: bool) -> ApiResponse {
        let path = path.trim_end_matches("/status");
        let mut object = self
            .objects
            .get(path)
            .cloned()
            .unwrap_or_else(|| json!({ "metadata": {} }));
        if json_patch {
            let operations: json_patch::Patch = serde_json::from_value(wish.clone()).unwrap();
            // A missing list is null for a `test`, as on the API server.
            if object["metadata"]["finalizers"].is_null() {
                object["metadata"]["finalizers"] = Value::Null;
            }
            json_patch::patch(&mut object, &operations).unwrap();
        } else {
            json_patch::merge(&mut object, wish);
        }
        answer(StatusCode::OK, &self.put(path, object))
    }
}

fn path(name: &str) -> String {
    let (namespace, name) = name.split_once('/').unwrap_or((NAMESPACE, name));
    format!("{WIDGETS}/namespaces/{namespace}/widgets/{name}")
}

/// Whether an object is in a collection: that of its namespace, or that of all.
fn is_in(collection: &str, object: &str) -> bool {
    let (base, kind) = collection.rsplit_once('/').unwrap_or_default();
    if base.contains("/namespaces/") {
        return object.starts_with(&format!("{collection}/"));
    }
    object.starts_with(base) && object.rsplit('/').nth(1) == Some(kind)
}

fn answer(status: StatusCode, body: &Value) -> ApiResponse {
    let body = Full::new(Bytes::from(body.to_string())).map_err(BoxError::from);
    let response = Response::builder().status(status);
    response.body(Box::new(body) as _).unwrap()
}

/// An error. kube recognises a missing object by the reason and not by the code.
fn failure(code: u16) -> ApiResponse {
    let reason = if code == 404 { "NotFound" } else { "" };
    let body = json!({
        "kind": "Status",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": "no",
        "details": { "name": "it" },
    });
    answer(StatusCode::from_u16(code).unwrap(), &body)
}
