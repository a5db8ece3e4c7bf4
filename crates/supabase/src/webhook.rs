//! Validates a `SupabaseProject` when it is applied: the controller's own rules, and the contents of its Secrets.
//!
//! A Secret that lacks a key is refused, as in the original. A missing Secret only causes a warning: a folder with both
//! may be applied in any order, and the project waits for it. Nothing depends on the webhook, and an object that is
//! being deleted is not checked, so the webhook can never block a deletion.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use stanchion_api::SupabaseProject;
use stanchion_kernel::admission::{Denial, Lookup, Request, Unseen, Webhook, WebhookTarget};
use stanchion_kernel::problem::Class;
use stanchion_kernel::scope::Scope;

use crate::project::check;
use crate::project::secrets::{DATABASE_KEYS, STORAGE_KEYS, lacking};
use crate::project::target::name;

/// The webhooks of this crate.
pub fn webhooks(client: &Client, _: &[Scope]) -> Vec<Webhook> {
    let secrets = Lookup::new(client.clone());
    vec![Webhook::validating_with(
        WebhookTarget::of::<SupabaseProject>(),
        move |request| review(secrets.clone(), request),
    )]
}

async fn review(secrets: Lookup<Secret>, request: Arc<Request>) -> Result<Vec<String>, Denial> {
    let project = match judge(&request)? {
        Judged::Passed(warnings) => return Ok(warnings),
        Judged::Ask(project) => project,
    };
    let mut warnings = Vec::new();
    let rows = [
        ("database", &project.spec.database.secret_ref, DATABASE_KEYS),
        ("storage", &project.spec.storage.secret_ref, STORAGE_KEYS),
    ];
    for (what, reference, keys) in rows {
        let Some(secret) = name(reference) else { continue };
        // A Secret that the author may not read is not checked, because the answer would reveal its contents. The
        // request is not refused; the controller checks, too.
        match secrets.get(&request, &secret).await {
            Ok(Some(found)) => {
                if let Some(key) = lacking(keys, |key| has(&found, key)) {
                    let message = format!("{what} secret missing required key '{key}'");
                    return Err(Denial::of_field(format!("spec.{what}.secretRef"), message));
                }
            }
            Ok(None) => warnings.push(format!(
                "{what} secret '{secret}' not found; the project waits for it"
            )),
            Err(Unseen) => {}
        }
    }
    Ok(warnings)
}

fn has(secret: &Secret, key: &str) -> bool {
    let data = secret.data.as_ref().and_then(|data| data.get(key));
    data.is_some_and(|value| !value.0.trim_ascii().is_empty())
}

/// The result for one object alone.
#[derive(Debug)]
enum Judged {
    /// Accepted, with warnings.
    Passed(Vec<String>),
    /// Accepted if its Secrets are valid.
    Ask(Box<SupabaseProject>),
}

fn judge(request: &Request) -> Result<Judged, Denial> {
    let read = |object: &kube::core::DynamicObject| {
        serde_json::to_value(object).and_then(serde_json::from_value::<SupabaseProject>)
    };
    let Some(object) = &request.object else {
        return Ok(Judged::Passed(Vec::new()));
    };
    let mut project = match read(object) {
        Ok(project) => project,
        // The schema accepted it, so it belongs to a newer version of the operator than this replica.
        Err(error) => {
            let warning = format!("this version of the operator cannot read the object: {error}");
            return Ok(Judged::Passed(vec![warning]));
        }
    };
    if project.metadata.namespace.is_none() {
        project.metadata.namespace.clone_from(&request.namespace);
    }
    let old = request.old_object.as_ref().and_then(|old| read(old).ok());
    if old.as_ref().is_some_and(|old| old.spec == project.spec) {
        return Ok(Judged::Passed(Vec::new()));
    }
    // An object that was accepted without the webhook stays changeable, with a warning.
    match (rules(&project), old.map(|old| rules(&old))) {
        (Err(now), Some(Err(before))) if now == before => Ok(Judged::Passed(vec![now.message])),
        (Err(denial), _) => Err(denial),
        (Ok(()), _) => Ok(Judged::Ask(Box::new(project))),
    }
}

/// The controller's rules. A suspended object is checked like any other, because it may be resumed.
fn rules(project: &SupabaseProject) -> Result<(), Denial> {
    match check(project) {
        Err(problem) if problem.class == Class::Permanent => Err(Denial::new(problem.message)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn object(spec: &Value) -> Value {
        json!({
            "apiVersion": "supabase.strrl.dev/v1alpha1", "kind": "SupabaseProject",
            "metadata": { "name": "shop", "namespace": "ns" }, "spec": spec,
        })
    }

    fn spec(kong: &str) -> Value {
        json!({
            "projectId": "shop", "kong": { "image": kong },
            "database": { "secretRef": { "name": "db" } }, "storage": { "secretRef": { "name": "s3" } },
        })
    }

    fn judged(old: Option<&Value>, new: &Value) -> Result<Judged, Denial> {
        let kind = json!({ "group": "supabase.strrl.dev", "version": "v1alpha1", "kind": "SupabaseProject" });
        let resource =
            json!({ "group": "supabase.strrl.dev", "version": "v1alpha1", "resource": "supabaseprojects" });
        let request = json!({
            "uid": "1", "kind": kind, "resource": resource, "name": "shop", "namespace": "ns", "userInfo": {},
            "operation": if old.is_some() { "UPDATE" } else { "CREATE" },
            "object": object(new), "oldObject": old.map(object),
        });
        judge(&serde_json::from_value(request).unwrap())
    }

    #[test]
    fn what_the_controller_refuses_is_refused() {
        let denial = judged(None, &spec("kong")).unwrap_err();
        assert!(
            denial
                .message
                .contains("image must include tag (e.g., 'kong/kong:3.9.1')")
        );
        assert!(matches!(judged(None, &spec("kong:1")), Ok(Judged::Ask(_))));
    }

    /// An update that only removes a finalizer or an annotation is not checked, also not for Secrets.
    #[test]
    fn an_accepted_object_stays_changeable() {
        let (bad, good) = (spec("kong"), spec("kong:1"));
        assert!(matches!(judged(Some(&good), &good), Ok(Judged::Passed(warnings)) if warnings.is_empty()));
        let mut other = bad.clone();
        other["projectId"] = json!("other");
        assert!(matches!(judged(Some(&bad), &other), Ok(Judged::Passed(warnings)) if warnings.len() == 1));
        assert!(judged(Some(&good), &bad).is_err());
        assert!(matches!(judged(Some(&bad), &good), Ok(Judged::Ask(_))));
    }

    #[test]
    fn an_empty_value_is_no_value() {
        let secret: Secret =
            serde_json::from_value(json!({ "data": { "host": "", "port": "NTQzMg==" } })).unwrap();
        assert_eq!(lacking(&["port"], |key| has(&secret, key)), None);
        assert_eq!(
            lacking(&["port", "host", "user"], |key| has(&secret, key)),
            Some("host")
        );
    }
}
