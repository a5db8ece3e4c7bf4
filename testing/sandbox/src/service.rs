//! The in-process service: a tower service that `kube::Client` uses without a socket, so that time can be paused.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use http_body_util::BodyExt as _;
use tower::Service;

use crate::answer::Body;
use crate::auth::User;
use crate::error::ApiError;
use crate::server::Server;

/// The in-process service for a client. All its requests have one user, unless they have a token.
#[derive(Debug, Clone)]
pub struct InProcessService {
    server: Arc<Server>,
    user: Option<User>,
}

impl InProcessService {
    pub(crate) fn new(server: Arc<Server>, user: Option<User>) -> Self {
        Self { server, user }
    }
}

impl<B> Service<Request<B>> for InProcessService
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: std::fmt::Display,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Self { server, user } = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = match body.collect().await {
                Ok(body) => body.to_bytes(),
                Err(error) => {
                    let error = ApiError::bad_request(format!("the body ended early: {error}"));
                    return Ok(Response::from(error));
                }
            };
            Ok(server
                .handle(Request::from_parts(parts, body), user.as_ref())
                .await)
        })
    }
}
