//! PUT, and the common parts of all changes of an existing object.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{body, create, render};
use crate::admission::{self, Attempt, Operation};
use crate::answer::{self, Answer};
use crate::apply::{self, Writer};
use crate::auth::escalation;
use crate::error::{About, ApiError, FieldError};
use crate::lifecycle;
use crate::request::Call;
use crate::resource::Resource;
use crate::server::Server;
use crate::store::{Expect, Object, text};

/// Which part of an object a request may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Main,
    Status,
    /// The replicas, with the scale subresource.
    Scale,
}

impl Endpoint {
    /// The fields that this endpoint does not change.
    pub(crate) fn ignored(self, resource: &Resource) -> &'static [&'static str] {
        match self {
            Self::Main | Self::Scale => lifecycle::ignored_on_main(resource),
            Self::Status if resource.custom.is_some() => &["spec", "metadata"],
            Self::Status => &["spec"],
        }
    }

    pub(crate) fn subresource(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Status => "status",
            Self::Scale => "scale",
        }
    }
}

pub(crate) async fn update(
    server: &Arc<Server>,
    call: &Call,
    endpoint: Endpoint,
) -> Result<Answer, ApiError> {
    let dry_run = call.dry_run()?;
    let (mut object, mut warnings) = body::read(call)?;
    check_name(call, &object)?;
    create::place(call, &mut object)?;
    let unconditional = matches!(text(&object, "/metadata/resourceVersion"), "" | "0");
    loop {
        let old = match super::find(server, call) {
            Ok(old) => old,
            Err(_) if endpoint == Endpoint::Main && lifecycle::is_created_by_update(&call.resource) => {
                server.authorize_creation(call)?;
                return create::new_object(server, call, object, warnings, dry_run).await;
            }
            Err(error) => return Err(error),
        };
        check_identity(call, &object, &old)?;
        let written = write(server, call, endpoint, &old, object.clone(), dry_run, true).await;
        match written {
            Ok(None) if unconditional => {}
            Ok(None) => return Err(ApiError::stale(call.about())),
            Ok(Some((new, more))) => {
                warnings.extend(more);
                return Ok(answer::with_warnings(
                    render::object(server, call, 200, &new),
                    &warnings,
                ));
            }
            Err(error) => return Err(error.after(&warnings)),
        }
    }
}

/// Checks that the names in the path and in the object are equal.
pub(crate) fn check_name(call: &Call, object: &Value) -> Result<(), ApiError> {
    let target = &call.target.name;
    match text(object, "/metadata/name") {
        "" => Err(ApiError::bad_request(format!(
            "the name of the object ({target} based on URL) was undeterminable: name must be provided"
        ))),
        name if name != target => Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({target})"
        ))),
        _ => Ok(()),
    }
}

/// Rejects a change of an outdated object. Without a version, or with zero, it applies to the current state.
pub(crate) fn check_version(call: &Call, object: &Value, old: &Object) -> Result<(), ApiError> {
    match text(object, "/metadata/resourceVersion") {
        "" | "0" => Ok(()),
        version if version == old.revision().to_string() => Ok(()),
        version if version.parse::<u64>().is_err() => Err(ApiError::unexplained(format!(
            "strconv.ParseUint: parsing \"{version}\": invalid syntax"
        ))),
        _ => Err(ApiError::stale(call.about())),
    }
}

/// Rejects a change of another object or of an outdated one.
pub(crate) fn check_identity(call: &Call, object: &Value, old: &Object) -> Result<(), ApiError> {
    let resource = &call.resource;
    let uid = text(object, "/metadata/uid");
    if !uid.is_empty() && uid != old.uid() {
        return Err(ApiError::wrong_uid(
            call.about(),
            &call.namespace(),
            uid,
            old.uid(),
        ));
    }
    match text(object, "/metadata/resourceVersion") {
        "" if resource.custom.is_some() || lifecycle::needs_version(resource) => {
            let error = FieldError::invalid(
                "metadata.resourceVersion",
                &json!(0),
                "must be specified for an update",
            );
            Err(ApiError::invalid(call.about(), &[error]))
        }
        _ => check_version(call, object, old),
    }
}

