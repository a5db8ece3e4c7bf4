//! Reads the object in a request.

use serde_json::{Value, json};
use serde_saphyr::options::DuplicateKeyPolicy;

use super::json::with_duplicates;
use crate::error::{About, ApiError, Fault, FieldError};
use crate::events;
use crate::lifecycle;
use crate::protobuf;
use crate::request::Call;
use crate::resource::Resource;
use crate::schema::{builtin, decode, embedded, prune};
use crate::store::text;

/// How to handle unknown fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unknown {
    Refuse,
    Warn,
    Ignore,
}

impl Unknown {
    fn of(call: &Call) -> Result<Self, ApiError> {
        match call.query.text("fieldValidation") {
            "Strict" => Ok(Self::Refuse),
            "Warn" | "" => Ok(Self::Warn),
            "Ignore" => Ok(Self::Ignore),
            other => {
                let known = "supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"";
                let error =
                    FieldError::new(Fault::NotSupported, "fieldValidation", Some(json!(other)), known);
                Err(ApiError::invalid_option(call.options(), &error))
            }
        }
    }
}

/// The body as a value: JSON, or YAML.
pub(crate) fn parse(call: &Call) -> Result<Value, ApiError> {
    let media = call.content_type.split(';').next().unwrap_or_default().trim();
    match media {
        "" | "application/json" => {
            serde_json::from_slice(&call.body).map_err(|error| unreadable(call, &error))
        }
        "application/yaml" => yaml(&call.body),
        "application/vnd.kubernetes.protobuf" => protobuf::decode(&call.body).ok_or_else(|| {
            ApiError::unsupported_media_type(
                "the sandbox does not read this kind in protobuf; send application/json",
            )
        }),
        _ => Err(ApiError::unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf",
        )),
    }
}

fn unreadable(call: &Call, error: &serde_json::Error) -> ApiError {
    let why = if call.body.is_empty() {
        "couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)".to_owned()
    } else {
        error.to_string()
    };
    ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {}): {why}",
        call.resource.kind
    ))
}

/// The object in a request, in the stored format, with warnings.
pub(crate) fn read(call: &Call) -> Result<(Value, Vec<String>), ApiError> {
    let media = call.content_type.split(';').next().unwrap_or_default().trim();
    if !matches!(media, "" | "application/json") {
        return normalize(call, parse(call)?);
    }
    let (mut object, twice) = with_duplicates(&call.body).map_err(|error| unreadable(call, &error))?;
    if object.is_null() && call.resource.custom.is_none() {
        object = json!({});
    }
    normalize_noting(call, object, &twice)
}

pub(crate) fn yaml(body: &[u8]) -> Result<Value, ApiError> {
    // Most clients send JSON, which is also YAML, and is cheaper to read as what it is.
    if let Ok(value) = serde_json::from_slice(body) {
        return Ok(value);
    }
    std::str::from_utf8(body)
        .map_err(|error| error.to_string())
        .and_then(|text| {
            // As in the original, the last of several values wins.
            let options = serde_saphyr::options! { duplicate_keys: DuplicateKeyPolicy::LastWins };
            serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())
        })
        .map_err(|error| ApiError::bad_request(format!("error decoding YAML: {error}")))
}

/// Checks and sets kind and version.
fn identify(resource: &Resource, object: &mut Value) -> Result<(), ApiError> {
    if !object.is_object() {
        return Err(ApiError::bad_request(format!(
            "Object 'Kind' is missing in '{object}'"
        )));
    }
    let (kind, version) = (
        text(object, "/kind").to_owned(),
        text(object, "/apiVersion").to_owned(),
    );
    if resource.custom.is_some() {
        if kind.is_empty() {
            return Err(ApiError::bad_request(format!(
                "Object 'Kind' is missing in '{object}'"
            )));
        }
        if version.is_empty() {
            return Err(ApiError::bad_request(format!(
                "Object 'apiVersion' is missing in '{object}'"
            )));
        }
    }
    let wanted = resource.api_version();
    let other_version = !version.is_empty() && version != wanted;
    let other_kind = !kind.is_empty() && kind != resource.kind;
    if resource.custom.is_some() && other_kind && !other_version {
        let error = FieldError::invalid("kind", &json!(kind), format!("must be {}", resource.kind));
        let about = About {
            group: &resource.group,
            kind: &kind,
            name: text(object, "/metadata/name"),
        };
        return Err(ApiError::invalid(about, &[error]));
    }
    if resource.custom.is_some() && other_version {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({version}) does not match the expected API version ({wanted})"
        )));
    }
    if other_version || other_kind {
        let short = version
            .rsplit('/')
            .next()
            .filter(|v| !v.is_empty())
            .unwrap_or(&resource.version);
        let why = if other_version {
            format!(
                "no kind \"{kind}\" is registered for version \"{version}\" in scheme \"pkg/runtime/scheme.go:111\""
            )
        } else {
            let package = resource
                .group
                .split('.')
                .next()
                .filter(|group| !group.is_empty())
                .unwrap_or("core");
            format!(
                "converting ({short}.{kind}) to ({package}.{}): unknown conversion",
                resource.kind
            )
        };
        return Err(ApiError::bad_request(format!(
            "{kind} in version \"{short}\" cannot be handled as a {}: {why}",
            resource.kind
        )));
    }
    object["kind"] = json!(resource.kind);
    object["apiVersion"] = json!(wanted);
    Ok(())
}

