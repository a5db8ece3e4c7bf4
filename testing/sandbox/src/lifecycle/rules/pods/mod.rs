//! Pods and templates of pods.

mod environment;
mod placement;
mod probes;
mod resources;
mod security;
mod volumes;

use std::net::IpAddr;

use serde_json::{Value, json};

use super::super::names;
use super::values::{items, one_of, port, port_name, subdomain};
use crate::error::{Fault, FieldError};
use crate::store::text;

/// All errors of a pod spec. `claims` are the names of a `StatefulSet`'s claim templates, which are volumes of its pods.
pub(super) fn check(at: &str, pod: &Value, claims: &[&str], errors: &mut Vec<FieldError>) {
    volumes::check(at, pod, claims, errors);
    placement::check(at, pod, errors);
    security::pod(at, pod, errors);
    let mut known: Vec<&str> = Vec::new();
    for key in ["containers", "initContainers"] {
        for (at, container) in items(pod, &format!("{at}.{key}"), &format!("/{key}")) {
            let name = text(container, "/name");
            // The table of rules compares the containers of one list with each other.
            if key == "initContainers" && known.contains(&name) {
                errors.push(FieldError::new(
                    Fault::Duplicate,
                    format!("{at}.name"),
                    Some(json!(name)),
                    "",
                ));
            }
            known.push(name);
            container_of(&at, pod, container, key == "initContainers", errors);
        }
    }
    dns(at, pod, errors);
    for (key, rule) in [
        ("hostname", names::label_problem as fn(&str) -> _),
        ("subdomain", names::label_problem),
    ] {
        let name = text(pod, &format!("/{key}"));
        if let Some(detail) = Some(name).filter(|name| !name.is_empty()).and_then(rule) {
            errors.push(FieldError::invalid(format!("{at}.{key}"), &json!(name), detail));
        }
    }
    let account = text(pod, "/serviceAccountName");
    if !account.is_empty() {
        subdomain(format!("{at}.serviceAccountName"), account, errors);
    }
    if let Some(deadline) = pod
        .get("activeDeadlineSeconds")
        .filter(|given| given.as_i64().is_some_and(|given| given < 1))
    {
        let detail = "must be between 1 and 2147483647, inclusive";
        errors.push(FieldError::invalid(
            format!("{at}.activeDeadlineSeconds"),
            deadline,
            detail,
        ));
    }
    for (at, gate) in items(pod, &format!("{at}.readinessGates"), "/readinessGates") {
        names::check_key(
            text(gate, "/conditionType"),
            &format!("{at}.conditionType"),
            errors,
        );
    }
}

fn container_of(at: &str, pod: &Value, container: &Value, is_first: bool, errors: &mut Vec<FieldError>) {
    let image = text(container, "/image");
    if image.trim() != image {
        let detail = "must not have leading or trailing whitespace";
        errors.push(FieldError::invalid(format!("{at}.image"), &json!(image), detail));
    }
    if is_first && image.is_empty() {
        errors.push(FieldError::required(format!("{at}.image"), ""));
    }
    let policy = text(container, "/terminationMessagePolicy");
    if !policy.is_empty() {
        let known = ["File", "FallbackToLogsOnError"];
        one_of(&format!("{at}.terminationMessagePolicy"), policy, &known, errors);
    }
    let restarts = text(container, "/restartPolicy");
    if is_first && !restarts.is_empty() {
        let known = ["Always", "Never", "OnFailure"];
        one_of(&format!("{at}.restartPolicy"), restarts, &known, errors);
    }
    ports(at, pod, container, errors);
    environment::check(at, container, errors);
    volumes::mounts(at, container, errors);
    resources::check(&format!("{at}.resources"), container.get("resources"), errors);
    security::container(
        &format!("{at}.securityContext"),
        container.get("securityContext"),
        errors,
    );
    let may_be_probed = !is_first || restarts == "Always";
    probes::check(at, pod, container, may_be_probed, errors);
}

fn ports(at: &str, pod: &Value, container: &Value, errors: &mut Vec<FieldError>) {
    let on_host = pod.get("hostNetwork") == Some(&json!(true));
    let mut names: Vec<&str> = Vec::new();
    for (at, given) in items(container, &format!("{at}.ports"), "/ports") {
        let name = text(given, "/name");
        if !name.is_empty() {
            port_name(&format!("{at}.name"), name, errors);
            if names.contains(&name) {
                let at = format!("{at}.name");
                errors.push(FieldError::new(Fault::Duplicate, at, Some(json!(name)), ""));
            }
            names.push(name);
        }
        let Some(host) = given.get("hostPort").filter(|host| **host != json!(0)) else {
            continue;
        };
        port(&format!("{at}.hostPort"), host, errors);
        if on_host && given.get("containerPort") != Some(host) {
            let detail = "must match `containerPort` when `hostNetwork` is true";
            errors.push(FieldError::invalid(format!("{at}.hostPort"), host, detail));
        }
    }
}

fn dns(at: &str, pod: &Value, errors: &mut Vec<FieldError>) {
    const POLICIES: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    const ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
    let policy = text(pod, "/dnsPolicy");
    if !policy.is_empty() {
        one_of(&format!("{at}.dnsPolicy"), policy, &POLICIES, errors);
    }
    if policy == "None" && pod.get("dnsConfig").is_none() {
        let detail = "must provide `dnsConfig` when `dnsPolicy` is None";
        errors.push(FieldError::required(format!("{at}.dnsConfig"), detail));
    }
    let is_address = |given: &Value| {
        given
            .as_str()
            .is_some_and(|given| given.parse::<IpAddr>().is_ok())
    };
    for (at, server) in items(
        pod,
        &format!("{at}.dnsConfig.nameservers"),
        "/dnsConfig/nameservers",
    ) {
        if !is_address(server) {
            errors.push(FieldError::invalid(at, server, ADDRESS));
        }
    }
    for (at, alias) in items(pod, &format!("{at}.hostAliases"), "/hostAliases") {
        let address = alias.get("ip").cloned().unwrap_or_else(|| json!(""));
        if !is_address(&address) {
            errors.push(FieldError::invalid(format!("{at}.ip"), &address, ADDRESS));
        }
        for (at, host) in items(alias, &format!("{at}.hostnames"), "/hostnames") {
            subdomain(at, host.as_str().unwrap_or_default(), errors);
        }
    }
}
