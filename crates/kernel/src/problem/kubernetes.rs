//! Classifies errors of the Kubernetes API. No other code checks status codes.

use std::time::Duration;

use kube::core::Status;
use kube::core::response::StatusSummary;

use super::{Cause, Class, Problem, Retry};

impl From<kube::Error> for Problem {
    fn from(error: kube::Error) -> Self {
        let (class, reason, message) = match &error {
            kube::Error::Api(status) => from_status(status),
            kube::Error::SerdeError(_) | kube::Error::BuildRequest(_) => {
                // An object could not be serialized or deserialized: a retry does not help.
                (
                    Class::Human,
                    "UnreadableAnswer",
                    "Kubernetes' answer could not be read".into(),
                )
            }
            // Everything else is transport: refused, reset, TLS, a truncated body, our own timeout.
            _ => (
                Class::Transient,
                "ApiUnreachable",
                "the Kubernetes API did not answer".into(),
            ),
        };
        let retry = retry_after(&error);
        let cause = cause(&error);
        let mut problem = Self::new(class, reason, message)
            .with_cause(cause)
            .caused_by(error);
        problem.retry = retry;
        problem
    }
}

fn from_status(status: &Status) -> (Class, &'static str, String) {
    let said = said(status);
    match status.code {
        // The object changed in the meantime: the next pass reads it again.
        409 => (
            Class::Transient,
            "Conflict",
            format!("the object changed meanwhile: {said}"),
        ),
        // A JSON patch whose `test` failed returns 422 and not 409: another client changed the finalizers.
        422 if is_lost_race(status) => (
            Class::Transient,
            "Conflict",
            format!("the object changed meanwhile: {said}"),
        ),
        422 if let Some(fields) = immutable_fields(status) => (
            Class::Human,
            "ImmutableField",
            format!(
                "{fields} cannot be changed on an existing object; delete it, and the operator creates it again: {said}"
            ),
        ),
        400 | 422 => (
            Class::Human,
            "Rejected",
            format!("Kubernetes rejected the object: {said}"),
        ),
        401 => (
            Class::Human,
            "Unauthorized",
            format!("Kubernetes rejected the operator's credentials: {said}"),
        ),
        403 if is_terminating(status) => (
            Class::Transient,
            "NamespaceTerminating",
            format!("the namespace is being deleted: {said}"),
        ),
        403 if said.contains("exceeded quota") => (
            Class::Human,
            "QuotaExceeded",
            format!("the namespace's quota is used up: {said}"),
        ),
        403 => (
            Class::Human,
            "Forbidden",
            format!("the operator lacks a permission; `stanchion rbac` prints what it needs: {said}"),
        ),
        404 if is_unserved(status) => (
            Class::Dependency,
            "KindMissing",
            format!("the kind is not installed in this cluster: {said}"),
        ),
        404 => (Class::Dependency, "NotFound", said),
        429 => (
            Class::Transient,
            "TooManyRequests",
            format!("Kubernetes asks to slow down: {said}"),
        ),
        _ if status.code >= 500 => (
            Class::Transient,
            "ApiFailed",
            format!("Kubernetes failed: {said}"),
        ),
        _ => (
            Class::Transient,
            "ApiFailed",
            format!("Kubernetes answered {}: {said}", status.code),
        ),
    }
}

/// What the operator itself decides by.
fn cause(error: &kube::Error) -> Cause {
    let kube::Error::Api(status) = error else {
        return Cause::Other;
    };
    match status.code {
        409 => Cause::Conflict,
        422 if is_lost_race(status) => Cause::Conflict,
        403 if !is_terminating(status) && !said(status).contains("exceeded quota") => Cause::Forbidden,
        404 if is_unserved(status) => Cause::KindMissing,
        404 => Cause::NotFound,
        _ => Cause::Other,
    }
}

/// A 404 without details means that the path is not served: the CRD is not installed.
fn is_unserved(status: &Status) -> bool {
    status
        .details
        .as_ref()
        .is_none_or(|details| details.name.is_empty())
}

/// The server's message, or its code if there is none.
fn said(status: &Status) -> String {
    if status.message.is_empty() {
        format!("code {} {}", status.code, status.reason)
    } else {
        status.message.clone()
    }
}

/// Whether a 422 means that another client was faster, and not that the object is invalid.
fn is_lost_race(status: &Status) -> bool {
    // The complete message for a JSON patch whose `test` failed; an invalid object has causes.
    const UNTOLD: &str = "the server rejected our request due to an error in our request";
    (status.message == UNTOLD && causes(status).next().is_none())
        // The write was for a previous object of this name.
        || causes(status).any(|(_, field)| field == "metadata.uid")
        || status
            .message
            .contains("no new finalizers can be added if the object is being deleted")
}

/// Whether the namespace of the object is being deleted.
pub(crate) fn is_terminating(status: &Status) -> bool {
    causes(status).any(|(reason, _)| reason == "NamespaceTerminating")
}

