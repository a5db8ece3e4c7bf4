//! DELETE of one object and of collections: preconditions, propagation, grace period, finalizers.

use std::sync::Arc;

use jiff::ToSpan as _;
use serde_json::{Value, json};

use super::options::DeleteOptions;
use super::{list, render};
use crate::admission::{self, Attempt, Operation};
use crate::answer::{self, Answer};
use crate::error::ApiError;
use crate::lifecycle;
use crate::request::{Call, Form};
use crate::resource::Resource;
use crate::schema::crd;
use crate::server::Server;
use crate::store::{Expect, Object, metadata_only};

/// The result of a deletion.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// The object is deleted; contains its last state.
    Gone(Arc<Object>),
    /// The object waits for finalizers or for its grace period.
    Waiting(Arc<Object>),
}

pub(crate) async fn delete(server: &Arc<Server>, call: &Call) -> Result<Answer, ApiError> {
    let options = DeleteOptions::parse(call)?;
    let deleted = delete_object(server, call, &options).await?;
    let answer = match deleted {
        Deleted::Waiting(object) => render::object(server, call, 200, &object),
        Deleted::Gone(object) if lifecycle::returns_deleted(&call.resource) => {
            render::object(server, call, 200, &object)
        }
        Deleted::Gone(object) => {
            let mut details = json!({"name": object.name()});
            if !call.resource.group.is_empty() {
                details["group"] = json!(call.resource.group);
            }
            details["kind"] = json!(call.resource.plural);
            details["uid"] = json!(object.uid());
            answer::json(
                200,
                &json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
                }),
            )
        }
    };
    let warnings = lifecycle::delete_warning(&call.resource, options.policy.is_none());
    Ok(answer::with_warnings(answer, &warnings))
}

/// Deletes the object of a call, now or as soon as its finalizers are removed.
pub(crate) async fn delete_object(
    server: &Arc<Server>,
    call: &Call,
    options: &DeleteOptions,
) -> Result<Deleted, ApiError> {
    let resource = &call.resource;
    admission::namespace_lifecycle(server, call, Operation::Delete)?;
    loop {
        let old = super::find(server, call)?;
        options.check(call, &old)?;
        let attempt = Attempt {
            server,
            call,
            operation: Operation::Delete,
            object: &Value::Null,
            old: Some(old.value()),
            dry_run: options.dry_run,
        };
        admission::validate(attempt, &mut Vec::new()).await?;
        let finalizers = options.finalizers(resource, &old);
        let grace = lifecycle::grace_seconds(resource, &old, options.grace);
        let mut new = old.value().clone();
        if finalizers.is_empty() {
            if let Some(metadata) = new["metadata"].as_object_mut() {
                metadata.shift_remove("finalizers");
            }
        } else {
            new["metadata"]["finalizers"] = json!(finalizers);
        }
        let waits =
            !finalizers.is_empty() || grace > 0 || lifecycle::has_inner_finalizers(resource, old.value());
        if options.dry_run && &*resource.storage == "/pods" {
            mark(server, resource, &old, &mut new, grace);
            return Ok(Deleted::Waiting(Arc::new(Object::unsaved(new))));
        }
        if options.dry_run {
            return Ok(if waits {
                Deleted::Waiting(old)
            } else {
                Deleted::Gone(old)
            });
        }
        let key = call.key();
        if !waits {
            match server.store.remove(&resource.storage, &key, old.revision()) {
                Ok(last) if &*resource.storage == "/pods" => {
                    // A pod is shown with a grace period of zero.
                    let mut shown = last.value().clone();
                    mark(server, resource, &old, &mut shown, 0);
                    return Ok(Deleted::Gone(Arc::new(Object::unsaved(shown))));
                }
                Ok(last) => return Ok(Deleted::Gone(last)),
                Err(_) => continue,
            }
        }
        mark(server, resource, &old, &mut new, grace);
        if new == *old.value() {
            return Ok(Deleted::Waiting(old));
        }
        if let Ok(marked) = server
            .store
            .put(&resource.storage, &key, Expect::Revision(old.revision()), new)
        {
            return Ok(Deleted::Waiting(marked));
        }
    }
}

/// Sets the deletion timestamp.
fn mark(server: &Server, resource: &Resource, old: &Object, new: &mut Value, grace: i64) {
    if !old.is_deleting() {
        let when = server
            .clock
            .now()
            .checked_add(grace.seconds())
            .unwrap_or_else(|_| server.clock.now());
        new["metadata"]["deletionTimestamp"] = json!(when.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        if !matches!(&*resource.storage, "/namespaces" | crd::STORAGE) {
            new["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
        }
        if let Some(generation) = new.pointer("/metadata/generation").and_then(Value::as_i64) {
            new["metadata"]["generation"] = json!(generation + 1);
        }
    } else if grace
        < new
            .pointer("/metadata/deletionGracePeriodSeconds")
            .and_then(Value::as_i64)
            .unwrap_or_default()
    {
        new["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
    }
    if &*resource.storage == "/namespaces" {
        new["status"]["phase"] = json!("Terminating");
    }
}

pub(crate) async fn delete_collection(server: &Arc<Server>, call: &Call) -> Result<Answer, ApiError> {
    let options = DeleteOptions::parse(call)?;
    let selector = list::selector(call)?;
    let snapshot = server.store.list(&call.resource.storage, list::namespace(call));
    let (page, mut meta) = list::page(call, &snapshot, &selector, None)?;
    let mut items = Vec::new();
    for object in page {
        let mut target = call.target.clone();
        object.name().clone_into(&mut target.name);
        object.namespace().clone_into(&mut target.namespace);
        let one = Call {
            user: call.user.clone(),
            verb: call.verb,
            resource: call.resource.clone(),
            query: call.query.clone(),
            form: call.form,
            content_type: call.content_type.clone(),
            user_agent: call.user_agent.clone(),
            body: call.body.clone(),
            target,
        };
        match delete_object(server, &one, &options).await {
            // Shown in its state before.
            Ok(_) => items.push(
                render::converted(&call.resource, object.value()).unwrap_or_else(|| object.value().clone()),
            ),
            Err(error) if error.code == 404 => {}
            Err(error) => return Err(error),
        }
    }
    meta["resourceVersion"] = json!(server.store.revision().to_string());
    if call.form == Form::Metadata {
        let items: Vec<Value> = items.iter().map(metadata_only).collect();
        return Ok(answer::json(200, &list::of_metadata(&meta, &items)));
    }
    if call.resource.custom.is_none() {
        for item in items.iter_mut().filter_map(Value::as_object_mut) {
            item.shift_remove("kind");
            item.shift_remove("apiVersion");
        }
    }
    Ok(answer::json(
        200,
        &json!({
            "kind": call.resource.list_kind(), "apiVersion": call.resource.api_version(),
            "metadata": meta, "items": items,
        }),
    ))
}
