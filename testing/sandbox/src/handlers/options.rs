//! Options of a deletion: preconditions, propagation, grace period, dry run.

use serde_json::{Value, json};

use super::body;
use crate::error::{About, ApiError, Fault, FieldError};
use crate::lifecycle;
use crate::request::Call;
use crate::resource::Resource;
use crate::schema::crd;
use crate::store::{Object, text};

pub(crate) const FOREGROUND: &str = "foregroundDeletion";
pub(crate) const ORPHAN: &str = "orphan";

/// The options of a deletion.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteOptions {
    uid: Option<String>,
    version: Option<String>,
    pub(super) policy: Option<String>,
    pub(super) grace: Option<i64>,
    pub(super) dry_run: bool,
}

impl DeleteOptions {
    /// Dependents are deleted afterwards.
    pub(crate) fn background() -> Self {
        Self {
            policy: Some("Background".to_owned()),
            ..Self::default()
        }
    }

    /// Dependents are deleted first.
    pub(crate) fn foreground() -> Self {
        Self {
            policy: Some("Foreground".to_owned()),
            ..Self::default()
        }
    }

    /// Immediately, without a grace period.
    pub(crate) fn now() -> Self {
        Self {
            grace: Some(0),
            ..Self::background()
        }
    }

    /// Only the object with this uid, not a later one with the same name.
    #[must_use]
    pub(crate) fn only(mut self, uid: &str) -> Self {
        self.uid = Some(uid.to_owned());
        self
    }

    /// The options of a DELETE: its body, if there is one.
    pub(super) fn parse(call: &Call) -> Result<Self, ApiError> {
        if call.body.is_empty() {
            return Self::of(call, None);
        }
        let body = body::parse(call)?;
        let (kind, version) = (text(&body, "/kind"), text(&body, "/apiVersion"));
        if !matches!(kind, "" | "DeleteOptions") {
            return Err(ApiError::bad_request(format!(
                "no kind \"{kind}\" is registered for version \"{version}\" in scheme \"pkg/runtime/scheme.go:111\""
            )));
        }
        Self::of(call, Some(&body))
    }

    /// The options in the `body` of a request.
    pub(super) fn of(call: &Call, body: Option<&Value>) -> Result<Self, ApiError> {
        let own = |pointer: &str| body?.pointer(pointer)?.as_str().map(str::to_owned);
        // If there is a body, the query is ignored.
        let policy = if body.is_none() {
            call.query.get("propagationPolicy").map(str::to_owned)
        } else {
            own("/propagationPolicy")
        };
        let body = body.unwrap_or(&Value::Null);
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
        let dry = match body.get("dryRun") {
            None | Some(Value::Null) => false,
            Some(Value::Array(all)) if all.iter().all(|word| word == "All") => !all.is_empty(),
            Some(other) => {
                let known = "supported values: \"All\"";
                let error = FieldError::new(Fault::NotSupported, "dryRun", Some(other.clone()), known);
                return Err(ApiError::invalid_option("DeleteOptions", &error));
            }
        };
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

    pub(super) fn check(&self, call: &Call, object: &Object) -> Result<(), ApiError> {
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
    pub(super) fn finalizers(&self, resource: &Resource, object: &Object) -> Vec<String> {
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
