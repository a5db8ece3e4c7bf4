//! Validation rules for the fields of built-in kinds, as a table: common mistakes, with the original's messages.
//! Everything that is not listed here is not checked.

mod access;
mod autoscaling;
mod cluster;
mod networking;
mod objects;
mod pods;
mod rule;
mod scaling;
mod services;
mod values;
mod webhooks;
mod workloads;

use serde_json::Value;

use self::rule::{Rule, each};
use crate::error::FieldError;
use crate::resource::Resource;
use crate::store::text;

const PROTOCOLS: Rule = Rule::OneOf(&["SCTP", "TCP", "UDP"]);
const NOT_NEGATIVE: Rule = Rule::AtLeast(0);

/// Storage, path (`[]` matches every item), rule.
const RULES: &[(&str, &str, Rule)] = &[
    (
        "/services",
        "spec.type",
        Rule::OneOf(&["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]),
    ),
    (
        "/services",
        "spec.sessionAffinity",
        Rule::OneOf(&["ClientIP", "None"]),
    ),
    ("/services", "spec.ports[].port", Rule::Port),
    ("/services", "spec.ports[].targetPort", Rule::Port),
    ("/services", "spec.ports[].protocol", PROTOCOLS),
    ("/services", "spec.ports", Rule::Unique("name")),
    (
        "/persistentvolumeclaims",
        "spec.accessModes",
        Rule::Required("at least 1 access mode is required"),
    ),
    ("apps/deployments", "spec.minReadySeconds", NOT_NEGATIVE),
    ("apps/deployments", "spec.revisionHistoryLimit", NOT_NEGATIVE),
    ("apps/statefulsets", "spec.minReadySeconds", NOT_NEGATIVE),
    ("apps/statefulsets", "spec.revisionHistoryLimit", NOT_NEGATIVE),
    ("batch/jobs", "spec.parallelism", NOT_NEGATIVE),
    ("batch/jobs", "spec.completions", NOT_NEGATIVE),
    ("batch/jobs", "spec.backoffLimit", NOT_NEGATIVE),
    ("batch/jobs", "spec.activeDeadlineSeconds", NOT_NEGATIVE),
    ("batch/jobs", "spec.ttlSecondsAfterFinished", NOT_NEGATIVE),
    ("batch/cronjobs", "spec.startingDeadlineSeconds", NOT_NEGATIVE),
    ("batch/cronjobs", "spec.successfulJobsHistoryLimit", NOT_NEGATIVE),
    ("batch/cronjobs", "spec.failedJobsHistoryLimit", NOT_NEGATIVE),
    (
        "batch/cronjobs",
        "spec.concurrencyPolicy",
        Rule::OneOf(&["Allow", "Forbid", "Replace"]),
    ),
    (
        "coordination.k8s.io/leases",
        "spec.leaseDurationSeconds",
        Rule::AtLeast(1),
    ),
    (
        "coordination.k8s.io/leases",
        "spec.leaseTransitions",
        NOT_NEGATIVE,
    ),
    (
        "rbac.authorization.k8s.io/roles",
        "rules[].verbs",
        Rule::Required("verbs must contain at least one value"),
    ),
    (
        "rbac.authorization.k8s.io/clusterroles",
        "rules[].verbs",
        Rule::Required("verbs must contain at least one value"),
    ),
    (
        "rbac.authorization.k8s.io/rolebindings",
        "subjects[].kind",
        Rule::OneOf(&["ServiceAccount", "User", "Group"]),
    ),
    (
        "rbac.authorization.k8s.io/clusterrolebindings",
        "subjects[].kind",
        Rule::OneOf(&["ServiceAccount", "User", "Group"]),
    ),
];

/// Rules for pod specs, in pods and in templates.
const PODS: &[(&str, Rule)] = &[
    ("restartPolicy", Rule::OneOf(&["Always", "OnFailure", "Never"])),
    ("volumes", Rule::Unique("name")),
    ("containers", Rule::Unique("name")),
    ("containers[].name", Rule::Label),
    (
        "containers[].imagePullPolicy",
        Rule::OneOf(&["Always", "IfNotPresent", "Never"]),
    ),
    ("containers[].ports[].containerPort", Rule::Port),
    ("containers[].ports[].protocol", PROTOCOLS),
    ("containers[].env[].name", Rule::Required("")),
    ("initContainers[].name", Rule::Label),
    ("initContainers[].env[].name", Rule::Required("")),
];

/// The path of a kind's pod spec.
pub(super) fn pod_spec(storage: &str) -> Option<&'static str> {
    match storage {
        "/pods" => Some("spec"),
        "apps/deployments" | "apps/replicasets" | "apps/statefulsets" | "apps/daemonsets" | "batch/jobs" => {
            Some("spec.template.spec")
        }
        "batch/cronjobs" => Some("spec.jobTemplate.spec.template.spec"),
        _ => None,
    }
}

/// All errors of an object, or of a change.
pub(super) fn check(resource: &Resource, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let storage = &*resource.storage;
    let mut errors = Vec::new();
    let own = RULES.iter().filter(|(known, ..)| *known == storage);
    for (_, path, rule) in own {
        each(object, path, &mut |at, value| rule.check(at, value, &mut errors));
    }
    if let Some(root) = pod_spec(storage) {
        for (path, rule) in PODS {
            // Jobs have their own rule for the restart policy.
            if *path == "restartPolicy" && root != "spec" {
                continue;
            }
            each(object, &format!("{root}.{path}"), &mut |at, value| {
                rule.check(at, value, &mut errors);
            });
        }
        let claims: Vec<&str> = values::items(object, "", "/spec/volumeClaimTemplates")
            .map(|(_, claim)| text(claim, "/metadata/name"))
            .collect();
        each(object, root, &mut |at, pod| {
            pods::check(at, pod, &claims, &mut errors);
        });
    }
    match storage {
        "/services" => services::check(object, &mut errors),
        "/persistentvolumeclaims" => scaling::claim(object, &mut errors),
        "/events" => access::event(object, old, resource.group == "events.k8s.io", &mut errors),
        "apps/deployments" => workloads::deployment(object, &mut errors),
        "apps/statefulsets" => workloads::stateful_set(object, &mut errors),
        "batch/jobs" => workloads::job(object, &mut errors),
        "autoscaling/horizontalpodautoscalers" => autoscaling::check(object, &mut errors),
        "policy/poddisruptionbudgets" => scaling::disruption_budget(object, &mut errors),
        "networking.k8s.io/ingresses" => networking::ingress(object, &mut errors),
        "networking.k8s.io/networkpolicies" => networking::network_policy(object, &mut errors),
        "rbac.authorization.k8s.io/roles" | "rbac.authorization.k8s.io/clusterroles" => {
            access::role(object, resource.namespaced, &mut errors);
        }
        "rbac.authorization.k8s.io/rolebindings" | "rbac.authorization.k8s.io/clusterrolebindings" => {
            access::binding(object, &mut errors);
        }
        "admissionregistration.k8s.io/validatingwebhookconfigurations"
        | "admissionregistration.k8s.io/mutatingwebhookconfigurations" => {
            webhooks::check(object, &mut errors);
        }
        "/secrets" => objects::secret(object, &mut errors),
        "/configmaps" => objects::config_map(object, &mut errors),
        "apps/daemonsets" => workloads::daemon_set(object, &mut errors),
        "scheduling.k8s.io/priorityclasses" => cluster::priority_class(object, &mut errors),
        "storage.k8s.io/storageclasses" => cluster::storage_class(object, &mut errors),
        "networking.k8s.io/ingressclasses" => cluster::ingress_class(object, &mut errors),
        "discovery.k8s.io/endpointslices" => cluster::endpoint_slice(object, &mut errors),
        "/resourcequotas" => cluster::quota(object, &mut errors),
        "batch/cronjobs" => {
            errors.extend(objects::schedule(text(object, "/spec/schedule")));
            workloads::cron_job(object, &mut errors);
        }
        _ => {}
    }
    errors
}
