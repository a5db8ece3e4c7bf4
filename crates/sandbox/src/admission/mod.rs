//! Admission: what may enter besides being valid. The life of namespaces, and webhooks.

mod call;
mod rules;

use std::sync::Arc;

use serde_json::{Value, json};

pub(crate) use call::Webhooks;

use crate::error::{About, ApiError};
use crate::request::Call;
use crate::server::Server;
use crate::store::text;
use rules::Webhook;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
}

impl Operation {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// Namespaces that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Nothing is created where there is no namespace, or where it is about to go.
pub(crate) fn namespace_lifecycle(
    server: &Server,
    call: &Call,
    operation: Operation,
) -> Result<(), ApiError> {
    let namespace = call.namespace();
    if operation == Operation::Delete {
        if &*call.resource.storage == "/namespaces" && IMMORTAL.contains(&call.target.name.as_str()) {
            return Err(ApiError::forbidden(
                call.about(),
                "this namespace may not be deleted",
            ));
        }
        return Ok(());
    }
    if namespace.is_empty() {
        return Ok(());
    }
    let Some(object) = server.store.get("/namespaces", &namespace) else {
        return Err(ApiError::not_found(About {
            group: "",
            kind: "namespaces",
            name: &namespace,
        }));
    };
    if object.is_deleting() && operation == Operation::Create {
        let name = match call.target.name.as_str() {
            "" => serde_json::from_slice::<Value>(&call.body)
                .ok()
                .map(|body| text(&body, "/metadata/name").to_owned()),
            name => Some(name.to_owned()),
        };
        let name = name.unwrap_or_default();
        let about = About {
            group: &call.resource.group,
            kind: &call.resource.plural,
            name: &name,
        };
        let why =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut error = ApiError::forbidden(about, &why);
        error.details.insert("causes".to_owned(), json!([{
            "reason": "NamespaceTerminating", "message": format!("namespace {namespace} is being terminated"),
            "field": "metadata.namespace",
        }]));
        return Err(error);
    }
    Ok(())
}

/// Lets the mutating webhooks change an object.
pub(crate) async fn mutate(
    server: &Arc<Server>,
    call: &Call,
    operation: Operation,
    mut object: Value,
    old: Option<&Value>,
    dry_run: bool,
    warnings: &mut Vec<String>,
) -> Result<Value, ApiError> {
    for webhook in rules::matching(
        server,
        call,
        operation,
        &object,
        old,
        "mutatingwebhookconfigurations",
    ) {
        let Some(response) = ask(server, call, &webhook, operation, &object, old, dry_run, warnings).await?
        else {
            continue;
        };
        if let Some(patch) = response.get("patch").filter(|patch| !patch.is_null()) {
            object = rules::patched(&object, patch).map_err(|why| {
                ApiError::internal(format!("failed calling webhook \"{}\": {why}", webhook.name))
            })?;
            if let (Some(custom), true) = (&call.resource.custom, object.is_object()) {
                custom.normalize(&mut object);
            }
        }
    }
    Ok(object)
}

/// Asks the validating webhooks whether an object may enter, or go.
pub(crate) async fn validate(
    server: &Arc<Server>,
    call: &Call,
    operation: Operation,
    object: &Value,
    old: Option<&Value>,
    dry_run: bool,
    warnings: &mut Vec<String>,
) -> Result<(), ApiError> {
    for webhook in rules::matching(
        server,
        call,
        operation,
        object,
        old,
        "validatingwebhookconfigurations",
    ) {
        ask(server, call, &webhook, operation, object, old, dry_run, warnings).await?;
    }
    Ok(())
}

/// Calls one webhook. `None` if it failed and may be ignored.
#[allow(clippy::too_many_arguments)] // The parts of an AdmissionReview, each from somewhere else.
async fn ask(
    server: &Arc<Server>,
    call: &Call,
    webhook: &Webhook,
    operation: Operation,
    object: &Value,
    old: Option<&Value>,
    dry_run: bool,
    warnings: &mut Vec<String>,
) -> Result<Option<Value>, ApiError> {
    if dry_run && !webhook.allows_dry_run {
        return Err(ApiError::bad_request(format!(
            "admission webhook \"{}\" does not support dry run",
            webhook.name
        )));
    }
    let review = rules::review(server, call, operation, object, old, dry_run);
    let response = match server.webhooks.post(webhook, &review).await {
        Ok(response) => response,
        Err(why) if webhook.ignores_failure => {
            tracing::debug!(webhook = webhook.name, why, "webhook failed and is ignored");
            return Ok(None);
        }
        Err(why) => {
            return Err(ApiError::internal(format!(
                "failed calling webhook \"{}\": failed to call webhook: {why}",
                webhook.name
            )));
        }
    };
    let said = response
        .get("warnings")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    warnings.extend(said.filter_map(|warning| warning.as_str().map(str::to_owned)));
    if response
        .get("allowed")
        .and_then(Value::as_bool)
        .unwrap_or_default()
    {
        return Ok(Some(response));
    }
    let message = match text(&response, "/status/message") {
        "" => match text(&response, "/status/reason") {
            "" => format!(
                "admission webhook \"{}\" denied the request without explanation",
                webhook.name
            ),
            reason => format!(
                "admission webhook \"{}\" denied the request: {reason}",
                webhook.name
            ),
        },
        message => format!(
            "admission webhook \"{}\" denied the request: {message}",
            webhook.name
        ),
    };
    let code = response
        .pointer("/status/code")
        .and_then(Value::as_u64)
        .and_then(|code| u16::try_from(code).ok());
    let code = code.filter(|code| *code >= 400).unwrap_or(403);
    let reason = match (text(&response, "/status/reason"), code) {
        ("Invalid", _) | ("", 422) => "Invalid",
        ("Conflict", _) | ("", 409) => "Conflict",
        ("BadRequest", _) | ("", 400) => "BadRequest",
        _ => "Forbidden",
    };
    let mut error = ApiError::new(code, reason, message);
    if let Some(Value::Object(details)) = response.pointer("/status/details") {
        error.details.clone_from(details);
    }
    Err(error)
}
