//! PATCH in its four formats.

use std::sync::Arc;

use serde_json::{Value, json};

use super::update::Endpoint;
use super::{body, create, render, update};
use crate::answer::{self, Answer};
use crate::apply::{self, Writer};
use crate::error::{About, ApiError, Fault, FieldError};
use crate::patch::{self, Kind};
use crate::request::Call;
use crate::server::Server;
use crate::store::{Object, text};

pub(crate) async fn patch(server: &Arc<Server>, call: &Call, endpoint: Endpoint) -> Result<Answer, ApiError> {
    let kind = Kind::of(&call.content_type, call.resource.custom.is_some())?;
    let dry_run = call.dry_run()?;
    if kind == Kind::Apply && call.query.text("fieldManager").is_empty() {
        let error = FieldError::required("fieldManager", "is required for apply patch");
        return Err(ApiError::invalid_option("PatchOptions", &error));
    }
    if kind != Kind::Apply && call.query.flag("force") {
        let error = FieldError::forbidden("force", "may not be specified for non-apply patch");
        return Err(ApiError::invalid_option("PatchOptions", &error));
    }
    loop {
        let old = server.store.get(&call.resource.storage, &call.key());
        let Some(old) = old else {
            if kind != Kind::Apply || endpoint != Endpoint::Main {
                return Err(ApiError::not_found(call.about()));
            }
            server.authorize_creation(call)?;
            let (object, warnings) = applied(server, call, endpoint, None)?;
            let uid = text(&object, "/metadata/uid");
            if !uid.is_empty() {
                return Err(ApiError::conflict(
                    call.about(),
                    &format!(
                        "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                    ),
                ));
            }
            let (object, more) = body::normalize(call, object)?;
            return match create::create_object(server, call, object, dry_run).await {
                // Another client created the object first, so this is a change.
                Err(error) if error.reason == "AlreadyExists" => continue,
                Err(error) => Err(error.after(&[warnings, more].concat())),
                Ok((created, even_more)) => {
                    let warnings = [warnings, more, even_more].concat();
                    Ok(answer::with_warnings(
                        render::object(server, call, 201, &created),
                        &warnings,
                    ))
                }
            };
        };
        let (new, warnings) = match kind {
            Kind::Apply => applied(server, call, endpoint, Some(&old))?,
            _ => (patched(call, kind, &old)?, Vec::new()),
        };
        if kind == Kind::Apply {
            check_applied_version(server, call, &old)?;
        } else {
            update::check_version(call, &new, &old)?;
        }
        let uid = text(&new, "/metadata/uid");
        if !uid.is_empty() && uid != old.uid() {
            // The original reports it twice, too.
            let error = FieldError::invalid("metadata.uid", &json!(uid), "field is immutable");
            let about = About {
                kind: &call.resource.kind,
                ..call.about()
            };
            return Err(ApiError::invalid(about, &[error.clone(), error]));
        }
        let (mut new, more) = body::normalize(call, new).map_err(|error| {
            if kind == Kind::Apply {
                error
            } else {
                undecodable(&error)
            }
        })?;
        create::place(call, &mut new)?;
        update::check_name(call, &new)?;
        let written = update::write(server, call, endpoint, &old, new, dry_run, kind != Kind::Apply).await;
        let before = [warnings.clone(), more.clone()].concat();
        if let Some((written, even_more)) = written.map_err(|error| error.after(&before))? {
            let warnings = [warnings, more, even_more].concat();
            return Ok(answer::with_warnings(
                render::object(server, call, 200, &written),
                &warnings,
            ));
        }
    }
}

/// The error if the result of a patch cannot be read.
fn undecodable(error: &ApiError) -> ApiError {
    let why = error
        .message
        .split_once(": ")
        .map_or(error.message.as_str(), |(_, why)| why);
    let error = FieldError::new(Fault::Invalid, "patch", None, why);
    ApiError::invalid(
        About {
            group: "",
            kind: "",
            name: "",
        },
        &[error],
    )
}

/// Events are stored in the older version; a patch applies to the version in the path.
fn patched(call: &Call, kind: Kind, old: &Object) -> Result<Value, ApiError> {
    let shown = render::converted(&call.resource, old.value());
    let before = shown.as_ref().unwrap_or(old.value());
    let mut patched = patch::apply(kind, call.resource.schema(), before, &call.body)?;
    if kind == Kind::Strategic {
        // The patch is merged into a typed struct, which has its kind.
        for field in ["kind", "apiVersion"] {
            patched[field] = before[field].clone();
        }
    }
    Ok(patched)
}

fn config(server: &Server, call: &Call) -> Result<Value, ApiError> {
    let mut config = body::yaml(&call.body)?;
    let (kind, version) = (
        text(&config, "/kind").to_owned(),
        text(&config, "/apiVersion").to_owned(),
    );
    let other = version != call.resource.api_version() || kind != call.resource.kind;
    let (group, short) = version.split_once('/').unwrap_or(("", &version));
    let known = server.registry.of_kind(group, Some(short), &kind).is_some();
    if kind.is_empty() || version.is_empty() || other && (known || call.resource.custom.is_none()) {
        let group_version = if version.contains('/') {
            version
        } else {
            format!("/{version}")
        };
        return Err(ApiError::bad_request(format!(
            "invalid object type: {group_version}, Kind={kind}"
        )));
    }
    if other {
        return Err(ApiError::bad_request(format!(
            "Incorrect version specified in apply patch. Specified patch version: {version}, expected: {}",
            call.resource.api_version()
        )));
    }
    if !config.get("metadata").is_some_and(Value::is_object) {
        config["metadata"] = json!({});
    }
    let fields = config.pointer("/metadata/managedFields");
    if fields.is_some_and(|fields| !fields.is_null()) {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    match text(&config, "/metadata/name") {
        "" => config["metadata"]["name"] = json!(call.target.name),
        _ => update::check_name(call, &config)?,
    }
    create::place(call, &mut config)?;
    Ok(config)
}

fn check_applied_version(server: &Server, call: &Call, old: &Object) -> Result<(), ApiError> {
    let config = config(server, call)?;
    let version = text(&config, "/metadata/resourceVersion");
    if version.is_empty() || version == old.revision().to_string() {
        Ok(())
    } else {
        Err(ApiError::stale(call.about()))
    }
}

/// Merges the applied configuration; a field of another manager is a conflict.
fn applied(
    server: &Server,
    call: &Call,
    endpoint: Endpoint,
    old: Option<&Arc<Object>>,
) -> Result<(Value, Vec<String>), ApiError> {
    let given = body::yaml(&call.body)?;
    let mut config = config(server, call)?;
    let warnings = Vec::new();
    if let Some(why) = apply::untyped(call.resource.schema(), &config) {
        let (namespace, kind) = (text(&given, "/metadata/namespace"), &call.resource.kind);
        let group_version = format!("{}/{}", call.resource.group, call.resource.version);
        return Err(ApiError::unexplained(format!(
            "failed to create typed patch object ({namespace}/{}; {group_version}, Kind={kind}): {why}",
            call.target.name
        )));
    }
    for field in endpoint
        .ignored(&call.resource)
        .iter()
        .filter(|field| **field != "metadata")
    {
        if let Some(map) = config.as_object_mut() {
            map.shift_remove(*field);
        }
    }
    if endpoint == Endpoint::Status
        && call.resource.custom.is_some()
        && let Some(old) = old
    {
        config["metadata"] = json!({"name": old.name()});
        if !old.namespace().is_empty() {
            config["metadata"]["namespace"] = json!(old.namespace());
        }
    }
    let (manager, api_version, now) = (
        call.manager(),
        call.resource.api_version(),
        server.clock.seconds(),
    );
    let writer = Writer {
        schema: call.resource.schema(),
        manager: &manager,
        api_version: &api_version,
        subresource: endpoint.subresource(),
        ignored: endpoint.ignored(&call.resource),
        now: &now,
    };
    let live =
        old.map(|old| render::converted(&call.resource, old.value()).unwrap_or_else(|| old.value().clone()));
    let mut merged = writer
        .apply(live.as_ref(), &config, call.query.flag("force"))
        .map_err(|conflicts| {
            let mut error = ApiError::new(409, "Conflict", apply::conflict_message(&conflicts));
            error.details.insert("causes".to_owned(), conflicts.iter().map(|conflict| json!({
            "reason": "FieldManagerConflict", "message": conflict.message, "field": conflict.field,
        })).collect());
            error
        })?;
    if let Some(live) = &live {
        apply::note_applied(&manager, live, &given, &mut merged);
    }
    // Warnings come from the configuration only; the merged object has no unknown fields.
    Ok((merged, warnings))
}
