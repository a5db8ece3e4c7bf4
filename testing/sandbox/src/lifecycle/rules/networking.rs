//! Ingresses and network policies.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::super::names;
use super::values::{items, one_of, port, port_name, selector, subdomain};
use crate::error::FieldError;
use crate::store::text;

/// Rules, backends and certificates of an Ingress.
pub(super) fn ingress(object: &Value, errors: &mut Vec<FieldError>) {
    let rules = object.pointer("/spec/rules").and_then(Value::as_array);
    let backend = object.pointer("/spec/defaultBackend");
    if rules.is_none_or(Vec::is_empty) && backend.is_none() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        errors.push(FieldError::invalid("spec", &Value::Null, detail));
    }
    for (at, tls) in items(object, "spec.tls", "/spec/tls") {
        for (at, name) in items(tls, &format!("{at}.hosts"), "/hosts") {
            host(&at, name.as_str().unwrap_or_default(), errors);
        }
        let secret = text(tls, "/secretName");
        if !secret.is_empty() {
            subdomain(format!("{at}.secretName"), secret, errors);
        }
    }
    if let Some(given) = backend {
        self::backend("spec.defaultBackend", given, errors);
    }
    let class = text(object, "/spec/ingressClassName");
    if !class.is_empty() {
        subdomain("spec.ingressClassName", class, errors);
    }
    for (at, rule) in items(object, "spec.rules", "/spec/rules") {
        let name = text(rule, "/host");
        if name.parse::<IpAddr>().is_ok() {
            let detail = "must be a DNS name, not an IP address";
            errors.push(FieldError::invalid(format!("{at}.host"), &json!(name), detail));
        } else if !name.is_empty() {
            host(&format!("{at}.host"), name, errors);
        }
        if let Some(http) = rule.get("http") {
            paths(&format!("{at}.http.paths"), http, errors);
        }
    }
}

/// A host name, with or without a wildcard.
fn host(at: &str, name: &str, errors: &mut Vec<FieldError>) {
    let Some(rest) = name.strip_prefix('*') else {
        return subdomain(at, name, errors);
    };
    let domain = rest.strip_prefix('.');
    if domain.is_none_or(|domain| names::subdomain_problem(domain).is_some()) {
        let detail = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
        errors.push(FieldError::invalid(at, &json!(name), detail));
    }
}

fn paths(at: &str, http: &Value, errors: &mut Vec<FieldError>) {
    if http
        .get("paths")
        .and_then(Value::as_array)
        .is_none_or(Vec::is_empty)
    {
        errors.push(FieldError::required(at, ""));
    }
    for (at, item) in items(http, at, "/paths") {
        path(&at, item, errors);
        self::backend(
            &format!("{at}.backend"),
            item.get("backend").unwrap_or(&Value::Null),
            errors,
        );
    }
}

/// A path must match its type.
fn path(at: &str, item: &Value, errors: &mut Vec<FieldError>) {
    const SEQUENCES: [&str; 5] = ["//", "/./", "/../", "%2f", "%2F"];
    let kind = text(item, "/pathType");
    let path = text(item, "/path");
    let field = format!("{at}.path");
    match kind {
        "" => {
            let detail = "pathType must be specified";
            errors.push(FieldError::required(format!("{at}.pathType"), detail));
        }
        "Exact" | "Prefix" => {
            if !path.starts_with('/') {
                errors.push(FieldError::invalid(
                    &field,
                    &json!(path),
                    "must be an absolute path",
                ));
            }
            if !path.is_empty() {
                for sequence in SEQUENCES.iter().filter(|it| path.contains(**it)) {
                    let detail = format!("must not contain '{sequence}'");
                    errors.push(FieldError::invalid(&field, &json!(path), detail));
                }
                for end in ["/..", "/."].iter().filter(|end| path.ends_with(**end)) {
                    let detail = format!("cannot end with '{end}'");
                    errors.push(FieldError::invalid(&field, &json!(path), detail));
                }
            }
        }
        "ImplementationSpecific" => {
            if !path.is_empty() && !path.starts_with('/') {
                errors.push(FieldError::invalid(
                    &field,
                    &json!(path),
                    "must be an absolute path",
                ));
            }
        }
        other => one_of(
            &format!("{at}.pathType"),
            other,
            &["Exact", "ImplementationSpecific", "Prefix"],
            errors,
        ),
    }
}

fn backend(at: &str, backend: &Value, errors: &mut Vec<FieldError>) {
    let nothing = &json!("");
    let service = match (backend.get("service"), backend.get("resource")) {
        (Some(_), Some(_)) => {
            let detail = "cannot set both resource and service backends";
            return errors.push(FieldError::invalid(at, nothing, detail));
        }
        (None, None) => {
            let detail = "resource or service backend is required";
            return errors.push(FieldError::invalid(at, nothing, detail));
        }
        (None, Some(_)) => return,
        (Some(service), None) => service,
    };
    let name = text(service, "/name");
    let field = format!("{at}.service.name");
    if name.is_empty() {
        errors.push(FieldError::required(field, ""));
    } else if let Some(detail) = names::label_problem(name) {
        errors.push(FieldError::invalid(field, &json!(name), detail));
    }
    let number = service.pointer("/port/number").filter(|port| **port != json!(0));
    match (number, text(service, "/port/name")) {
        (None, "") => errors.push(FieldError::required(at, "port name or number is required")),
        (Some(_), name) if !name.is_empty() => {
            let detail = "cannot set both port name & port number";
            errors.push(FieldError::invalid(at, nothing, detail));
        }
        (Some(number), _) => port(&format!("{at}.service.port.number"), number, errors),
        (None, name) => port_name(&format!("{at}.service.port.name"), name, errors),
    }
}

