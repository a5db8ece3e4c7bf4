//! Validates a `PostgresUser` when it is applied: the controller's own rules, and that a role has one object.
//!
//! The controller checks all of it again, so nothing depends on the webhook: it only finds errors earlier.

use std::sync::Arc;

use kube::{Client, ResourceExt};
use stanchion_api::PostgresUser;
use stanchion_api::user::INSTANCE_IS_IMMUTABLE;
use stanchion_kernel::Scope;
use stanchion_kernel::admission::{Denial, Lookup, Request, Webhook, WebhookTarget};
use stanchion_kernel::problem::Class;

use crate::user::{check, instance, username_is_immutable};

/// The webhooks of this crate.
pub fn webhooks(client: &Client, _: &[Scope]) -> Vec<Webhook> {
    let others = Lookup::new(client.clone());
    vec![Webhook::validating_with(
        WebhookTarget::of::<PostgresUser>(),
        move |request| review(others.clone(), request),
    )]
}

async fn review(others: Lookup<PostgresUser>, request: Arc<Request>) -> Result<Vec<String>, Denial> {
    match judge(&request)? {
        Judged::Passed(warnings) => Ok(warnings),
        Judged::Alone(user) => {
            // Only in the author's own namespace, and only if the author may list the objects there: a refusal names
            // the other object. Otherwise the request is not refused; the controller checks all namespaces.
            let others = others.list(&request).await;
            let others = others.as_deref().unwrap_or_default();
            match others.iter().find(|other| is_rival(&user, other)) {
                Some(other) => Err(taken(&user, other)),
                None => Ok(Vec::new()),
            }
        }
    }
}

/// The result for one object alone.
#[derive(Debug)]
enum Judged {
    /// Accepted, with warnings.
    Passed(Vec<String>),
    /// Accepted if no other object has the same role.
    Alone(Box<PostgresUser>),
}

fn judge(request: &Request) -> Result<Judged, Denial> {
    let Some(object) = &request.object else {
        return Ok(Judged::Passed(Vec::new()));
    };
    let read = |object: &kube::core::DynamicObject| {
        serde_json::to_value(object).and_then(serde_json::from_value::<PostgresUser>)
    };
    let user = match read(object) {
        Ok(user) => user,
        // The schema accepted it, so it belongs to a newer version of the operator than this replica.
        Err(error) => {
            let warning = format!("this version of the operator cannot read the object: {error}");
            return Ok(Judged::Passed(vec![warning]));
        }
    };
    let old = request.old_object.as_ref().and_then(|old| read(old).ok());
    let Some(old) = old else {
        rules(&user)?;
        return Ok(Judged::Alone(Box::new(user)));
    };
    if old.spec == user.spec {
        return Ok(Judged::Passed(Vec::new()));
    }
    let (was, is) = (&old.spec.username, &user.spec.username);
    if was != is {
        return Err(Denial::of_field("spec.username", username_is_immutable(was, is)));
    }
    if instance(&old) != instance(&user) {
        return Err(Denial::of_field("spec.instanceRef", INSTANCE_IS_IMMUTABLE));
    }
    // An object that was accepted without the webhook stays changeable, with a warning.
    match (rules(&user), rules(&old)) {
        (Err(now), Err(before)) if now == before => Ok(Judged::Passed(vec![now.message])),
        (Err(denial), _) => Err(denial),
        (Ok(()), _) => Ok(Judged::Passed(Vec::new())),
    }
}

/// The controller's rules. A suspended object is checked like any other, because it may be resumed.
fn rules(user: &PostgresUser) -> Result<(), Denial> {
    let mut user = user.clone();
    user.spec.suspend = false;
    match check(&user) {
        Err(problem) if problem.class == Class::Permanent => Err(Denial::new(problem.message)),
        _ => Ok(()),
    }
}

/// Whether another object has the same role. One that is being deleted does not count.
fn is_rival(user: &PostgresUser, other: &PostgresUser) -> bool {
    let same_object = (user.namespace(), user.name_any()) == (other.namespace(), other.name_any());
    !same_object
        && other.metadata.deletion_timestamp.is_none()
        && other.spec.username == user.spec.username
        && instance(other) == instance(user)
}

