//! POST: creates an object.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{body, render};
use crate::admission::{self, Attempt, Operation};
use crate::answer::{self, Answer};
use crate::apply::Writer;
use crate::auth::{escalation, reviews};
use crate::error::{About, ApiError};
use crate::lifecycle;
use crate::request::Call;
use crate::schema::crd;
use crate::server::Server;
use crate::store::{self, Expect, Object, text};

/// Attempts to find a free name for `generateName`.
const ATTEMPTS: usize = 8;

pub(crate) async fn create(server: &Arc<Server>, call: &Call) -> Result<Answer, ApiError> {
    let dry_run = call.dry_run()?;
    let (mut object, warnings) = body::read(call)?;
    check_place(call, &object)?;
    if let Some(review) = reviews::review(server, call, &object) {
        return Ok(answer::json(201, &review?));
    }
    place(call, &mut object)?;
    if !text(&object, "/metadata/resourceVersion").is_empty() {
        return Err(ApiError::unexplained(
            "resourceVersion should not be set on objects to be created",
        ));
    }
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.shift_remove(field);
        }
    }
    new_object(server, call, object, warnings, dry_run).await
}

/// Creates an object whose fields the writer owns.
pub(crate) async fn new_object(
    server: &Arc<Server>,
    call: &Call,
    mut object: Value,
    warnings: Vec<String>,
    dry_run: bool,
) -> Result<Answer, ApiError> {
    let manager = call.manager();
    let api_version = call.resource.api_version();
    let now = server.clock.seconds();
    let writer = Writer {
        schema: call.resource.schema(),
        manager: &manager,
        api_version: &api_version,
        subresource: "",
        ignored: lifecycle::ignored_on_main(&call.resource),
        now: &now,
    };
    super::update::track(call, &writer, None, &mut object);
    let created = create_object(server, call, object, dry_run).await;
    let (created, more) = created.map_err(|error| error.after(&warnings))?;
    let warnings = [warnings, more].concat();
    Ok(answer::with_warnings(
        render::object(server, call, 201, &created),
        &warnings,
    ))
}

/// Rejects an object with another namespace than the path.
pub(crate) fn check_place(call: &Call, object: &Value) -> Result<(), ApiError> {
    let given = text(object, "/metadata/namespace");
    if !given.is_empty() && given != call.namespace() && call.resource.namespaced {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

/// Sets the namespace from the path.
pub(crate) fn place(call: &Call, object: &mut Value) -> Result<(), ApiError> {
    check_place(call, object)?;
    let wanted = call.namespace();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        if wanted.is_empty() {
            metadata.shift_remove("namespace");
        } else {
            metadata.insert("namespace".to_owned(), json!(wanted));
        }
    }
    Ok(())
}

/// Creates an object whose managed fields are already set. Returns it with warnings of webhooks.
pub(crate) async fn create_object(
    server: &Arc<Server>,
    call: &Call,
    object: Value,
    dry_run: bool,
) -> Result<(Arc<Object>, Vec<String>), ApiError> {
    let resource = &call.resource;
    admission::namespace_lifecycle(server, call, Operation::Create)?;
    if resource.custom.is_some() {
        let definition = format!("{}.{}", resource.plural, resource.group);
        let definition = server.store.get(crd::STORAGE, &definition);
        if definition.is_some_and(|definition| definition.is_deleting()) {
            let about = About {
                name: text(&object, "/metadata/name"),
                ..call.about()
            };
            let why = "create not allowed while custom resource definition is terminating";
            return Err(ApiError::forbidden(about, why));
        }
    }
    let generated = text(&object, "/metadata/name").is_empty();
    let prefix = text(&object, "/metadata/generateName").to_owned();
    let mut tries = 0;
    loop {
        tries += 1;
        let mut object = object.clone();
        if generated && !prefix.is_empty() {
            let kept: String = prefix.chars().take(58).collect();
            object["metadata"]["name"] = json!(format!("{kept}{}", server.clock.suffix(5)));
        }
        let mut warnings = Vec::new();
        lifecycle::begin(server, resource, &mut object);
        let attempt = |object| Attempt {
            server,
            call,
            operation: Operation::Create,
            object,
            old: None,
            dry_run,
        };
        let mut object = admission::mutate(attempt(&object), &mut warnings).await?;
        escalation::check(server, call, &object, None)?;
        let mut errors = lifecycle::taken_address(&server.store, resource, &object);
        lifecycle::complete(&server.services, resource, &mut object);
        errors.extend(lifecycle::check(resource, super::Endpoint::Main, &object, None));
        let name = text(&object, "/metadata/name").to_owned();
        if !errors.is_empty() {
            return Err(ApiError::invalid(
                About {
                    group: resource.group_in_errors(),
                    kind: &resource.kind,
                    name: &name,
                },
                &errors,
            ));
        }
        admission::validate(attempt(&object), &mut warnings).await?;
        admission::quota::check(server, call, &object)?;
        let key = store::key(&call.namespace(), &name);
        if dry_run {
            if server.store.get(&resource.storage, &key).is_some() {
                return Err(exists(server, call, &name, &prefix));
            }
            return Ok((Arc::new(Object::unsaved(object)), warnings));
        }
        if let Some(custom) = &resource.custom {
            custom.prune_for_storage(&mut object);
        }
        match server.store.put(&resource.storage, &key, Expect::Absent, object) {
            Ok(created) => return Ok((created, warnings)),
            Err(_) if generated && tries < ATTEMPTS => {}
            Err(_) => return Err(exists(server, call, &name, &prefix)),
        }
    }
}

fn exists(server: &Server, call: &Call, name: &str, prefix: &str) -> ApiError {
    let mut error = ApiError::already_exists(About {
        group: &call.resource.group,
        kind: &call.resource.plural,
        name,
    });
    let key = store::key(&call.namespace(), name);
    let known = server.store.get(&call.resource.storage, &key);
    if known.is_some_and(|known| known.is_deleting()) {
        error.message.insert_str(0, "object is being deleted: ");
    }
    if !prefix.is_empty() {
        error
            .message
            .push_str(", the server was not able to generate a unique name for the object");
        error.details.insert("retryAfterSeconds".to_owned(), json!(1));
    }
    error
}
