//! The way of one request.

use std::future::pending;
use std::io;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use kube::client::{Body, DynBody};
use serde_json::{Value, json};
use stanchion_sandbox::InProcessService;
use tokio::time::sleep;
use tower::{BoxError, Service};

use super::request::{Asked, with_body};
use super::{Lease, Network, stream};
use crate::disturbance::{Effect, Moment, Which};
use crate::scenario::CANARY;

type Answer = Response<Box<DynBody>>;

/// A replica's connection to the API server.
#[derive(Clone)]
pub struct Wire {
    network: Network,
    replica: usize,
    service: InProcessService,
}

impl Wire {
    pub(super) fn new(network: Network, replica: usize, service: InProcessService) -> Self {
        Self {
            network,
            replica,
            service,
        }
    }
}

impl Service<Request<Body>> for Wire {
    type Response = Answer;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Answer, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let wire = self.clone();
        Box::pin(async move { wire.carry(request).await })
    }
}

impl Wire {
    async fn carry(mut self, request: Request<Body>) -> Result<Answer, BoxError> {
        let (parts, body) = request.into_parts();
        let body = body.collect_bytes().await?;
        let asked = Asked::of(&parts);
        let like = asked.like(self.replica);
        let effect = self.network.strike(asked.which);
        self.network.reached(self.replica).await;
        sleep(self.network.0.latency.next(&like)).await;
        let moment = match effect {
            None => None,
            Some(Effect::Late(more)) => {
                sleep(more).await;
                None
            }
            Some(effect) => Some(effect),
        };
        self.network.reached(self.replica).await;
        if self.network.state().away {
            return Err(broken("the API server is away"));
        }
        if let Some(answer) = self.before(&asked, moment).await? {
            return Ok(answer);
        }
        let answer = self.serve(&asked, with_body(parts, body)).await?;
        sleep(self.network.0.latency.next(&like)).await;
        self.network.reached(self.replica).await;
        self.after(&asked, moment, answer).await
    }

    async fn before(&self, asked: &Asked, effect: Option<Effect>) -> Result<Option<Answer>, BoxError> {
        match effect {
            Some(Effect::Answer(status, Moment::Before)) => {
                self.disturbed(asked, &format!("is answered {status}"));
                Ok(Some(refusal(status)))
            }
            Some(Effect::Break(Moment::Before)) => {
                self.disturbed(asked, "is cut");
                Err(broken("the connection broke before the request was sent"))
            }
            Some(Effect::Silence(Moment::Before)) => {
                self.disturbed(asked, "is lost");
                pending().await
            }
            _ => Ok(None),
        }
    }

    async fn after(&self, asked: &Asked, effect: Option<Effect>, answer: Answer) -> Result<Answer, BoxError> {
        match effect {
            Some(Effect::Answer(status, Moment::After)) => {
                self.disturbed(asked, &format!("is done and answered {status}"));
                Ok(refusal(status))
            }
            Some(Effect::Break(Moment::After)) => {
                self.disturbed(asked, "is done and cut");
                Err(broken("the connection broke before the answer came"))
            }
            Some(Effect::Silence(Moment::After)) => {
                self.disturbed(asked, "is done and its answer lost");
                pending().await
            }
            Some(Effect::LateAnswer(more)) => {
                sleep(more).await;
                Ok(answer)
            }
            _ => Ok(answer),
        }
    }

    /// The server does it.
    async fn serve(&mut self, asked: &Asked, request: Request<Bytes>) -> Result<Answer, BoxError> {
        let claim = (asked.which == Which::Lease && asked.writes()).then(|| request.body().clone());
        if asked.writes() && claim.is_none() {
            self.check(asked, request.body());
        }
        let request = request.map(Full::new);
        let answer = self.service.call(request).await.map_err(|never| match never {})?;
        let (status, path) = (answer.status(), &asked.path);
        let note = format!("{} {} {path} -> {}", self.replica, asked.method, status.as_u16());
        self.network.record().note(&note);
        // What keeps failing is tried again and again, and each time its Event is counted: that is rest, too.
        let repeats = asked.which == Which::Event && asked.method == Method::PATCH;
        if asked.writes() && claim.is_none() && status.is_success() && !repeats {
            self.network.record().wrote(&format!("{} {path}", asked.method));
        }
        if let Some(body) = claim.filter(|_| status.is_success()) {
            self.leased(&body);
        }
        if asked.is_watch() && status == StatusCode::OK {
            let like = asked.like(self.replica);
            return Ok(stream::delayed(&self.network, self.replica, &like, answer));
        }
        Ok(answer.map(|body| Box::new(body.map_err(BoxError::from)) as Box<DynBody>))
    }

    /// What holds of every write.
    fn check(&self, asked: &Asked, body: &Bytes) {
        let record = self.network.record();
        record.leads(self.replica, &asked.path);
        let text = String::from_utf8_lossy(body);
        if text.contains(CANARY) && !asked.path.contains("/secrets") {
            record.violate(format!("a secret is written to {}: {text}", asked.path));
        }
    }

    fn leased(&self, body: &Bytes) {
        let lease: Value = serde_json::from_slice(body).unwrap_or_default();
        let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
        let held = if holder.is_empty() {
            Lease::Free
        } else {
            Lease::Held(self.replica)
        };
        self.network.record().leased(held);
    }

    fn disturbed(&self, asked: &Asked, how: &str) {
        let Asked { method, path, .. } = asked;
        let line = format!("{} {method} {path} {how}", self.replica);
        self.network.record().note(&line);
    }
}

fn broken(why: &str) -> BoxError {
    io::Error::new(io::ErrorKind::ConnectionReset, why.to_owned()).into()
}

/// An error as the API server words it.
fn refusal(status: u16) -> Answer {
    let reason = match status {
        409 => "Conflict",
        410 => "Expired",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "InternalError",
    };
    let body = json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "metadata": {},
        "code": status, "reason": reason, "message": "simulated",
    });
    let body = Full::new(Bytes::from(body.to_string())).map_err(BoxError::from);
    let mut answer: Answer = Response::new(Box::new(body));
    *answer.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if status == 429 {
        answer.headers_mut().insert(http::header::RETRY_AFTER, 1.into());
    }
    answer
}
