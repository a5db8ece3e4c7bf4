//! Admission: checks beyond validation. Namespace lifecycle, webhooks, policies, and quotas.

mod call;
mod expressions;
mod policy;
pub(crate) mod quota;
mod rules;

use serde_json::{Value, json};

pub(crate) use call::Webhooks;

use crate::error::{About, ApiError};
use crate::request::Call;
use crate::server::Server;
use crate::store::text;
use expressions::{Subject, Variables};
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

/// Nothing can be created in a namespace that does not exist or is being deleted.
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

/// A creation, change or deletion.
#[derive(Clone, Copy)]
pub(crate) struct Attempt<'a> {
    pub(crate) server: &'a Server,
    pub(crate) call: &'a Call,
    pub(crate) operation: Operation,
    /// The new state; null for a deletion.
    pub(crate) object: &'a Value,
    pub(crate) old: Option<&'a Value>,
    pub(crate) dry_run: bool,
}

impl<'a> Attempt<'a> {
    /// The name of the object. A new object contains it itself.
    pub(crate) fn name(&self) -> &'a str {
        match self.call.target.name.as_str() {
            "" => text(self.object, "/metadata/name"),
            name => name,
        }
    }
}

/// Lets the mutating webhooks change an object.
pub(crate) async fn mutate(attempt: Attempt<'_>, warnings: &mut Vec<String>) -> Result<Value, ApiError> {
    let mut object = attempt.object.clone();
    for webhook in rules::matching(attempt, "mutatingwebhookconfigurations") {
        let now = Attempt {
            object: &object,
            ..attempt
        };
        let Some(response) = ask(now, &webhook, warnings).await? else {
            continue;
        };
        if let Some(patch) = response.get("patch").filter(|patch| !patch.is_null()) {
            object = rules::patched(&object, patch).map_err(|why| {
                ApiError::internal(format!("failed calling webhook \"{}\": {why}", webhook.name))
            })?;
            if let (Some(custom), true) = (&attempt.call.resource.custom, object.is_object()) {
                custom.normalize(&mut object);
            }
        }
    }
    Ok(object)
}

/// Calls the policies and the validating webhooks for an object.
pub(crate) async fn validate(attempt: Attempt<'_>, warnings: &mut Vec<String>) -> Result<(), ApiError> {
    policy::check(attempt, warnings)?;
    for webhook in rules::matching(attempt, "validatingwebhookconfigurations") {
        ask(attempt, &webhook, warnings).await?;
    }
    Ok(())
}

/// Calls one webhook. `None` if it does not match the request, or failed and may be ignored.
async fn ask(
    attempt: Attempt<'_>,
    webhook: &Webhook,
    warnings: &mut Vec<String>,
) -> Result<Option<Value>, ApiError> {
    let object = rules::shown_in(&webhook.resource, attempt.call, attempt.object);
    let old = attempt
        .old
        .map(|old| rules::shown_in(&webhook.resource, attempt.call, old));
    let attempt = Attempt {
        object: &object,
        old: old.as_deref(),
        ..attempt
    };
    let meets = || Subject::new(attempt, None).meets(Some(&webhook.conditions), &Variables::default());
    match webhook.conditions.as_array().map_or(Ok(true), |_| meets()) {
        Ok(true) => {}
        Ok(false) => return Ok(None),
        Err(_) if webhook.ignores_failure => return Ok(None),
        Err(why) => {
            return Err(ApiError::forbidden(
                About {
                    name: attempt.name(),
                    ..attempt.call.about()
                },
                &why,
            ));
        }
    }
    if attempt.dry_run && !webhook.allows_dry_run {
        return Err(ApiError::bad_request(format!(
            "admission webhook \"{}\" does not support dry run",
            webhook.name
        )));
    }
    let review = rules::review(attempt, &webhook.resource);
    let response = match attempt.server.webhooks.post(webhook, &review).await {
        Ok(response) => response,
        Err(why) if webhook.ignores_failure => {
            tracing::debug!(webhook = webhook.name, why, "webhook failed and is ignored");
            return Ok(None);
        }
        Err(why) => {
            return Err(ApiError::internal(format!(
                "failed calling webhook \"{}\": {why}",
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
    let code = code.filter(|code| *code >= 400).unwrap_or(400);
    let mut error =
        ApiError::new(code, text(&response, "/status/reason").to_owned(), message).after(warnings);
    error.bare = true;
    if let Some(Value::Object(details)) = response.pointer("/status/details") {
        error.details = Box::new(details.clone());
    }
    Err(error)
}
