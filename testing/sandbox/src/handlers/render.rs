//! Objects in the format that the client requested.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::answer::{self, Answer};
use crate::events;
use crate::request::{Call, Form};
use crate::resource::Resource;
use crate::schema::custom::{self, Custom};
use crate::server::Server;
use crate::store::{Object, metadata_only, text};
use crate::table;

/// Whether an object is stored in the version of the resource, and with its current schema.
pub(crate) fn is_stored_as(resource: &Resource, object: &Value) -> bool {
    let stored = text(object, "/apiVersion");
    let same = match stored.split_once('/') {
        Some((group, version)) => group == resource.group && version == resource.version,
        None => resource.group.is_empty() && stored == resource.version,
    };
    let revision = || text(object, "/metadata/resourceVersion").parse::<u64>().ok();
    let fresh = |custom: &Custom| revision().is_none_or(|revision| revision >= custom.since);
    same && resource.custom.as_ref().is_none_or(fresh)
}

/// The object in the version of the resource; `None` if it is stored in that version.
pub(crate) fn converted(resource: &Resource, object: &Value) -> Option<Value> {
    if is_stored_as(resource, object) {
        return None;
    }
    Some(match resource.group.as_str() {
        "events.k8s.io" => events::to_new(object),
        _ => custom::convert(resource, object),
    })
}

/// The object as JSON, in the version of the resource.
pub(crate) fn json(resource: &Resource, object: &Object) -> Bytes {
    converted(resource, object.value()).map_or_else(|| object.json(), |value| value.to_string().into())
}

/// One stored object as a response.
pub(crate) fn object(server: &Server, call: &Call, code: u16, object: &Object) -> Answer {
    match call.form {
        Form::Json => return answer::bytes(code, "application/json", json(&call.resource, object)),
        Form::Metadata => return answer::bytes(code, "application/json", object.metadata_json().clone()),
        Form::Yaml | Form::Table => {}
    }
    let value = converted(&call.resource, object.value()).unwrap_or_else(|| object.value().clone());
    self::value(server, call, code, &value)
}

/// An object, which need not be stored, as a response.
pub(crate) fn value(server: &Server, call: &Call, code: u16, object: &Value) -> Answer {
    match call.form {
        Form::Json => answer::json(code, object),
        Form::Yaml => answer::yaml(code, object),
        Form::Metadata => answer::json(code, &metadata_only(object)),
        Form::Table => {
            let meta = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
            let include = call.query.text("includeObject");
            answer::json(
                code,
                &table::table(&call.resource, &[object], &meta, include, &server.clock),
            )
        }
    }
}
