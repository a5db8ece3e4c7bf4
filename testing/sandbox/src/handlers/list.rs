//! Lists: consistent, paged, filtered by selectors.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::{BufMut as _, BytesMut};
use serde_json::{Value, json};

use super::render;
use crate::answer::{self, Answer};
use crate::error::{About, ApiError, Fault, FieldError};
use crate::events;
use crate::request::{Call, Form};
use crate::selector::Selector;
use crate::server::Server;
use crate::store::{Object, OutOfRange, Snapshot, metadata_only};
use crate::table;

/// The selector in the query. A name in the path, which only a watch has, selects a single object.
pub(crate) fn selector(call: &Call) -> Result<Selector, ApiError> {
    let fields = call.query.text("fieldSelector");
    let fields = if call.resource.group == "events.k8s.io" {
        events::old_fields(fields)
    } else {
        fields.to_owned()
    };
    let resource = &call.resource;
    let selector = Selector::parse(call.query.text("labelSelector"), &fields, resource)?;
    match call.target.name.as_str() {
        "" => Ok(selector),
        name => selector.named(name),
    }
}

pub(crate) fn namespace(call: &Call) -> Option<&str> {
    (call.resource.namespaced && !call.target.namespace.is_empty()).then_some(call.target.namespace.as_str())
}

/// A continue token: the revision of the list, and the key to start at.
fn parse_token(token: &str) -> Option<(u64, String)> {
    let value: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
    Some((
        value.get("rv")?.as_u64()?,
        value.get("start")?.as_str()?.to_owned(),
    ))
}

fn token(revision: u64, start: &str) -> String {
    URL_SAFE_NO_PAD.encode(json!({"v": "meta.k8s.io/v1", "rv": revision, "start": start}).to_string())
}

/// The resourceVersion of a get or a watch. The original has a separate error message for these.
pub(crate) fn plain_revision(text: &str) -> Result<Option<u64>, ApiError> {
    revision(text).map_err(|error| {
        let message = error
            .message
            .trim_start_matches("invalid resource version: ")
            .to_owned();
        ApiError::unexplained(message)
    })
}

/// The resourceVersion of a request; `None` for the newest.
pub(crate) fn revision(text: &str) -> Result<Option<u64>, ApiError> {
    match text {
        "" | "0" => Ok(None),
        text => text.parse::<u64>().map(Some).map_err(|_| {
            ApiError::bad_request(format!(
                "invalid resource version: resourceVersion: Invalid value: \"{text}\": strconv.ParseUint: parsing \"{text}\": invalid syntax"
            ))
        }),
    }
}

