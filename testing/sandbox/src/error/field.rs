//! Field errors, with the original's messages.

use serde_json::{Value, json};

/// The types of field errors in the API, with their messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Invalid,
    TypeInvalid,
    Required,
    Forbidden,
    NotSupported,
    Duplicate,
    NotFound,
    TooLong,
    TooMany,
}

impl Fault {
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Invalid => ("FieldValueInvalid", "Invalid value"),
            Self::TypeInvalid => ("FieldValueTypeInvalid", "Invalid value"),
            Self::Required => ("FieldValueRequired", "Required value"),
            Self::Forbidden => ("FieldValueForbidden", "Forbidden"),
            Self::NotSupported => ("FieldValueNotSupported", "Unsupported value"),
            Self::Duplicate => ("FieldValueDuplicate", "Duplicate value"),
            Self::NotFound => ("FieldValueNotFound", "Not found"),
            Self::TooLong => ("FieldValueTooLong", "Too long"),
            Self::TooMany => ("FieldValueTooMany", "Too many"),
        }
    }
}

/// One violated rule of one field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FieldError {
    pub(crate) fault: Fault,
    pub(crate) field: String,
    /// The invalid value, if the message shows it.
    pub(crate) value: Option<Value>,
    pub(crate) detail: String,
}

impl FieldError {
    pub(crate) fn new(
        fault: Fault,
        field: impl Into<String>,
        value: Option<Value>,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            fault,
            field: field.into(),
            value,
            detail: detail.into(),
        }
    }

    pub(crate) fn invalid(field: impl Into<String>, value: &Value, detail: impl Into<String>) -> Self {
        Self::new(Fault::Invalid, field, Some(value.clone()), detail)
    }

    pub(crate) fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(Fault::Required, field, None, detail)
    }

    pub(crate) fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(Fault::Forbidden, field, None, detail)
    }

    fn body(&self) -> String {
        let (_, words) = self.fault.words();
        let mut body = words.to_owned();
        if let Some(value) = &self.value {
            body.push_str(": ");
            // The original prints objects and lists in Go's format only in a few places. JSON is more readable, and is
            // what the original prints for custom resources.
            body.push_str(&value.to_string());
        }
        if !self.detail.is_empty() {
            body.push_str(": ");
            body.push_str(&self.detail);
        }
        body
    }

    pub(super) fn cause(&self) -> Value {
        json!({"reason": self.fault.words().0, "message": self.body(), "field": self.field})
    }
}

impl std::fmt::Display for FieldError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}
