//! The webhook configurations for the API server, and whether they are up to date. Pure.

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::api::{ApiResource, DynamicObject};
use serde_json::{Value, json};

use super::{
    Endpoint,
    review::TIMEOUT,
    webhook::{Stage, Webhook},
};
use crate::watch::MANAGED_BY;

/// The label with the name of a namespace.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// What happens to a write when the admission server does not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailurePolicy {
    /// The write succeeds, and the controller reports the mistake in the status.
    #[default]
    Ignore,
    /// The write is refused. No mistake gets in, but neither does any other write while the server is down.
    Fail,
}

/// Settings of the registration.
#[derive(Clone, Debug)]
pub struct RegistrationSettings {
    /// The name of both configurations.
    pub name: String,
    /// The address of the admission server.
    pub endpoint: Endpoint,
    /// What happens if it does not answer.
    pub failure_policy: FailurePolicy,
    /// The namespaces that the operator watches; empty for all.
    pub namespaces: Vec<String>,
}

/// The API of a stage's configurations.
pub(super) fn resource(stage: Stage) -> ApiResource {
    match stage {
        Stage::Mutating => ApiResource::erase::<MutatingWebhookConfiguration>(&()),
        Stage::Validating => ApiResource::erase::<ValidatingWebhookConfiguration>(&()),
    }
}

/// The configuration of one stage, or `None` if there are no webhooks for it.
pub(super) fn configuration(
    stage: Stage,
    settings: &RegistrationSettings,
    webhooks: &[Webhook],
    ca_bundle: Option<&str>,
) -> Option<Value> {
    let rows: Vec<Value> = webhooks
        .iter()
        .filter(|webhook| webhook.stage == stage)
        .map(|webhook| row(webhook, settings, ca_bundle))
        .collect();
    let ApiResource {
        api_version, kind, ..
    } = resource(stage);
    (!rows.is_empty()).then(|| {
        json!({
            "apiVersion": api_version,
            "kind": kind,
            "metadata": { "name": settings.name, "labels": { MANAGED_BY.0: MANAGED_BY.1 } },
            "webhooks": rows,
        })
    })
}

fn row(webhook: &Webhook, settings: &RegistrationSettings, ca_bundle: Option<&str>) -> Value {
    let target = &webhook.target;
    let operations: Vec<&str> = target
        .operations
        .iter()
        .map(|operation| operation.as_str())
        .collect();
    let mut row = json!({
        "name": webhook.name(),
        "clientConfig": settings.endpoint.client_config(&webhook.path(), ca_bundle),
        "rules": [{
            "apiGroups": [target.group],
            "apiVersions": [target.version],
            "resources": [target.plural],
            "operations": operations,
            "scope": "*",
        }],
        "failurePolicy": match settings.failure_policy {
            FailurePolicy::Ignore => "Ignore",
            FailurePolicy::Fail => "Fail",
        },
        "matchPolicy": "Equivalent",
        "matchConditions": [{
            "name": "not-going",
            "expression": "!has(object.metadata.deletionTimestamp)",
        }],
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT.as_secs(),
        "admissionReviewVersions": ["v1"],
    });
    if !settings.namespaces.is_empty()
        && let Some(fields) = row.as_object_mut()
    {
        let ours = json!({ "key": NAMESPACE_NAME, "operator": "In", "values": settings.namespaces });
        fields.insert("namespaceSelector".into(), json!({ "matchExpressions": [ours] }));
    }
    row
}

/// Whether the live configuration contains everything that we want. Defaults of the API server, fields of other
/// managers and the order, which server-side apply chooses, are ignored.
pub(super) fn is_settled(found: &DynamicObject, wanted: &Value) -> bool {
    covers(&by_name(&found.data), &by_name(wanted))
}

/// The webhooks of a configuration, sorted by name, each with its namespaces. Managed clusters add expressions to the
/// selector; removing them would cause a write at every check.
fn by_name(configuration: &Value) -> Value {
    let webhooks = configuration.get("webhooks").and_then(Value::as_array);
    let mut webhooks = webhooks.cloned().unwrap_or_default();
    webhooks.sort_by_cached_key(|webhook| webhook.get("name").map(Value::to_string));
    for webhook in &mut webhooks {
        let selector = webhook
            .pointer("/namespaceSelector/matchExpressions")
            .and_then(Value::as_array);
        let ours =
            |expression: &&Value| expression.get("key").and_then(Value::as_str) == Some(NAMESPACE_NAME);
        let limits: Vec<Value> = selector.into_iter().flatten().filter(ours).cloned().collect();
        if let Some(fields) = webhook.as_object_mut() {
            fields.insert("namespaceSelector".into(), Value::Array(limits));
        }
    }
    Value::Array(webhooks)
}

