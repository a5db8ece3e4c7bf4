//! DELETE of one object and of many: preconditions, propagation, grace, finalizers.

use std::sync::Arc;

use jiff::ToSpan as _;
use serde_json::{Value, json};

use super::{body, list, render};
use crate::admission::{self, Attempt, Operation};
use crate::answer::{self, Answer};
use crate::error::{About, ApiError, Fault, FieldError};
use crate::lifecycle;
use crate::request::{Call, Form};
use crate::resource::Resource;
use crate::schema::crd;
use crate::server::Server;
use crate::store::{Expect, Object, metadata_only};

pub(crate) const FOREGROUND: &str = "foregroundDeletion";
pub(crate) const ORPHAN: &str = "orphan";

/// The options of a deletion.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteOptions {
    uid: Option<String>,
    version: Option<String>,
    policy: Option<String>,
    grace: Option<i64>,
    dry_run: bool,
}

impl DeleteOptions {
    /// Dependents are collected afterwards.
    pub(crate) fn background() -> Self {
        Self {
            policy: Some("Background".to_owned()),
            ..Self::default()
        }
    }

    /// Dependents go first.
    pub(crate) fn foreground() -> Self {
        Self {
            policy: Some("Foreground".to_owned()),
            ..Self::default()
        }
    }

    /// At once, without a grace period.
    pub(crate) fn now() -> Self {
        Self {
            grace: Some(0),
            ..Self::background()
        }
    }

    /// Only the object with this uid, not a later one of the same name.
    #[must_use]
    pub(crate) fn only(mut self, uid: &str) -> Self {
        self.uid = Some(uid.to_owned());
        self
    }

    fn parse(call: &Call) -> Result<Self, ApiError> {
        let body = if call.body.is_empty() {
            json!({})
        } else {
            body::parse(call)?
        };
        let own = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let query = |key: &str| call.query.get(key).map(str::to_owned);
        // A body counts alone: then the query is not read.
        let policy = if call.body.is_empty() {
            query("propagationPolicy")
        } else {
            own("/propagationPolicy")
        };
        if let Some(other) = policy
            .as_deref()
            .filter(|p| !matches!(*p, "Background" | "Foreground" | "Orphan"))
        {
            let known = "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"";
            let error = FieldError::new(
                Fault::NotSupported,
                "propagationPolicy",
                Some(json!(other)),
                known,
            );
            return Err(ApiError::invalid_option("DeleteOptions", &error));
        }
        let orphans = body.get("orphanDependents").and_then(Value::as_bool);
        if let (Some(policy), Some(_)) = (&policy, orphans) {
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            let error = FieldError::invalid("propagationPolicy", &json!(policy), detail);
            return Err(ApiError::invalid_option("DeleteOptions", &error));
        }
        let dry = body
            .get("dryRun")
            .and_then(Value::as_array)
            .is_some_and(|all| all.contains(&json!("All")));
        Ok(Self {
            uid: own("/preconditions/uid"),
            version: own("/preconditions/resourceVersion"),
            policy: policy
                .or_else(|| orphans.map(|yes| if yes { "Orphan" } else { "Background" }.to_owned())),
            grace: body
                .get("gracePeriodSeconds")
                .and_then(Value::as_i64)
                .or_else(|| call.query.get("gracePeriodSeconds")?.parse().ok()),
            dry_run: dry || call.dry_run()?,
        })
    }

    fn check(&self, call: &Call, object: &Object) -> Result<(), ApiError> {
        let about = About {
            kind: &call.resource.kind,
            ..call.about()
        };
        if let Some(uid) = self.uid.as_deref().filter(|uid| *uid != object.uid()) {
            return Err(ApiError::conflict(
                about,
                &format!(
                    "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and then recreated",
                    object.uid()
                ),
            ));
        }
        let version = object.revision().to_string();
        if let Some(asked) = self.version.as_deref().filter(|asked| *asked != version) {
            return Err(ApiError::conflict(
                about,
                &format!(
                    "the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion in record ({version}). The object might have been modified"
                ),
            ));
        }
        Ok(())
    }

    /// The finalizers of the object while it waits for its dependents.
    fn finalizers(&self, resource: &Resource, object: &Object) -> Vec<String> {
        let policy = self
            .policy
            .as_deref()
            .unwrap_or(lifecycle::default_propagation(resource));
        let mut finalizers: Vec<String> = object
            .finalizers()
            .into_iter()
            .filter(|name| self.policy.is_none() || !matches!(*name, FOREGROUND | ORPHAN))
            .map(str::to_owned)
            .collect();
        let own = match policy {
            "Foreground" => Some(FOREGROUND),
            "Orphan" => Some(ORPHAN),
            _ => None,
        };
        if &*resource.storage == crd::STORAGE && !finalizers.iter().any(|name| name == crd::CLEANUP) {
            finalizers.push(crd::CLEANUP.to_owned());
        }
        if let Some(own) = own.filter(|own| !finalizers.iter().any(|name| name == own)) {
            finalizers.push(own.to_owned());
        }
        finalizers
    }
}

/// What came of a deletion.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// It is gone; holds its last state.
    Gone(Arc<Object>),
    /// It waits for finalizers or for its grace period.
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

/// Deletes the object of a call, now or as soon as its finalizers are gone.
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
                    // A pod is shown as if it had had a grace period, of nothing.
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

/// Notes in the object that it is being deleted.
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
    let mut items = Vec::new();
    for (_, object) in snapshot
        .objects
        .iter()
        .filter(|(_, object)| selector.matches(object.value()))
    {
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
            Ok(Deleted::Gone(object) | Deleted::Waiting(object)) => {
                items.push(
                    render::converted(&call.resource, object.value())
                        .unwrap_or_else(|| object.value().clone()),
                );
            }
            Err(error) if error.code == 404 => {}
            Err(error) => return Err(error),
        }
    }
    let mut meta = json!({"resourceVersion": server.store.revision().to_string()});
    if call.form == Form::Metadata {
        let items: Vec<Value> = items.iter().map(metadata_only).collect();
        return Ok(answer::json(200, &list::of_metadata(&meta, &items)));
    }
    if call.resource.custom.is_some() {
        meta["continue"] = json!("");
    } else {
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