fn taken(user: &PostgresUser, other: &PostgresUser) -> Denial {
    let message = format!(
        "role {:?} belongs to PostgresUser {}/{} already; choose another username, or delete that object first",
        user.spec.username,
        other.namespace().unwrap_or_default(),
        other.name_any(),
    );
    Denial::of_field("spec.username", message)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn object(name: &str, spec: &Value) -> Value {
        json!({
            "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresUser",
            "metadata": { "name": name, "namespace": "ns" }, "spec": spec,
        })
    }

    fn user(name: &str, spec: &Value) -> PostgresUser {
        serde_json::from_value(object(name, spec)).unwrap()
    }

    fn judged(old: Option<&Value>, new: &Value) -> Result<Judged, Denial> {
        let kind = json!({ "group": "db.example.com", "version": "v1alpha1", "kind": "PostgresUser" });
        let resource =
            json!({ "group": "db.example.com", "version": "v1alpha1", "resource": "postgresusers" });
        let request = json!({
            "uid": "1", "kind": kind, "resource": resource, "name": "x", "userInfo": {},
            "operation": if old.is_some() { "UPDATE" } else { "CREATE" },
            "object": object("x", new), "oldObject": old.map(|old| object("x", old)),
        });
        judge(&serde_json::from_value(request).unwrap())
    }

    fn spec(username: &str) -> Value {
        json!({ "username": username, "database": "app", "passwordSecretRef": { "name": "s" } })
    }

    fn with(mut spec: Value, field: &str, value: Value) -> Value {
        spec[field] = value;
        spec
    }

    #[test]
    fn what_the_controller_refuses_is_refused() {
        for (field, value, words) in [
            ("username", json!("a-b"), "hyphens"),
            ("suspend", json!(true), ""),
            ("database", json!("a b"), "database must match"),
            ("driftPolicy", json!({ "interval": "soon" }), "is not a duration"),
            ("memberOf", json!([{ "role": "a" }]), "member of itself"),
            ("onDelete", json!({ "reassignTo": "a" }), "a role of this object"),
            ("onDelete", json!({ "reassignTo": "a_b" }), ""),
            (
                "role",
                json!({ "parameters": { "a b": "c" } }),
                "is not the name of a parameter",
            ),
            (
                "credentialsSecret",
                json!({ "name": "c", "template": { "k": "{{ .Nothing }}" } }),
                "credentialsSecret.template.k",
            ),
        ] {
            let result = judged(None, &with(spec("a"), field, value));
            match words {
                "" => assert!(result.is_ok()),
                words => assert!(result.unwrap_err().message.contains(words), "{field}"),
            }
        }
    }

    /// C36: the username is immutable.
    #[test]
    fn a_username_does_not_change() {
        let denial = judged(Some(&spec("a")), &spec("b")).unwrap_err();
        assert_eq!(
            denial.message,
            "username is immutable after creation (old: a, new: b)"
        );
    }

    /// Otherwise the role would be left behind.
    #[test]
    fn a_server_does_not_change() {
        let there = |name: &str| with(spec("a"), "instanceRef", json!({ "name": name }));
        let here = json!({ "name": "main", "namespace": "ns" });
        for (old, new) in [
            (spec("a"), there("main")),
            (there("main"), there("other")),
            (there("main"), spec("a")),
        ] {
            let denial = judged(Some(&old), &new).unwrap_err();
            assert_eq!(denial.message, INSTANCE_IS_IMMUTABLE);
        }
        assert!(judged(Some(&there("main")), &with(spec("a"), "instanceRef", here)).is_ok());
    }

    /// C37: an existing error prevents no other change, and metadata changes are never refused.
    #[test]
    fn an_invalid_object_can_be_changed() {
        let wrong = with(spec("a"), "database", json!("a b"));
        assert!(judged(Some(&wrong), &wrong).is_ok());
        let other = with(wrong.clone(), "deletionPolicy", json!("Retain"));
        let Judged::Passed(warnings) = judged(Some(&wrong), &other).unwrap() else {
            panic!("nobody has to be asked");
        };
        assert!(warnings[0].contains("database must match"));
        assert!(judged(Some(&spec("a")), &other).is_err());
    }

    #[test]
    fn a_role_has_one_object_on_each_server() {
        let (a, b) = (user("a", &spec("r")), user("b", &spec("r")));
        assert!(is_rival(&a, &b));
        assert!(!is_rival(&a, &a));
        assert!(!is_rival(&a, &user("c", &spec("s"))));
        let elsewhere = with(spec("r"), "instanceRef", json!({ "name": "other" }));
        assert!(!is_rival(&a, &user("d", &elsewhere)));
        let mut going = b;
        going.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
            jiff::Timestamp::UNIX_EPOCH,
        ));
        assert!(!is_rival(&a, &going));
    }
}
