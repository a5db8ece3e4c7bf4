//! What the fields of built-in kinds may hold, as a table: the mistakes that people make, in the words of the
//! original. Whatever is not listed here is not checked.

use serde_json::{Map, Value, json};

use super::names;
use crate::error::{Fault, FieldError};
use crate::store::text;

/// A rule about one field.
#[derive(Debug, Clone, Copy)]
enum Rule {
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// At least this number.
    AtLeast(i64),
    /// A port, if it is a number.
    Port,
    /// Something, and the words for nothing.
    Required(&'static str),
    /// A lower-case label.
    Label,
    /// Items that differ in this field.
    Unique(&'static str),
}

const PROTOCOLS: Rule = Rule::OneOf(&["SCTP", "TCP", "UDP"]);
const NOT_NEGATIVE: Rule = Rule::AtLeast(0);

/// Storage, path (`[]` stands for every item), rule.
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

/// Rules about pods, wherever they are described.
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

/// Secrets of some types must have some keys.
const SECRET_KEYS: &[(&str, &[&str])] = &[
    ("kubernetes.io/tls", &["tls.crt", "tls.key"]),
    ("kubernetes.io/ssh-auth", &["ssh-privatekey"]),
    ("kubernetes.io/dockerconfigjson", &[".dockerconfigjson"]),
];

/// Where a kind describes its pods.
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

/// Every listed mistake in an object.
pub(super) fn check(storage: &str, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let own = RULES.iter().filter(|(known, ..)| *known == storage);
    for (_, path, rule) in own {
        each(object, path, &mut |at, value| rule.check(at, value, &mut errors));
    }
    if let Some(root) = pod_spec(storage) {
        for (path, rule) in PODS {
            // What restarts a job is a rule of its own.
            if *path == "restartPolicy" && root != "spec" {
                continue;
            }
            each(object, &format!("{root}.{path}"), &mut |at, value| {
                rule.check(at, value, &mut errors);
            });
        }
        each(object, root, &mut |at, pod| references(at, pod, &mut errors));
    }
    match storage {
        "/services" => service(object, &mut errors),
        "/secrets" => secret(object, &mut errors),
        "/configmaps" => config_map(object, &mut errors),
        _ => {}
    }
    errors
}

/// Calls `found` with every value at a path; with null where the last step leads nowhere.
fn each<'v>(value: &'v Value, path: &str, found: &mut dyn FnMut(&str, &'v Value)) {
    walk(value, path, "", found);
}

fn walk<'v>(value: &'v Value, path: &str, at: &str, found: &mut dyn FnMut(&str, &'v Value)) {
    if path.is_empty() {
        return found(at, value);
    }
    let (step, rest) = path.split_once('.').unwrap_or((path, ""));
    let (key, every) = step.strip_suffix("[]").map_or((step, false), |key| (key, true));
    let at = if at.is_empty() {
        key.to_owned()
    } else {
        format!("{at}.{key}")
    };
    match (value.get(key), every) {
        (Some(inner), false) => walk(inner, rest, &at, found),
        (Some(Value::Array(items)), true) => {
            for (index, item) in items.iter().enumerate() {
                walk(item, rest, &format!("{at}[{index}]"), found);
            }
        }
        (None, false) if rest.is_empty() => found(&at, &Value::Null),
        _ => {}
    }
}

impl Rule {
    fn check(self, at: &str, value: &Value, errors: &mut Vec<FieldError>) {
        match (self, value) {
            (Self::OneOf(known), Value::String(word))
                if !known.contains(&word.as_str()) && !word.is_empty() =>
            {
                let known: Vec<String> = known.iter().map(|word| format!("\"{word}\"")).collect();
                let detail = format!("supported values: {}", known.join(", "));
                errors.push(FieldError::new(
                    Fault::NotSupported,
                    at,
                    Some(value.clone()),
                    detail,
                ));
            }
            (Self::AtLeast(least), Value::Number(_))
                if value.as_i64().is_some_and(|number| number < least) =>
            {
                let detail = if least == 1 {
                    "must be greater than 0"
                } else {
                    "must be greater than or equal to 0"
                };
                errors.push(FieldError::invalid(at, value, detail));
            }
            (Self::Port, Value::Number(_)) if value.as_i64() == Some(0) && at.ends_with("containerPort") => {
                errors.push(FieldError::required(at, ""));
            }
            (Self::Port, Value::Number(_))
                if !value.as_i64().is_some_and(|port| (1..=65535).contains(&port)) =>
            {
                errors.push(FieldError::invalid(
                    at,
                    value,
                    "must be between 1 and 65535, inclusive",
                ));
            }
            (Self::Required(words), value) if is_nothing(value) => {
                errors.push(FieldError::required(at, words));
            }
            (Self::Label, Value::String(name)) if !name.is_empty() => {
                if let Some(detail) = names::label_problem(name) {
                    errors.push(FieldError::invalid(at, value, detail));
                }
            }
            (Self::Unique(key), Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    let name = item.get(key).filter(|name| !is_nothing(name));
                    let known = items
                        .iter()
                        .take(index)
                        .any(|other| name.is_some() && other.get(key) == name);
                    if known {
                        let at = format!("{at}[{index}].{key}");
                        errors.push(FieldError::new(Fault::Duplicate, at, name.cloned(), ""));
                    }
                }
            }
            _ => {}
        }
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// What the parts of a pod say about each other.
fn references(at: &str, pod: &Value, errors: &mut Vec<FieldError>) {
    let list = |key: &str| pod.get(key).and_then(Value::as_array).into_iter().flatten();
    let volumes: Vec<&str> = list("volumes").map(|volume| text(volume, "/name")).collect();
    for key in ["containers", "initContainers"] {
        for (index, container) in list(key).enumerate() {
            let at = format!("{at}.{key}[{index}]");
            let inner = |key: &str| {
                container
                    .get(key)
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten()
                    .enumerate()
            };
            for (index, mount) in inner("volumeMounts") {
                let name = text(mount, "/name");
                if !volumes.contains(&name) {
                    let at = format!("{at}.volumeMounts[{index}].name");
                    errors.push(FieldError::new(Fault::NotFound, at, Some(json!(name)), ""));
                }
            }
            for (index, variable) in inner("env") {
                if !text(variable, "/value").is_empty() && variable.get("valueFrom").is_some() {
                    let at = format!("{at}.env[{index}].valueFrom");
                    let detail = "may not be specified when `value` is not empty";
                    errors.push(FieldError::invalid(at, &json!(""), detail));
                }
            }
            for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
                let handlers = ["exec", "grpc", "httpGet", "tcpSocket"];
                let given = container.get(probe).and_then(Value::as_object);
                if given.is_some_and(|probe| !handlers.iter().any(|handler| probe.contains_key(*handler))) {
                    errors.push(FieldError::required(
                        format!("{at}.{probe}"),
                        "must specify a handler type",
                    ));
                }
            }
        }
    }
}

fn service(object: &Value, errors: &mut Vec<FieldError>) {
    let ports = object.pointer("/spec/ports").and_then(Value::as_array);
    let ports = ports
        .filter(|ports| ports.len() > 1)
        .into_iter()
        .flatten()
        .enumerate();
    for (index, _) in ports.filter(|(_, port)| text(port, "/name").is_empty()) {
        errors.push(FieldError::required(format!("spec.ports[{index}].name"), ""));
    }
    if text(object, "/spec/type") == "ExternalName" && text(object, "/spec/externalName").is_empty() {
        errors.push(FieldError::required("spec.externalName", ""));
    }
    let address = text(object, "/spec/clusterIP");
    if !matches!(address, "" | "None") && address.parse::<std::net::IpAddr>().is_err() {
        let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        errors.push(FieldError::invalid("spec.clusterIPs[0]", &json!(address), detail));
    }
}

fn secret(object: &Value, errors: &mut Vec<FieldError>) {
    let kind = text(object, "/type");
    let nothing = Map::new();
    let data = object.get("data").and_then(Value::as_object).unwrap_or(&nothing);
    let keys = SECRET_KEYS
        .iter()
        .filter(|(known, _)| *known == kind)
        .flat_map(|(_, keys)| *keys);
    for key in keys.filter(|key| !data.contains_key(**key)) {
        errors.push(FieldError::required(format!("data[{key}]"), ""));
    }
    if kind == "kubernetes.io/basic-auth" && !data.contains_key("username") && !data.contains_key("password")
    {
        errors.push(FieldError::required("data[username]", ""));
        errors.push(FieldError::required("data[password]", ""));
    }
    let account = "kubernetes.io/service-account.name";
    let annotations = object.pointer("/metadata/annotations");
    if kind == "kubernetes.io/service-account-token" && annotations.and_then(|all| all.get(account)).is_none()
    {
        errors.push(FieldError::required(
            format!("metadata.annotations[{account}]"),
            "",
        ));
    }
}

fn config_map(object: &Value, errors: &mut Vec<FieldError>) {
    let binary = object.get("binaryData").and_then(Value::as_object);
    let data = object
        .get("data")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    for (key, _) in data.filter(|(key, _)| binary.is_some_and(|binary| binary.contains_key(*key))) {
        let detail = "duplicate of key present in binaryData";
        errors.push(FieldError::invalid(format!("data[{key}]"), &json!(key), detail));
    }
}