fn covers(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, wanted)| found.get(key).is_some_and(|found| covers(found, wanted))),
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len()
                && found
                    .iter()
                    .zip(wanted)
                    .all(|(found, wanted)| covers(found, wanted))
        }
        _ => found == wanted,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::coordination::v1::Lease;

    use super::{super::WebhookTarget, *};

    fn settings() -> RegistrationSettings {
        RegistrationSettings {
            name: "stanchion".into(),
            endpoint: Endpoint::Service {
                namespace: "ns".into(),
                name: "stanchion".into(),
                port: 443,
            },
            failure_policy: FailurePolicy::default(),
            namespaces: vec!["team".into()],
        }
    }

    fn validating() -> Webhook {
        Webhook::validating(WebhookTarget::of::<Lease>(), |_| Ok(vec![]))
    }

    #[test]
    fn a_registration_cannot_stand_in_the_way() {
        let wanted = configuration(Stage::Validating, &settings(), &[validating()], Some("PEM"));
        insta::assert_yaml_snapshot!(wanted, @r#"
        apiVersion: admissionregistration.k8s.io/v1
        kind: ValidatingWebhookConfiguration
        metadata:
          name: stanchion
          labels:
            app.kubernetes.io/managed-by: stanchion
        webhooks:
          - name: validate.v1.leases.coordination.k8s.io
            clientConfig:
              service:
                namespace: ns
                name: stanchion
                port: 443
                path: /validate/coordination.k8s.io/v1/leases
              caBundle: UEVN
            rules:
              - apiGroups:
                  - coordination.k8s.io
                apiVersions:
                  - v1
                resources:
                  - leases
                operations:
                  - CREATE
                  - UPDATE
                scope: "*"
            failurePolicy: Ignore
            matchPolicy: Equivalent
            matchConditions:
              - name: not-going
                expression: "!has(object.metadata.deletionTimestamp)"
            sideEffects: None
            timeoutSeconds: 3
            admissionReviewVersions:
              - v1
            namespaceSelector:
              matchExpressions:
                - key: kubernetes.io/metadata.name
                  operator: In
                  values:
                    - team
        "#);
        assert_eq!(
            configuration(Stage::Mutating, &settings(), &[validating()], None),
            None
        );
    }

    #[test]
    fn defaults_and_the_order_are_no_difference() {
        let mutating = Webhook::mutating(WebhookTarget::of::<Lease>(), |_| Ok(json_patch::Patch(vec![])));
        let mut other = mutating.clone();
        other.target.plural = "others".into();
        let wanted = configuration(Stage::Mutating, &settings(), &[mutating, other], Some("PEM")).unwrap();
        let found = |change: &dyn Fn(&mut Value)| {
            let mut found = wanted.clone();
            change(&mut found);
            is_settled(&serde_json::from_value(found).unwrap(), &wanted)
        };
        assert!(found(&|_| {}));
        assert!(found(&|found| found["webhooks"]
            .as_array_mut()
            .unwrap()
            .reverse()));
        assert!(found(
            &|found| found["webhooks"][0]["reinvocationPolicy"] = "Never".into()
        ));
        assert!(!found(
            &|found| found["webhooks"][0]["failurePolicy"] = "Fail".into()
        ));
        assert!(!found(
            &|found| found["webhooks"][0]["clientConfig"]["caBundle"] = "b2xk".into()
        ));
        assert!(!found(
            &|found| found["webhooks"][0]["rules"][0]["operations"] = json!(["DELETE"])
        ));
        assert!(!found(&|found| found["webhooks"]
            .as_array_mut()
            .unwrap()
            .truncate(1)));

        let everywhere = RegistrationSettings {
            namespaces: vec![],
            ..settings()
        };
        let table = [validating()];
        let limited = configuration(Stage::Validating, &settings(), &table, None).unwrap();
        let wide = configuration(Stage::Validating, &everywhere, &table, None).unwrap();
        assert!(
            !is_settled(&serde_json::from_value(limited).unwrap(), &wide),
            "a limit that is lifted"
        );
    }
}
