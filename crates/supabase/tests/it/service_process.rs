//! A real Supabase service as a process, with only the environment that it is given.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use stanchion_testkit::process::{Launch, Process};
use stanchion_testkit::scratch::Scratch;
use stanchion_testkit::wait;

use crate::test_env::Pod;

/// Timeout of a start: a service migrates first, and test machines are slow and busy.
const STARTED_WITHIN: Duration = Duration::from_mins(2);

/// A running service; it ends when this is dropped.
pub(crate) struct Service {
    process: Process,
    base: String,
    _scratch: Scratch,
}

impl Service {
    /// Starts `program`, and waits until `health` answers on the port.
    pub(crate) async fn start(
        program: &Path,
        arguments: &[&str],
        environment: &BTreeMap<String, String>,
        port: u16,
        health: &str,
    ) -> Self {
        let scratch = Scratch::new("stanchion-service-").unwrap();
        let mut launch = Launch::new(program, scratch.path().join("log"))
            .args(arguments.iter().copied())
            .directory(scratch.path());
        for (name, value) in environment {
            launch = launch.env(name, value);
        }
        let mut service = Self {
            process: launch.spawn().unwrap(),
            base: format!("http://127.0.0.1:{port}"),
            _scratch: scratch,
        };
        service.is_up(health).await;
        service
    }

    /// Starts `program` like the pods of its Deployment, with these variables instead of those that cannot apply on one
    /// machine, and waits until the pod's own probe finds it ready.
    pub(crate) async fn of(
        program: &Path,
        arguments: &[&str],
        pod: &Pod,
        instead: &[(&str, &str)],
        port: u16,
    ) -> Self {
        let mut environment = pod.environment.clone();
        environment.extend(
            instead
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into())),
        );
        Self::start(program, arguments, &environment, port, &pod.readiness_path()).await
    }

    async fn is_up(&mut self, health: &str) {
        let health = format!("{}{health}", self.base);
        wait::eventually(STARTED_WITHIN, &health, || {
            // A process that has ended will not answer: its log says why.
            self.process
                .check_alive()
                .unwrap_or_else(|error| panic!("{error}"));
            answers(&health)
        })
        .await;
    }

    /// Sends a request, and returns the answer's JSON.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        bearer: Option<&str>,
        body: Option<&Value>,
    ) -> (StatusCode, Value) {
        let bearer = bearer.map(|bearer| ("authorization", format!("Bearer {bearer}")));
        self.send_with(method, path, bearer, body).await
    }

    /// The same with an additional header.
    pub(crate) async fn send_with(
        &self,
        method: Method,
        path: &str,
        header: Option<(&'static str, String)>,
        body: Option<&Value>,
    ) -> (StatusCode, Value) {
        let (status, body) = self.answer(method, path, header, body).await;
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    /// Reads a path, and returns the answer's bytes.
    pub(crate) async fn fetch(&self, path: &str) -> (StatusCode, Bytes) {
        self.answer(Method::GET, path, None, None).await
    }

    async fn answer(
        &self,
        method: Method,
        path: &str,
        header: Option<(&'static str, String)>,
        body: Option<&Value>,
    ) -> (StatusCode, Bytes) {
        let url = format!("{}{path}", self.base);
        let answer = try_send(method, &url, header, body).await;
        answer.unwrap_or_else(|| panic!("no answer from {url}\n{}", self.process.log()))
    }

    /// Sends a request with these headers, and returns the whole answer. Redirects are not followed.
    pub(crate) async fn exchange(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response<Bytes> {
        let url = format!("{}{path}", self.base);
        let mut request = Request::builder().method(method).uri(&url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::from(body.to_owned()))).unwrap();
        let answer = carry(request).await;
        answer.unwrap_or_else(|| panic!("no answer from {url}\n{}", self.process.log()))
    }
}

async fn answers(url: &str) -> Result<(), String> {
    match try_send(Method::GET, url, None, None).await {
        Some((StatusCode::OK, _)) => Ok(()),
        Some((status, _)) => Err(format!("it answers {status}")),
        None => Err("it does not answer".to_owned()),
    }
}

async fn try_send(
    method: Method,
    url: &str,
    header: Option<(&'static str, String)>,
    body: Option<&Value>,
) -> Option<(StatusCode, Bytes)> {
    let mut request = Request::builder()
        .method(method)
        .uri(url)
        .header("content-type", "application/json");
    if let Some((name, value)) = header {
        request = request.header(name, value);
    }
    let body = body.map(Value::to_string).unwrap_or_default();
    let answer = carry(request.body(Full::new(Bytes::from(body))).unwrap()).await?;
    Some((answer.status(), answer.into_body()))
}

async fn carry(request: Request<Full<Bytes>>) -> Option<Response<Bytes>> {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let (head, body) = client.request(request).await.ok()?.into_parts();
    let body = body.collect().await.ok()?.to_bytes();
    Some(Response::from_parts(head, body))
}