/// Converts an object to the stored format; returns it with warnings.
pub(crate) fn normalize(call: &Call, object: Value) -> Result<(Value, Vec<String>), ApiError> {
    normalize_noting(call, object, &[])
}

fn normalize_noting(
    call: &Call,
    mut object: Value,
    twice: &[String],
) -> Result<(Value, Vec<String>), ApiError> {
    let resource = &call.resource;
    identify(resource, &mut object)?;
    if let Some(fields) = object.pointer_mut("/metadata/managedFields")
        && *fields == json!([])
    {
        // An empty list means to remove all managers, as a single empty entry does; but empty lists are dropped later.
        *fields = json!([{}]);
    }
    if !object.get("metadata").is_some_and(Value::is_object) {
        object["metadata"] = json!({});
    }
    let unknown = match (&resource.custom, resource.schema()) {
        (Some(custom), _) => {
            meta_types(resource, &mut object)?;
            if let Some(schema) = resource.schema().filter(|_| custom.has_embedded) {
                embedded::typed(schema, &mut object).map_err(|error| undecodable(resource, &error))?;
            }
            let mut unknown = custom.normalize(&mut object);
            // Fields of the metadata are reported first.
            unknown.sort_by_key(|field| (!field.starts_with("metadata."), field.clone()));
            unknown
        }
        (None, Some(schema)) => {
            let unknown = prune::unknown_fields(schema, &mut object);
            decode::typed(schema, &mut object).map_err(|error| undecodable(resource, &error))?;
            builtin::defaults(schema, &mut object);
            lifecycle::read(resource, &mut object);
            unknown
        }
        (None, None) => Vec::new(),
    };
    let twice = twice.iter().map(|field| format!("duplicate field \"{field}\""));
    let unknown = unknown.iter().map(|field| format!("unknown field \"{field}\""));
    let doubts: Vec<String> = twice.chain(unknown).collect();
    let mut warnings = Vec::new();
    match Unknown::of(call)? {
        Unknown::Refuse if !doubts.is_empty() => {
            let error = format!("strict decoding error: {}", doubts.join(", "));
            return Err(undecodable(resource, &error));
        }
        Unknown::Warn => warnings.extend(doubts),
        Unknown::Refuse | Unknown::Ignore => {}
    }
    warnings.extend(lifecycle::finalizer_warnings(resource, &object));
    if resource.group == "events.k8s.io" {
        object = events::to_old(&object);
    }
    if &*resource.storage == "/events" {
        events::complete(&mut object);
    }
    Ok((object, warnings))
}

/// An empty object of this kind.
pub(crate) fn empty(resource: &Resource) -> Value {
    let mut object = json!({"kind": resource.kind, "apiVersion": resource.api_version()});
    if let Some(schema) = resource.schema().filter(|_| resource.custom.is_none()) {
        decode::zero(schema, &mut object);
        lifecycle::read(resource, &mut object);
    }
    if resource.group == "events.k8s.io" {
        object = events::to_old(&object);
    }
    if &*resource.storage == "/events" {
        events::complete(&mut object);
    }
    object
}

/// The metadata of custom resources has the same types as that of built-in kinds.
fn meta_types(resource: &Resource, object: &mut Value) -> Result<(), ApiError> {
    let Some(schema) = resource.schema().and_then(|schema| schema.field("metadata")) else {
        return Ok(());
    };
    match object.get_mut("metadata") {
        Some(metadata) => decode::typed(schema, metadata).map_err(|error| undecodable(resource, &error)),
        None => Ok(()),
    }
}

fn undecodable(resource: &Resource, error: &str) -> ApiError {
    let (kind, version) = (&resource.kind, &resource.version);
    ApiError::bad_request(format!(
        "{kind} in version \"{version}\" cannot be handled as a {kind}: {error}"
    ))
}
