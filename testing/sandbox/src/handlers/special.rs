//! Subresources other than status and scale.

use std::sync::Arc;

use serde_json::{Value, json};

use super::update::{self, Endpoint};
use super::{DeleteOptions, body, delete_object, logs, render, tokens};
use crate::answer::{self, Answer};
use crate::error::{About, ApiError};
use crate::lifecycle;
use crate::request::{Call, Verb};
use crate::server::Server;
use crate::store::{Object, text};

pub(crate) async fn subresource(server: &Arc<Server>, call: &Call) -> Result<Answer, ApiError> {
    match (call.target.plural.as_str(), call.target.subresource.as_str()) {
        ("serviceaccounts", "token") => tokens::request(server, call),
        ("namespaces", "finalize") => finalize(server, call),
        ("pods", "eviction") => evict(server, call).await,
        ("pods", "binding") => bind(server, call).await,
        ("pods", "log") => logs::logs(server, call),
        ("pods", "ephemeralcontainers" | "resize") => match call.verb {
            Verb::Get => Ok(render::object(server, call, 200, &*super::find(server, call)?)),
            _ => Err(unsupported(call)),
        },
        _ => Err(unsupported(call)),
    }
}

fn unsupported(call: &Call) -> ApiError {
    ApiError::new(
        501,
        "NotImplemented",
        format!(
            "the sandbox simulates workloads and has no {} of {}",
            call.target.subresource, call.target.plural
        ),
    )
}

/// Removes the finalizers in the spec of a namespace, and deletes it when none is left.
fn finalize(server: &Arc<Server>, call: &Call) -> Result<Answer, ApiError> {
    let wanted = body::parse(call)?;
    let old = super::find(server, call)?;
    let mut new = old.value().clone();
    new["spec"]["finalizers"] = wanted
        .pointer("/spec/finalizers")
        .cloned()
        .unwrap_or_else(|| json!([]));
    let errors = lifecycle::inner_finalizer_errors(&new);
    if !errors.is_empty() {
        let about = About {
            kind: &call.resource.kind,
            ..call.about()
        };
        return Err(ApiError::invalid(about, &errors));
    }
    if call.dry_run()? {
        return Ok(render::object(server, call, 200, &Object::unsaved(new)));
    }
    let written = update::commit(server, call, &old, new).ok_or_else(|| ApiError::stale(call.about()))?;
    Ok(render::object(server, call, 200, &written))
}

/// The response for a success without an object.
fn made() -> Answer {
    answer::json(
        201,
        &json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
    )
}

/// Deletes a pod with the options of the eviction.
async fn evict(server: &Arc<Server>, call: &Call) -> Result<Answer, ApiError> {
    let eviction = body::parse(call)?;
    if text(&eviction, "/metadata/name") != call.target.name {
        return Err(ApiError::bad_request(
            "name in URL does not match name in Eviction object",
        ));
    }
    let options = eviction.get("deleteOptions").unwrap_or(&Value::Null);
    delete_object(server, call, &DeleteOptions::of(call, Some(options))?).await?;
    Ok(made())
}

async fn bind(server: &Arc<Server>, call: &Call) -> Result<Answer, ApiError> {
    let binding = body::parse(call)?;
    let dry_run = call.dry_run()?;
    loop {
        let old = super::find(server, call)?;
        let mut new = old.value().clone();
        new["spec"]["nodeName"] = json!(text(&binding, "/target/name"));
        if update::write(server, call, Endpoint::Main, &old, new, dry_run, false)
            .await?
            .is_some()
        {
            return Ok(made());
        }
    }
}