/// Checks which options may be combined.
fn options(call: &Call) -> Result<(), ApiError> {
    let mut errors = Vec::new();
    let (version, matching) = (
        call.query.text("resourceVersion"),
        call.query.text("resourceVersionMatch"),
    );
    if !matching.is_empty() && version.is_empty() {
        errors.push(FieldError::forbidden(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden unless resourceVersion is provided",
        ));
    }
    if !matching.is_empty() && !call.query.text("continue").is_empty() {
        errors.push(FieldError::forbidden(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden when continue is provided",
        ));
    }
    if !matches!(matching, "" | "Exact" | "NotOlderThan") {
        let known = "supported values: \"Exact\", \"NotOlderThan\", \"\"";
        errors.push(FieldError::new(
            Fault::NotSupported,
            "resourceVersionMatch",
            Some(json!(matching)),
            known,
        ));
    }
    if matching == "Exact" && version == "0" {
        errors.push(FieldError::forbidden(
            "resourceVersionMatch",
            "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        ));
    }
    if call.query.get("sendInitialEvents").is_some() {
        errors.push(FieldError::forbidden(
            "sendInitialEvents",
            "sendInitialEvents is forbidden for list",
        ));
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(refused(&errors))
    }
}

/// The error for options that may not be combined.
pub(crate) fn refused(errors: &[FieldError]) -> ApiError {
    ApiError::invalid(
        About {
            group: "meta.k8s.io",
            kind: "ListOptions",
            name: "",
        },
        errors,
    )
}

fn snapshot(server: &Server, call: &Call) -> Result<(Snapshot, Option<String>), ApiError> {
    let (storage, namespace) = (&call.resource.storage, namespace(call));
    let version = call.query.text("resourceVersion");
    options(call)?;
    if let Some(continued) = call.query.get("continue").filter(|token| !token.is_empty()) {
        if !version.is_empty() && version != "0" {
            return Err(ApiError::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let (revision, start) = parse_token(continued)
            .ok_or_else(|| ApiError::bad_request("continue key is not valid: encoding is not valid"))?;
        return match server.store.list_at(storage, namespace, revision) {
            Ok(snapshot) => Ok((snapshot, Some(start))),
            Err(_) => Err(ApiError::expired(
                "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.",
            )),
        };
    }
    // A page of a version is exactly of that version.
    let exact = match call.query.text("resourceVersionMatch") {
        "" => call.query.number("limit").is_some_and(|limit| limit > 0),
        matching => matching == "Exact",
    };
    let revision = revision(version)?;
    let at = match revision {
        Some(revision) if exact => server.store.list_at(storage, namespace, revision),
        Some(revision) if revision > server.store.revision() => Err(OutOfRange::Future {
            current: server.store.revision(),
        }),
        _ => Ok(server.store.list(storage, namespace)),
    };
    match (at, revision) {
        (Ok(snapshot), _) => Ok((snapshot, None)),
        (Err(OutOfRange::Future { current }), Some(asked)) => {
            Err(ApiError::too_large_version(asked, current))
        }
        (Err(_), _) => Err(ApiError::expired(
            "The resourceVersion for the provided list is too old.",
        )),
    }
}

/// The error for an option that must be a number.
pub(crate) fn not_a_number(text: &str) -> ApiError {
    ApiError::bad_request(format!("strconv.ParseInt: parsing \"{text}\": invalid syntax"))
}

/// The objects of one page, and the list metadata.
pub(crate) fn page<'a>(
    call: &Call,
    snapshot: &'a Snapshot,
    selector: &Selector,
    start: Option<&str>,
) -> Result<(Vec<&'a Arc<Object>>, Value), ApiError> {
    let limit = match call.query.text("limit") {
        "" => None,
        text => Some(text.parse::<i64>().map_err(|_| not_a_number(text))?),
    };
    // With resourceVersion 0 the list is not paged.
    let any = call.query.text("resourceVersion") == "0";
    let limit = limit
        .filter(|limit| *limit > 0 && !any)
        .and_then(|limit| usize::try_from(limit).ok());
    let mut wanted = snapshot
        .objects
        .iter()
        .skip_while(|(key, _)| start.is_some_and(|start| &**key < start))
        .filter(|(_, object)| selector.matches(object.value()));
    let page: Vec<&Arc<Object>> = wanted
        .by_ref()
        .take(limit.unwrap_or(usize::MAX))
        .map(|(_, object)| object)
        .collect();
    let mut meta = json!({"resourceVersion": snapshot.revision.to_string()});
    if call.resource.custom.is_some() && call.form == Form::Json {
        // Lists of custom resources contain it even without a next page.
        meta["continue"] = json!("");
    }
    let rest: Vec<_> = wanted.collect();
    if let Some((next, _)) = rest.first() {
        meta["continue"] = json!(token(snapshot.revision, next));
        if selector.is_everything() {
            meta["remainingItemCount"] = json!(rest.len());
        }
    }
    Ok((page, meta))
}

pub(crate) fn list(server: &Server, call: &Call) -> Result<Answer, ApiError> {
    let selector = selector(call)?;
    let (snapshot, start) = snapshot(server, call)?;
    let (page, meta) = page(call, &snapshot, &selector, start.as_deref())?;
    Ok(match call.form {
        Form::Json => answer::bytes(200, "application/json", write(call, &meta, &page)),
        Form::Yaml => {
            let list: Value = serde_json::from_slice(&write(call, &meta, &page)).unwrap_or_default();
            answer::yaml(200, &list)
        }
        Form::Metadata => {
            let items: Vec<Value> = page.iter().map(|object| metadata_only(object.value())).collect();
            answer::json(200, &of_metadata(&meta, &items))
        }
        Form::Table => {
            let objects: Vec<Value> = page
                .iter()
                .map(|object| {
                    render::converted(&call.resource, object.value())
                        .unwrap_or_else(|| object.value().clone())
                })
                .collect();
            let objects: Vec<&Value> = objects.iter().collect();
            let include = call.query.text("includeObject");
            answer::json(
                200,
                &table::table(&call.resource, &objects, &meta, include, &server.clock),
            )
        }
    })
}

/// A list of object metadata. For no objects the original returns no list.
pub(crate) fn of_metadata(meta: &Value, items: &[Value]) -> Value {
    let items = if items.is_empty() {
        Value::Null
    } else {
        json!(items)
    };
    json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": meta, "items": items})
}

/// The list as JSON. As in the original, items of built-in kinds have no kind and version.
fn write(call: &Call, meta: &Value, page: &[&Arc<Object>]) -> BytesMut {
    let resource = &call.resource;
    let head = json!({"kind": resource.list_kind(), "apiVersion": resource.api_version(), "metadata": meta})
        .to_string();
    let mut bytes =
        BytesMut::with_capacity(page.iter().map(|object| object.json().len() + 1).sum::<usize>() + 256);
    bytes.put(head.strip_suffix('}').unwrap_or_default().as_bytes());
    bytes.put(&b",\"items\":["[..]);
    for (index, object) in page.iter().enumerate() {
        if index > 0 {
            bytes.put_u8(b',');
        }
        if resource.custom.is_some() {
            bytes.put(render::json(resource, object));
        } else if let Some(mut converted) = render::converted(resource, object.value()) {
            if let Some(map) = converted.as_object_mut() {
                map.shift_remove("kind");
                map.shift_remove("apiVersion");
            }
            bytes.put(converted.to_string().as_bytes());
        } else {
            bytes.put_u8(b'{');
            bytes.put(object.json_tail());
        }
    }
    bytes.put(&b"]}"[..]);
    bytes
}
