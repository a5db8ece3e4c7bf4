//! Non-resource paths: health, version, discovery and `OpenAPI`.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request};

use crate::answer::{self, Answer};
use crate::auth::User;
use crate::auth::rbac::Attributes;
use crate::data;
use crate::discovery;
use crate::error::ApiError;
use crate::openapi;
use crate::request::Form;
use crate::server::Server;

pub(crate) fn answer(
    server: &Arc<Server>,
    user: &User,
    request: &Request<Bytes>,
) -> Result<Answer, ApiError> {
    let path = request.uri().path();
    let verb = request.method().as_str().to_lowercase();
    let attributes = Attributes {
        verb: &verb,
        path: Some(path),
        ..Attributes::default()
    };
    server.authorize(user, &attributes)?;
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return Err(ApiError::method_not_allowed());
    }
    let accept = request
        .headers()
        .get("accept")
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    if let ["api" | "apis", _, ..] = parts.as_slice() {
        // Only the root paths are served in the aggregated format.
        Form::negotiate(request.headers()).map_err(ApiError::bare)?;
    }
    match parts.as_slice() {
        ["healthz" | "livez" | "readyz", ..] => Ok(answer::bytes(200, "text/plain; charset=utf-8", "ok")),
        ["version"] => Ok(answer::json(200, data::version())),
        ["api"] if discovery::wants_aggregated(accept) => Ok(discovery::aggregated(server, true)),
        ["apis"] if discovery::wants_aggregated(accept) => Ok(discovery::aggregated(server, false)),
        ["api"] => Ok(discovery::core_versions()),
        ["apis"] => Ok(discovery::groups(server)),
        ["api", version] => discovery::resources(server, "", version),
        ["apis", group] => discovery::group(server, group),
        ["apis", group, version] => discovery::resources(server, group, version),
        ["openapi", "v2"] => Ok(openapi::second(accept)),
        ["openapi", "v3"] => Ok(openapi::index(server)),
        ["openapi", "v3", rest @ ..] => Ok(openapi::document(server, &rest.join("/"))),
        [""] => Ok(answer::json(
            200,
            &serde_json::json!({
                "paths": ["/api", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"],
            }),
        )),
        _ => Err(ApiError::page_not_found()),
    }
}