/// Peers and ports of a network policy.
pub(super) fn network_policy(object: &Value, errors: &mut Vec<FieldError>) {
    if let Some(pods) = object.pointer("/spec/podSelector") {
        selector("spec.podSelector", pods, errors);
    }
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        let rules = items(
            object,
            &format!("spec.{direction}"),
            &format!("/spec/{direction}"),
        );
        for (at, rule) in rules {
            for (at, item) in items(rule, &format!("{at}.ports"), "/ports") {
                policy_port(&at, item, errors);
            }
            for (at, item) in items(rule, &format!("{at}.{peers}"), &format!("/{peers}")) {
                peer(&at, item, errors);
            }
        }
    }
    let types = object.pointer("/spec/policyTypes");
    if types
        .and_then(Value::as_array)
        .is_some_and(|types| types.len() > 2)
    {
        let detail = "may not specify more than two policyTypes";
        errors.push(FieldError::invalid(
            "spec.policyTypes",
            types.unwrap_or(&Value::Null),
            detail,
        ));
        return;
    }
    for (at, item) in items(object, "spec.policyTypes", "/spec/policyTypes") {
        one_of(
            &at,
            item.as_str().unwrap_or_default(),
            &["Ingress", "Egress"],
            errors,
        );
    }
}

fn policy_port(at: &str, item: &Value, errors: &mut Vec<FieldError>) {
    let protocol = text(item, "/protocol");
    if !protocol.is_empty() {
        one_of(
            &format!("{at}.protocol"),
            protocol,
            &["TCP", "UDP", "SCTP"],
            errors,
        );
    }
    let last = item.get("endPort");
    match (item.get("port"), last) {
        (Some(first @ Value::Number(_)), last) => {
            port(&format!("{at}.port"), first, errors);
            if let Some(last) = last {
                if last.as_i64() < first.as_i64() {
                    // The original shows the first port here.
                    let detail = "must be greater than or equal to `port`";
                    errors.push(FieldError::invalid(format!("{at}.endPort"), first, detail));
                }
                if last.as_i64().is_none_or(|last| last > 65535) {
                    port(&format!("{at}.endPort"), last, errors);
                }
            }
        }
        (Some(name), last) => {
            if let Some(last) = last {
                let detail = "may not be specified when `port` is non-numeric";
                errors.push(FieldError::invalid(format!("{at}.endPort"), last, detail));
            }
            port_name(&format!("{at}.port"), name.as_str().unwrap_or_default(), errors);
        }
        (None, Some(last)) => {
            let detail = "may not be specified when `port` is not specified";
            errors.push(FieldError::invalid(format!("{at}.endPort"), last, detail));
        }
        (None, None) => {}
    }
}

fn peer(at: &str, peer: &Value, errors: &mut Vec<FieldError>) {
    let mut peers = 0;
    for key in ["podSelector", "namespaceSelector"] {
        if let Some(given) = peer.get(key) {
            peers += 1;
            selector(&format!("{at}.{key}"), given, errors);
        }
    }
    let block = peer.get("ipBlock");
    if let Some(block) = block {
        ip_block(&format!("{at}.ipBlock"), block, errors);
    }
    if block.is_some() && peers > 0 {
        let detail = "may not specify both ipBlock and another peer";
        errors.push(FieldError::forbidden(at, detail));
    } else if block.is_none() && peers == 0 {
        errors.push(FieldError::required(at, "must specify a peer"));
    }
}

/// An address and its prefix length.
fn cidr(text: &str) -> Option<(u128, u32, bool)> {
    let (address, bits) = text.split_once('/')?;
    let bits: u32 = bits.parse().ok()?;
    let (address, width) = match address.parse().ok()? {
        IpAddr::V4(address) => (u128::from(u32::from(address)) << 96, 32),
        IpAddr::V6(address) => (u128::from(address), 128),
    };
    (bits <= width).then_some((address, bits, width == 32))
}

fn ip_block(at: &str, block: &Value, errors: &mut Vec<FieldError>) {
    const DETAIL: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
    let given = text(block, "/cidr");
    if given.is_empty() {
        return errors.push(FieldError::required(format!("{at}.cidr"), ""));
    }
    let Some((whole, bits, is_v4)) = cidr(given) else {
        return errors.push(FieldError::invalid(format!("{at}.cidr"), &json!(given), DETAIL));
    };
    for (at, item) in items(block, &format!("{at}.except"), "/except") {
        match cidr(item.as_str().unwrap_or_default()) {
            None => errors.push(FieldError::invalid(at, item, DETAIL)),
            Some((part, longer, v4)) => {
                let shift = 128 - bits;
                let inside = whole.checked_shr(shift) == part.checked_shr(shift);
                if v4 != is_v4 || longer <= bits || !inside {
                    errors.push(FieldError::invalid(at, item, "must be a strict subset of `cidr`"));
                }
            }
        }
    }
}