/// Updates the managed fields, in the version that the client uses.
pub(crate) fn track(call: &Call, writer: &Writer<'_>, old: Option<&Value>, new: &mut Value) {
    let shown_as =
        |object: &Value| render::converted(&call.resource, object).unwrap_or_else(|| object.clone());
    let mut shown = shown_as(new);
    match old {
        Some(old) => writer.update(&shown_as(old), &mut shown),
        None => writer.create(&shown_as(&body::empty(&call.resource)), &mut shown),
    }
    if let Some(metadata) = new["metadata"].as_object_mut() {
        match shown.pointer("/metadata/managedFields") {
            Some(fields) => metadata.insert("managedFields".to_owned(), fields.clone()),
            None => metadata.shift_remove("managedFields"),
        };
    }
}

/// Stores a new state. An object without its last finalizer is deleted instead, and watches get its previous state.
/// `None` if another writer was faster.
pub(crate) fn commit(server: &Server, call: &Call, old: &Object, mut new: Value) -> Option<Arc<Object>> {
    let (storage, key, revision) = (&call.resource.storage, call.key(), old.revision());
    if lifecycle::is_finished(&call.resource, &new) {
        server.store.remove(storage, &key, revision).ok()?;
        // The response contains the object after its last change, with its previous version.
        return Some(Arc::new(Object::new(new, revision)));
    }
    if let Some(custom) = &call.resource.custom {
        custom.prune_for_storage(&mut new);
    }
    server
        .store
        .put(storage, &key, Expect::Revision(revision), new)
        .ok()
}

/// Runs admission and validation for a new state and commits it. `None` if the object has changed in the meantime.
pub(crate) async fn write(
    server: &Arc<Server>,
    call: &Call,
    endpoint: Endpoint,
    old: &Arc<Object>,
    mut new: Value,
    dry_run: bool,
    track_owners: bool,
) -> Result<Option<(Arc<Object>, Vec<String>)>, ApiError> {
    let resource = &call.resource;
    // An object that was written in another version is compared in this version.
    let before = match &resource.custom {
        Some(_) => render::converted(resource, old.value()).unwrap_or_else(|| old.value().clone()),
        None => old.value().clone(),
    };
    let errors = lifecycle::undeletable(&before, &new);
    if !errors.is_empty() {
        let about = About {
            kind: &resource.kind,
            ..call.about()
        };
        return Err(ApiError::invalid(about, &errors));
    }
    lifecycle::keep(&server.services, resource, endpoint, &before, &mut new);
    if track_owners {
        let (manager, api_version, now) = (call.manager(), resource.api_version(), server.clock.seconds());
        let writer = Writer {
            schema: resource.schema(),
            manager: &manager,
            api_version: &api_version,
            subresource: endpoint.subresource(),
            ignored: endpoint.ignored(resource),
            now: &now,
        };
        track(call, &writer, Some(&before), &mut new);
    }
    let mut warnings = Vec::new();
    let attempt = |object| Attempt {
        server,
        call,
        operation: Operation::Update,
        object,
        old: Some(&before),
        dry_run,
    };
    let mut new = admission::mutate(attempt(&new), &mut warnings).await?;
    lifecycle::keep(&server.services, resource, endpoint, &before, &mut new);
    escalation::check(server, call, &new, Some(&before))?;
    lifecycle::change(resource, endpoint, &before, &mut new);
    let errors = lifecycle::check(resource, endpoint, &new, Some(&before));
    if !errors.is_empty() {
        let about = About {
            group: resource.group_in_errors(),
            kind: &resource.kind,
            name: &call.target.name,
        };
        return Err(ApiError::invalid(about, &errors));
    }
    admission::validate(attempt(&new), &mut warnings).await?;
    new["metadata"]["resourceVersion"] = old.value()["metadata"]["resourceVersion"].clone();
    if apply::same_but_times(&new, &before) {
        return Ok(Some((old.clone(), warnings)));
    }
    if dry_run {
        return Ok(Some((Arc::new(Object::unsaved(new)), warnings)));
    }
    Ok(commit(server, call, old, new).map(|written| (written, warnings)))
}
