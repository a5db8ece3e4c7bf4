//! The service that injects faults between a client and the API.

use std::{
    future::{pending, poll_fn},
    io,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode, header::RETRY_AFTER};
use http_body_util::{BodyExt as _, Full};
use kube::client::{Body, DynBody};
use serde_json::json;
use tokio::sync::Mutex;
use tower::{BoxError, Service};

use super::{
    Faults,
    call::{Call, RequestTarget},
    script::{CutPoint, Fault, Moment},
};

type Answer = Response<Box<DynBody>>;

/// A service behind [`Faults`].
pub struct FaultyService<S> {
    faults: Faults,
    /// Shared with pending requests, which may use it late: after a delay, for example.
    inner: Arc<Mutex<S>>,
}

impl<S> FaultyService<S> {
    pub(super) fn new(faults: Faults, inner: S) -> Self {
        Self {
            faults,
            inner: Arc::new(Mutex::new(inner)),
        }
    }
}

impl<S> Service<Request<Body>> for FaultyService<S>
where
    S: Service<Request<Body>, Response = Answer, Error = BoxError> + Send + 'static,
    S::Future: Send + 'static,
{
    type Response = Answer;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Answer, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(serve(self.faults.clone(), self.inner.clone(), request))
    }
}

async fn serve<S>(faults: Faults, inner: Arc<Mutex<S>>, request: Request<Body>) -> Result<Answer, BoxError>
where
    S: Service<Request<Body>, Response = Answer, Error = BoxError> + Send + 'static,
    S::Future: Send + 'static,
{
    let (parts, body) = request.into_parts();
    let body = body.collect_bytes().await?;
    let Some((number, fault)) = faults.admit(&parts, &body) else {
        return pending().await;
    };
    let forward = async {
        let _under_way = UnderWay::begin(&faults);
        let request = Request::from_parts(parts, Body::from(body));
        let answering = {
            let mut inner = inner.lock().await;
            poll_fn(|context| inner.poll_ready(context)).await?;
            inner.call(request)
        };
        let answer = answering.await?;
        faults.served(number, answer.status());
        Ok::<_, BoxError>(answer)
    };
    match fault {
        None => forward.await,
        Some(Fault::Delay(time)) => {
            tokio::time::sleep(time).await;
            forward.await
        }
        Some(Fault::Answer {
            status,
            retry_after,
            moment,
        }) => {
            happen(moment, forward).await?;
            Ok(refusal(status, retry_after))
        }
        Some(Fault::Disconnect(moment)) => {
            happen(moment, forward).await?;
            Err(io::Error::new(
                io::ErrorKind::ConnectionReset,
                "the connection was cut by the test",
            )
            .into())
        }
        Some(Fault::Hang(moment)) => {
            happen(moment, forward).await?;
            pending().await
        }
        Some(Fault::Cut(CutPoint::Before)) => {
            faults.0.cut.send_replace(true);
            pending().await
        }
        Some(Fault::Cut(CutPoint::Unanswered)) => {
            // Ignores an error of the server: an operator that is cut off does not get it.
            let _ = happen(Moment::After, forward).await;
            faults.0.cut.send_replace(true);
            pending().await
        }
        Some(Fault::Cut(CutPoint::Answered)) => {
            let answer = forward.await;
            faults.0.cut.send_replace(true);
            answer
        }
    }
}

/// Counts a pending request until the server answers or the client gives up.
struct UnderWay<'a>(&'a Faults);

impl<'a> UnderWay<'a> {
    fn begin(faults: &'a Faults) -> Self {
        faults.0.under_way.send_modify(|requests| *requests += 1);
        Self(faults)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.0.under_way.send_modify(|requests| *requests -= 1);
    }
}

/// Forwards the request if the fault happens after it was processed. Waits for the whole answer: only then is the
/// request known to be processed.
async fn happen(
    moment: Moment,
    forward: impl Future<Output = Result<Answer, BoxError>>,
) -> Result<(), BoxError> {
    if moment == Moment::After {
        forward.await?.into_body().collect().await?;
    }
    Ok(())
}

impl Faults {
    /// Records a request and finds its fault. No request passes after the one that is cut, not even while that one is
    /// pending.
    fn admit(&self, parts: &http::request::Parts, body: &[u8]) -> Option<(usize, Option<Fault>)> {
        let target = RequestTarget::of(parts.uri.path(), body);
        let writes = [Method::POST, Method::PUT, Method::PATCH, Method::DELETE].contains(&parts.method)
            && !target.is_review()
            && (self.0.counts)(&target);
        let mut state = self.0.state.lock().unwrap();
        if state.closed {
            return None;
        }
        state.writes += usize::from(writes);
        let mut call = Call {
            number: state.calls.len() + 1,
            write: writes.then_some(state.writes),
            method: parts.method.clone(),
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            target,
            served: None,
            disturbed: false,
        };
        let fault = state.rules.iter_mut().find_map(|rule| rule.apply(&call));
        call.disturbed = fault.is_some();
        state.closed = matches!(fault, Some(Fault::Cut(_)));
        let number = call.number;
        state.calls.push(call);
        self.0.activity.send_replace((number, state.writes));
        Some((number, fault))
    }

    fn served(&self, number: usize, status: StatusCode) {
        if let Some(call) = self.0.state.lock().unwrap().calls.get_mut(number - 1) {
            call.served = Some(status.as_u16());
        }
    }
}

/// An error in the format of Kubernetes.
fn refusal(status: u16, retry_after: Option<u32>) -> Answer {
    let reason = match status {
        403 => "Forbidden",
        404 => "NotFound",
        409 => "Conflict",
        410 => "Expired",
        422 => "Invalid",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "",
    };
    let body = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": format!("a fault of the test: {reason}"),
        "reason": reason,
        "code": status,
    });
    let mut answer = Response::builder()
        .status(status)
        .header("content-type", "application/json");
    if let Some(seconds) = retry_after {
        answer = answer.header(RETRY_AFTER, seconds);
    }
    let body = Full::new(Bytes::from(body.to_string())).map_err(BoxError::from);
    answer
        .body(Box::new(body) as Box<DynBody>)
        .expect("a status between 100 and 999")
}
