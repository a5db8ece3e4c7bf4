//! Parses an `AdmissionReview`, calls the rule and renders the response.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use futures::FutureExt;
use kube::core::{
    DynamicObject,
    admission::{AdmissionResponse, AdmissionReview},
    response::{Status, StatusCause, StatusDetails, StatusSummary},
};
use tracing::{error, warn};

use super::webhook::{Denial, Outcome, Request, Webhook};

/// The timeout in the webhook configuration ([`super::registration`]); a longer review is useless.
pub(super) const TIMEOUT: Duration = Duration::from_secs(3);

/// Reviews one request. Every error here becomes an HTTP error, which the API server handles by the webhook's failure
/// policy; it never ends the process.
pub(super) async fn review(webhook: &Webhook, body: &[u8]) -> Response {
    let request: Request = match serde_json::from_slice::<AdmissionReview<DynamicObject>>(body) {
        Ok(review) => match review.try_into() {
            Ok(request) => request,
            Err(_) => return fault(StatusCode::BAD_REQUEST, "an AdmissionReview without a request"),
        },
        Err(error) => {
            return fault(
                StatusCode::BAD_REQUEST,
                &format!("not an AdmissionReview: {error}"),
            );
        }
    };
    let request = Arc::new(request);
    let outcome = if is_going(&request) {
        Outcome::Allow { warnings: Vec::new() }
    } else {
        // The rule is called inside of the guarded future: it may panic before it returns one.
        let guarded = AssertUnwindSafe(async { (webhook.handler)(request.clone()).await }).catch_unwind();
        match tokio::time::timeout(TIMEOUT, guarded).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => {
                error!(
                    webhook = webhook.name(),
                    object = request.name,
                    "an admission rule panicked"
                );
                return fault(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "the rule failed; see the operator's log",
                );
            }
            Err(_) => {
                warn!(
                    webhook = webhook.name(),
                    object = request.name,
                    "an admission rule took too long"
                );
                return fault(StatusCode::GATEWAY_TIMEOUT, "the rule took too long");
            }
        }
    };
    match answer(&request, outcome) {
        Ok(response) => axum::Json(response.into_review()).into_response(),
        Err(error) => fault(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

/// API servers before 1.28 do not support the match condition for this.
fn is_going(request: &Request) -> bool {
    request
        .object
        .as_ref()
        .is_some_and(|object| object.metadata.deletion_timestamp.is_some())
}

fn answer(
    request: &Request,
    outcome: Outcome,
) -> Result<AdmissionResponse, kube::core::admission::SerializePatchError> {
    let mut response = AdmissionResponse::from(request);
    match outcome {
        Outcome::Allow { warnings } => response.warnings = Some(warnings).filter(|all| !all.is_empty()),
        Outcome::Change(patch) if patch.0.is_empty() => {}
        Outcome::Change(patch) => return response.with_patch(patch),
        Outcome::Deny(denial) => {
            response.allowed = false;
            response.result = refusal(request, denial);
        }
    }
    Ok(response)
}

/// The same `Status` that the API server returns for an object that violates its schema.
fn refusal(request: &Request, Denial { message, field }: Denial) -> Status {
    let text = match &field {
        Some(field) => format!("{field}: {message}"),
        None => message.clone(),
    };
    // For an invalid object kubectl shows only the causes, each with its field.
    let cause = StatusCause {
        reason: "FieldValueInvalid".into(),
        message,
        field: field.unwrap_or_else(|| "spec".into()),
    };
    Status {
        status: Some(StatusSummary::Failure),
        code: StatusCode::UNPROCESSABLE_ENTITY.as_u16(),
        message: text,
        reason: "Invalid".into(),
        details: Some(StatusDetails {
            name: request.name.clone(),
            group: request.kind.group.clone(),
            kind: request.kind.kind.clone(),
            causes: vec![cause],
            uid: String::new(),
            retry_after_seconds: 0,
        }),
        ..Status::default()
    }
}

fn fault(code: StatusCode, message: &str) -> Response {
    (code, message.to_owned()).into_response()
}
