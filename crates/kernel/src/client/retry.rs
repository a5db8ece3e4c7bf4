//! Retries reads while the API server is overloaded.
//!
//! A read that fails with 429, 503 or 504 may be repeated at once. A write may not: after a 504 it is unknown whether
//! it happened, and the reconcile must read again before it writes again. The driver retries writes, watches and longer
//! failures, and counts them per object.

use std::time::Duration;

use http::{Method, Request, Response, StatusCode, header::RETRY_AFTER};
use kube::client::Body;
use tokio::time::{Sleep, sleep};
use tower::{BoxError, retry::Policy};

use crate::ambient;
use crate::telemetry::api_calls::is_stream;

/// The delay before each retry, without jitter. Their number is the number of retries.
const WAITS: [Duration; 3] = [
    Duration::from_millis(100),
    Duration::from_millis(400),
    Duration::from_millis(1600),
];

/// If the server asks for a longer pause, the driver waits, not a request that occupies a worker.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The policy. See the [module](self).
#[derive(Clone, Debug, Default)]
pub struct RetryReads {
    tried: usize,
}

impl RetryReads {
    fn next_wait(&mut self, asked: Option<Duration>) -> Option<Duration> {
        let wait = *WAITS.get(self.tried)?;
        self.tried += 1;
        let jittered = wait.mul_f64(0.5 + ambient::fraction() / 2.0);
        match asked {
            Some(asked) if asked > LONGEST_PAUSE => None,
            Some(asked) => Some(asked.max(jittered)),
            None => Some(jittered),
        }
    }
}

impl<B> Policy<Request<Body>, Response<B>, BoxError> for RetryReads {
    type Future = Sleep;

    fn retry(
        &mut self,
        _request: &mut Request<Body>,
        result: &mut Result<Response<B>, BoxError>,
    ) -> Option<Self::Future> {
        let response = result.as_ref().ok()?;
        let busy = matches!(
            response.status(),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT
        );
        let asked = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok());
        let asked = asked
            .and_then(|seconds| seconds.parse().ok())
            .map(Duration::from_secs);
        if busy {
            self.next_wait(asked).map(sleep)
        } else {
            None
        }
    }

    /// A request without a copy is not retried: this excludes writes and watches.
    fn clone_request(&mut self, request: &Request<Body>) -> Option<Request<Body>> {
        if request.method() != Method::GET || is_stream(request) {
            return None;
        }
        let mut copy = Request::new(request.body().try_clone()?);
        copy.method_mut().clone_from(request.method());
        copy.uri_mut().clone_from(request.uri());
        *copy.version_mut() = request.version();
        copy.headers_mut().clone_from(request.headers());
        copy.extensions_mut().clone_from(request.extensions());
        Some(copy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_tries_and_each_wait_are_bounded() {
        let mut policy = RetryReads::default();
        let waits: Vec<_> = std::iter::from_fn(|| policy.next_wait(None)).collect();
        assert_eq!(waits.len(), WAITS.len());
        assert!(
            waits
                .iter()
                .zip(WAITS)
                .all(|(wait, most)| *wait <= most && *wait >= most / 2),
            "{waits:?}"
        );
    }

    #[test]
    fn a_pause_that_the_server_asks_for_is_kept_or_left_to_the_driver() {
        let asked = |seconds| RetryReads::default().next_wait(Some(Duration::from_secs(seconds)));
        assert_eq!(asked(2), Some(Duration::from_secs(2)));
        assert_eq!(asked(30), None);
        assert_eq!(asked(u64::MAX), None);
    }
}
