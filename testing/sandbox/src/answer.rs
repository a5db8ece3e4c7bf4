//! Responses: bodies, content types, and errors.

use std::convert::Infallible;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, combinators::UnsyncBoxBody};
use serde_json::Value;

use crate::error::ApiError;

/// The body of every response.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

pub(crate) type Answer = Response<Body>;

/// A complete body.
pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed_unsync()
}

/// Bytes of a media type.
pub(crate) fn bytes(code: u16, content_type: &'static str, bytes: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(full(bytes));
    *answer.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    answer
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}

pub(crate) fn json(code: u16, value: &Value) -> Answer {
    bytes(code, "application/json", value.to_string())
}

pub(crate) fn yaml(code: u16, value: &Value) -> Answer {
    bytes(
        code,
        "application/yaml",
        serde_saphyr::to_string(value).unwrap_or_default(),
    )
}

/// Adds the warnings that kubectl shows.
pub(crate) fn with_warnings(mut answer: Answer, warnings: &[String]) -> Answer {
    for warning in warnings {
        let text = format!("299 - \"{}\"", warning.replace('\\', "\\\\").replace('"', "\\\""));
        if let Ok(value) = HeaderValue::from_str(&text) {
            answer.headers_mut().append(http::header::WARNING, value);
        }
    }
    answer
}

impl From<ApiError> for Answer {
    fn from(error: ApiError) -> Self {
        if error.code == 404 && error.reason.is_empty() {
            return bytes(404, "text/plain; charset=utf-8", error.message);
        }
        let mut answer = json(error.code, &error.to_status());
        if let Some(seconds) = error.details.get("retryAfterSeconds")
            && let Ok(value) = HeaderValue::from_str(&seconds.to_string())
        {
            answer.headers_mut().insert(http::header::RETRY_AFTER, value);
        }
        with_warnings(answer, &error.warnings)
    }
}