/// The immutable fields, from the server's list of causes.
fn immutable_fields(status: &Status) -> Option<String> {
    // Each kind has its own message for it.
    const WORDS: [&str; 3] = ["immutable", "Forbidden: updates to", "may not change once set"];
    let mut fields: Vec<&str> = status
        .details
        .iter()
        .flat_map(|details| &details.causes)
        .filter(|cause| WORDS.iter().any(|words| cause.message.contains(words)))
        .map(|cause| cause.field.as_str())
        .collect();
    fields.dedup();
    (!fields.is_empty()).then(|| fields.join(", "))
}

fn causes(status: &Status) -> impl Iterator<Item = (&str, &str)> {
    status
        .details
        .iter()
        .flat_map(|details| &details.causes)
        .map(|cause| (cause.reason.as_str(), cause.field.as_str()))
}

/// A delay that the server asks for is used, up to a limit.
fn retry_after(error: &kube::Error) -> Option<Retry> {
    let kube::Error::Api(status) = error else {
        return None;
    };
    let seconds = status
        .details
        .as_ref()
        .map(|details| details.retry_after_seconds)
        .filter(|s| *s > 0)?;
    (status.code == 429 && status.status == Some(StatusSummary::Failure))
        .then(|| Retry::After(Duration::from_secs(u64::from(seconds.min(60)))))
}

#[cfg(test)]
mod tests {
    use kube::core::response::{StatusCause, StatusDetails};

    use super::*;

    fn status(code: u16, message: &str) -> Status {
        Status::failure(message, "").with_code(code)
    }

    fn with_cause(mut status: Status, reason: &str, field: &str, message: &str) -> Status {
        let cause = StatusCause {
            reason: reason.into(),
            field: field.into(),
            message: message.into(),
        };
        status.details = Some(StatusDetails {
            name: "it".into(),
            group: String::new(),
            kind: String::new(),
            uid: String::new(),
            causes: vec![cause],
            retry_after_seconds: 0,
        });
        status
    }

    fn classify(status: Status) -> Problem {
        Problem::from(kube::Error::Api(status.boxed()))
    }

    #[test]
    fn every_code_has_its_class() {
        let named = |code, message: &str| with_cause(status(code, message), "", "", "");
        let cases = [
            (
                named(409, "please apply your changes to the latest version"),
                Class::Transient,
                "Conflict",
            ),
            (
                status(
                    422,
                    "the server rejected our request due to an error in our request",
                ),
                Class::Transient,
                "Conflict",
            ),
            (
                named(
                    422,
                    "no new finalizers can be added if the object is being deleted, found new finalizers",
                ),
                Class::Transient,
                "Conflict",
            ),
            (
                named(422, "spec.replicas: Invalid value"),
                Class::Human,
                "Rejected",
            ),
            (
                with_cause(
                    status(422, "no"),
                    "FieldValueInvalid",
                    "spec.selector",
                    "field is immutable",
                ),
                Class::Human,
                "ImmutableField",
            ),
            (named(429, "slow"), Class::Transient, "TooManyRequests"),
            (named(500, "etcd"), Class::Transient, "ApiFailed"),
            (named(503, "starting"), Class::Transient, "ApiFailed"),
            (named(504, "timeout"), Class::Transient, "ApiFailed"),
            (named(403, "User cannot list secrets"), Class::Human, "Forbidden"),
            (named(403, "exceeded quota: pods"), Class::Human, "QuotaExceeded"),
            (
                with_cause(status(403, "being terminated"), "NamespaceTerminating", "", ""),
                Class::Transient,
                "NamespaceTerminating",
            ),
            (named(401, "Unauthorized"), Class::Human, "Unauthorized"),
            (
                named(404, "secrets \"it\" not found"),
                Class::Dependency,
                "NotFound",
            ),
            (
                status(404, "404 page not found"),
                Class::Dependency,
                "KindMissing",
            ),
        ];
        for (status, class, reason) in cases {
            let shown = format!("{} {}", status.code, status.message);
            let problem = classify(status);
            assert_eq!((problem.class, problem.reason), (class, reason), "{shown}");
        }
    }

    #[test]
    fn an_immutable_field_is_named() {
        let problem = classify(with_cause(
            status(422, "no"),
            "",
            "spec.clusterIP",
            "field is immutable",
        ));
        assert!(
            problem.message.starts_with("spec.clusterIP cannot be changed"),
            "{problem}"
        );
    }

    #[test]
    fn the_servers_retry_after_is_believed_but_bounded() {
        let mut slow = with_cause(status(429, "slow"), "", "", "");
        slow.details.as_mut().unwrap().retry_after_seconds = 3600;
        assert_eq!(
            classify(slow).reaction().retry,
            Retry::After(Duration::from_mins(1))
        );
    }
}
