//! A timeout for each request, from the first byte sent to the last byte read.
//!
//! It includes the body: an API server, or a proxy before it, that sends the headers and then nothing would otherwise
//! block a list forever. For a stream (a watch, a followed log) the timeout covers the headers only; the body has no
//! end, and its reader detects silence.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use kube::client::{Body, DynBody};
use thiserror::Error;
use tokio::time::{Sleep, sleep};
use tower::{BoxError, Layer, Service};

use crate::telemetry::api_calls::is_stream;

/// The API server did not answer in time. It is unknown whether it processed the request.
#[derive(Clone, Debug, Error)]
#[error("the API server did not answer {method} {path} within {within:?}")]
pub struct DeadlineExceeded {
    method: Method,
    path: String,
    within: Duration,
}

/// The layer. See the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct DeadlineLayer {
    within: Duration,
}

impl DeadlineLayer {
    /// A layer with this timeout for each request.
    pub fn new(within: Duration) -> Self {
        Self { within }
    }
}

impl<S> Layer<S> for DeadlineLayer {
    type Service = Deadline<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Deadline {
            inner,
            within: self.within,
        }
    }
}

/// A service with a timeout for its responses.
#[derive(Clone, Debug)]
pub struct Deadline<S> {
    inner: S,
    within: Duration,
}

impl<S> Service<Request<Body>> for Deadline<S>
where
    S: Service<Request<Body>, Response = Response<Box<DynBody>>, Error = BoxError>,
    S::Future: Send + 'static,
{
    type Response = Response<Bounded>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let endless = is_stream(&request);
        let exceeded = DeadlineExceeded {
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            within: self.within,
        };
        let mut timer = Box::pin(sleep(self.within));
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = tokio::select! {
                biased;
                answer = answer => answer?,
                () = &mut timer => return Err(exceeded.into()),
            };
            let limit = (!endless).then_some(Limit { timer, exceeded });
            Ok(answer.map(|inner| Bounded { inner, limit }))
        })
    }
}

struct Limit {
    timer: Pin<Box<Sleep>>,
    exceeded: DeadlineExceeded,
}

/// A body that must be read before the deadline.
pub struct Bounded {
    inner: Box<DynBody>,
    limit: Option<Limit>,
}

impl HttpBody for Bounded {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(cx) {
            return Poll::Ready(frame);
        }
        let Some(limit) = &mut self.limit else {
            return Poll::Pending;
        };
        std::task::ready!(limit.timer.as_mut().poll(cx));
        Poll::Ready(Some(Err(limit.exceeded.clone().into())))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
