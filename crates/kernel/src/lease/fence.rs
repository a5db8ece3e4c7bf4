//! The write fence: without valid leadership, only reads leave this process.
//!
//! Dropping the controllers' future stops their code, but neither spawned tasks nor the client's own retries (kube
//! repeats a POST for minutes). The fence is a layer of the client itself, so nothing can bypass it; for SQL there is
//! [`Fence::check`].

use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Method, Request};
use tokio_util::task::TaskTracker;
use tower::{BoxError, Layer, Service};

use super::{Leadership, NotLeading};

/// A layer for [`crate::client::Options::with_layer`], below the retries and next to the wire. Another client, without
/// a fence, writes the Lease itself.
#[derive(Clone, Debug)]
pub struct Fence {
    leadership: Option<Leadership>,
    tasks: TaskTracker,
}

impl Fence {
    /// Without leader election: allows everything.
    pub fn open() -> Self {
        Self {
            leadership: None,
            tasks: TaskTracker::new(),
        }
    }

    /// Allows writes while `leadership` is valid.
    pub fn guarded_by(leadership: Leadership) -> Self {
        Self {
            tasks: leadership.tasks().clone(),
            leadership: Some(leadership),
        }
    }

    /// The tasks that outlive a pass: the cancellations of its SQL statements. The operator waits for them at its end, and
    /// the elector does after a lost Lease.
    pub fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// To be called right before a write outside of the Kubernetes client.
    pub fn check(&self) -> Result<(), NotLeading> {
        match &self.leadership {
            Some(leadership) if !leadership.is_valid() => Err(NotLeading),
            _ => Ok(()),
        }
    }

    /// Whether a call failed because of the fence, however the error is wrapped.
    pub fn stopped(error: &(dyn std::error::Error + 'static)) -> bool {
        std::iter::successors(Some(error), |error| error.source())
            .any(<dyn std::error::Error>::is::<NotLeading>)
    }
}

impl<S> Layer<S> for Fence {
    type Service = FenceService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        FenceService {
            leadership: self.leadership.clone(),
            inner,
        }
    }
}

/// The service of a client with a [`Fence`].
#[derive(Clone, Debug)]
pub struct FenceService<S> {
    leadership: Option<Leadership>,
    inner: S,
}

impl<S, B> Service<Request<B>> for FenceService<S>
where
    S: Service<Request<B>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<S::Response, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        match self.leadership.clone() {
            Some(leadership) if !reads => {
                // Not even passed to the inner service, which may begin to send in `call`.
                if !leadership.is_valid() {
                    return Box::pin(async { Err(NotLeading.into()) });
                }
                let call = self.inner.call(request);
                Box::pin(async move { leadership.while_valid(call).await?.map_err(Into::into) })
            }
            _ => {
                let call = self.inner.call(request);
                Box::pin(async move { call.await.map_err(Into::into) })
            }
        }
    }
}
