//! Errors of the API: a `metav1.Status` with code, reason, details and causes.

mod field;

use std::borrow::Cow;

use serde_json::{Map, Value, json};

pub(crate) use self::field::{Fault, FieldError};

/// A failed request, in the terms of the Kubernetes API.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The HTTP status.
    pub code: u16,
    /// The machine-readable reason, such as `NotFound`.
    pub reason: Cow<'static, str>,
    /// A message for people.
    pub message: String,
    /// The object and the causes.
    pub details: Box<Map<String, Value>>,
    /// Warnings from before the failure.
    pub(crate) warnings: Vec<String>,
    /// Omits empty details.
    pub(crate) bare: bool,
}

/// The subject of an `ApiError`: a resource in its group, and optionally one object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct About<'a> {
    pub(crate) group: &'a str,
    /// The plural for most errors, the kind for `Invalid`.
    pub(crate) kind: &'a str,
    pub(crate) name: &'a str,
}

impl About<'_> {
    fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.kind.to_owned()
        } else {
            format!("{}.{}", self.kind, self.group)
        }
    }

    fn details(&self) -> Map<String, Value> {
        let mut details = Map::new();
        for (key, value) in [("name", self.name), ("group", self.group), ("kind", self.kind)] {
            if !value.is_empty() {
                details.insert(key.to_owned(), json!(value));
            }
        }
        details
    }
}

impl ApiError {
    pub(crate) fn new(code: u16, reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self {
            code,
            reason: reason.into(),
            message: message.into(),
            details: Box::default(),
            warnings: Vec::new(),
            bare: false,
        }
    }

    fn about(code: u16, reason: &'static str, about: About<'_>, message: String) -> Self {
        Self {
            details: Box::new(about.details()),
            ..Self::new(code, reason, message)
        }
    }

    /// Adds earlier warnings.
    #[must_use]
    pub(crate) fn after(mut self, warnings: &[String]) -> Self {
        self.warnings.splice(0..0, warnings.iter().cloned());
        self
    }

    /// Omits empty details.
    #[must_use]
    pub(crate) fn bare(mut self) -> Self {
        self.bare = true;
        self
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    pub(crate) fn forbidden(about: About<'_>, why: &str) -> Self {
        let subject = match (about.kind, about.name) {
            ("", "") => "forbidden: ".to_owned(),
            (_, "") => format!("{} is forbidden: ", about.qualified()),
            (_, name) => format!("{} \"{name}\" is forbidden: ", about.qualified()),
        };
        Self::about(403, "Forbidden", about, subject + why)
    }

    /// An unknown path; the response is not even a status.
    pub(crate) fn page_not_found() -> Self {
        Self::new(404, "", "404 page not found\n")
    }

    pub(crate) fn no_such_path() -> Self {
        Self::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
        )
    }

    pub(crate) fn not_found(about: About<'_>) -> Self {
        Self::about(
            404,
            "NotFound",
            about,
            format!("{} \"{}\" not found", about.qualified(), about.name),
        )
    }

    pub(crate) fn already_exists(about: About<'_>) -> Self {
        let message = format!("{} \"{}\" already exists", about.qualified(), about.name);
        Self::about(409, "AlreadyExists", about, message)
    }

    pub(crate) fn conflict(about: About<'_>, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{}\": {why}",
            about.qualified(),
            about.name
        );
        Self::about(409, "Conflict", about, message)
    }

    pub(crate) fn stale(about: About<'_>) -> Self {
        Self::conflict(
            about,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
    }

    /// With the message that custom resources have.
    pub(crate) fn verb_not_supported(verb: &str, about: About<'_>) -> Self {
        let kind = about.qualified();
        let message = format!("{verb} is not supported on resources of kind \"{kind}\"");
        Self::about(405, "MethodNotAllowed", About { name: "", ..about }, message)
    }

    pub(crate) fn not_acceptable() -> Self {
        let message = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
        Self::new(406, "NotAcceptable", message)
    }

    pub(crate) fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(415, "UnsupportedMediaType", message)
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        let message = message.into();
        let mut error = Self::new(
            500,
            "InternalError",
            format!("Internal error occurred: {message}"),
        );
        error
            .details
            .insert("causes".into(), json!([{"message": message}]));
        error
    }

    /// A failure without a reason in the original.
    pub(crate) fn unexplained(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// An invalid option of a request.
    pub(crate) fn invalid_option(options: &str, error: &FieldError) -> Self {
        let about = About {
            group: "meta.k8s.io",
            kind: options,
            name: "",
        };
        Self::invalid(about, std::slice::from_ref(error))
    }

    /// A change with the uid of another object of the same name.
    pub(crate) fn wrong_uid(about: About<'_>, namespace: &str, asked: &str, found: &str) -> Self {
        let key = crate::store::key(namespace, about.name);
        let place = if about.group.contains('.') && !about.group.ends_with(".k8s.io") {
            format!("{}/{}", about.group, about.kind)
        } else {
            about.kind.to_owned()
        };
        Self::conflict(
            about,
            &format!(
                "StorageError: invalid object, Code: 4, Key: /registry/{place}/{key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {asked}, UID in object meta: {found}"
            ),
        )
    }

    /// A resourceVersion that does not exist yet.
    pub(crate) fn too_large_version(asked: u64, current: u64) -> Self {
        let message = format!("Too large resource version: {asked}, current: {current}");
        let mut error = Self::new(504, "Timeout", format!("Timeout: {message}"));
        error.details.insert(
            "causes".into(),
            json!([{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]),
        );
        error.details.insert("retryAfterSeconds".into(), json!(1));
        error
    }

    /// An invalid object. As in the original, the message contains the kind instead of the plural.
    pub(crate) fn invalid(about: About<'_>, errors: &[FieldError]) -> Self {
        let mut texts: Vec<String> = Vec::new();
        for text in errors.iter().map(FieldError::to_string) {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let text = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!("{} \"{}\" is invalid: {text}", about.qualified(), about.name);
        let mut error = Self::about(422, "Invalid", about, message);
        error
            .details
            .insert("causes".into(), errors.iter().map(FieldError::cause).collect());
        error
    }

    /// The status object for the client.
    pub fn to_status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message,
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        // Errors without an object have empty details.
        if !self.details.is_empty()
            || !self.bare && matches!(self.code, 403 | 404 | 405 | 406 | 422)
            || self.message.starts_with("415")
        {
            status["details"] = Value::Object(Map::clone(&self.details));
        }
        status["code"] = json!(self.code);
        status
    }
}
