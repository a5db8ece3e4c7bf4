//! The scale subresource of workloads and of custom resources that declare one.

use std::sync::Arc;

use serde_json::{Value, json};

use super::update::{self, Endpoint};
use crate::answer::{self, Answer};
use crate::error::{About, ApiError, Fault, FieldError};
use crate::lifecycle;
use crate::patch::{self, Kind};
use crate::request::{Call, Form, Verb};
use crate::resource::Resource;
use crate::schema::Schema;
use crate::server::Server;
use crate::store::{Object, text};
use crate::table;

/// Where a kind stores its replicas, as JSON pointers.
struct Paths {
    spec: String,
    status: String,
    selector: Option<String>,
}

impl Paths {
    fn of(resource: &Resource) -> Self {
        let declared = resource.custom.as_ref().and_then(|custom| custom.scale.as_ref());
        let pointer = |key: &str| {
            declared
                .and_then(|scale| scale.get(key))
                .and_then(Value::as_str)
                .map(|path| path.replace('.', "/"))
        };
        Self {
            spec: pointer("specReplicasPath").unwrap_or_else(|| "/spec/replicas".to_owned()),
            status: pointer("statusReplicasPath").unwrap_or_else(|| "/status/replicas".to_owned()),
            selector: pointer("labelSelectorPath"),
        }
    }
}

/// A custom object without the number can be scaled, but its scale cannot be read.
fn check_number(resource: &Resource, object: &Object) -> Result<(), ApiError> {
    let paths = Paths::of(resource);
    if resource.custom.is_some() && object.value().pointer(&paths.spec).is_none() {
        let path = paths.spec.replace('/', ".");
        return Err(ApiError::internal(format!(
            "the spec replicas field \"{path}\" does not exist"
        )));
    }
    Ok(())
}

fn view(resource: &Resource, object: &Object) -> Value {
    let (paths, value) = (Paths::of(resource), object.value());
    let number = |pointer: &str| value.pointer(pointer).and_then(Value::as_i64).unwrap_or_default();
    let mut metadata = json!({"name": object.name()});
    for key in ["namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(field) = value["metadata"].get(key) {
            metadata[key] = field.clone();
        }
    }
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": {},
        "status": {"replicas": number(&paths.status)},
    });
    if number(&paths.spec) != 0 {
        scale["spec"]["replicas"] = json!(number(&paths.spec));
    }
    let selector = match &paths.selector {
        Some(pointer) => text(value, pointer).to_owned(),
        None if resource.custom.is_none() => labels(&value["spec"]["selector"]),
        None => String::new(),
    };
    if !selector.is_empty() {
        scale["status"]["selector"] = json!(selector);
    }
    scale
}

/// A label selector in its text format.
fn labels(selector: &Value) -> String {
    let pairs = selector
        .get("matchLabels")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let mut terms: Vec<String> = pairs
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    terms.sort();
    terms.join(",")
}

pub(crate) async fn scale(server: &Arc<Server>, call: &Call) -> Result<Answer, ApiError> {
    let dry_run = call.dry_run()?;
    loop {
        let old = super::find(server, call)?;
        if call.verb == Verb::Get {
            check_number(&call.resource, &old)?;
        }
        let shown = view(&call.resource, &old);
        let wanted = match call.verb {
            Verb::Get if call.form == Form::Table => {
                let include = call.query.text("includeObject");
                return Ok(answer::json(
                    200,
                    &table::of_scale(&shown, include, &server.clock),
                ));
            }
            Verb::Get => return Ok(answer::json(200, &shown)),
            Verb::Patch => {
                let kind = Kind::of(&call.content_type, false)?;
                let schema = Schema::of_kind("autoscaling", "v1", "Scale");
                if kind == Kind::Apply {
                    return Err(ApiError::unsupported_media_type(
                        "the sandbox does not apply to the scale subresource",
                    ));
                }
                patch::apply(kind, schema, &shown, &call.body)?
            }
            _ => super::body::parse(call)?,
        };
        let version = text(&wanted, "/metadata/resourceVersion");
        if !version.is_empty() && version != old.revision().to_string() {
            return Err(ApiError::stale(call.about()));
        }
        let replicas = replicas(call, &wanted, old.value())?;
        let mut new = old.value().clone();
        set(&mut new, &Paths::of(&call.resource).spec, json!(replicas));
        if let Some((written, _)) =
            update::write(server, call, Endpoint::Scale, &old, new, dry_run, true).await?
        {
            return Ok(answer::json(200, &view(&call.resource, &written)));
        }
    }
}

/// The requested number, if it is valid.
fn replicas(call: &Call, wanted: &Value, old: &Value) -> Result<i64, ApiError> {
    let name = text(wanted, "/metadata/name");
    if name != call.target.name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.target.name
        )));
    }
    let given = wanted.pointer("/spec/replicas");
    let Some(replicas) = given.map_or(Some(0), Value::as_i64) else {
        let error = FieldError::new(Fault::Invalid, "patch", None, "spec.replicas must be a number");
        let nothing = About {
            group: "",
            kind: "",
            name: "",
        };
        return Err(ApiError::invalid(nothing, &[error]));
    };
    if replicas >= 0 {
        return Ok(replicas);
    }
    let (group, kind, field, detail) = match &call.resource.custom {
        Some(_) => (
            call.resource.group.as_str(),
            call.resource.kind.as_str(),
            ".spec.replicas",
            "should be a non-negative integer",
        ),
        None => (
            "autoscaling",
            "Scale",
            "spec.replicas",
            "must be greater than or equal to 0",
        ),
    };
    let about = About {
        group,
        kind,
        name: &call.target.name,
    };
    let mut errors = vec![FieldError::invalid(field, &json!(replicas), detail)];
    if call.resource.custom.is_some() {
        // The schema may have rules for it, too.
        let mut new = old.clone();
        set(&mut new, &Paths::of(&call.resource).spec, json!(replicas));
        errors.extend(lifecycle::check(&call.resource, Endpoint::Scale, &new, Some(old)));
    }
    Err(ApiError::invalid(about, &errors))
}

fn set(object: &mut Value, pointer: &str, value: Value) {
    let mut here = object;
    for key in pointer.split('/').filter(|key| !key.is_empty()) {
        if !here.is_object() {
            *here = json!({});
        }
        here = &mut here[key];
    }
    *here = value;
}
