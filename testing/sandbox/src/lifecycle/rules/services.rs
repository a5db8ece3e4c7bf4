//! Ports, names and addresses of Services.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::super::names;
use super::values::{items, one_of, port_name, subdomain};
use crate::error::{Fault, FieldError};
use crate::store::text;

/// The allowed range of node ports.
const NODE_PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;

/// All errors of a Service.
pub(super) fn check(object: &Value, errors: &mut Vec<FieldError>) {
    let kind = text(object, "/spec/type");
    let ports: Vec<(String, &Value)> = items(object, "spec.ports", "/spec/ports").collect();
    for (index, (at, port)) in ports.iter().enumerate() {
        let name = text(port, "/name");
        if name.is_empty() && ports.len() > 1 {
            errors.push(FieldError::required(format!("{at}.name"), ""));
        }
        if !name.is_empty()
            && let Some(detail) = names::label_problem(name)
        {
            errors.push(FieldError::invalid(format!("{at}.name"), &json!(name), detail));
        }
        if let Some(Value::String(name)) = port.get("targetPort") {
            port_name(&format!("{at}.targetPort"), name, errors);
        }
        let protocol = text(port, "/appProtocol");
        if !protocol.is_empty() {
            names::check_key(protocol, &format!("{at}.appProtocol"), errors);
        }
        node_port(at, kind, port, errors);
        let same = |other: &Value| {
            ["protocol", "port"]
                .iter()
                .all(|key| other.get(*key) == port.get(*key))
        };
        if ports.iter().take(index).any(|(_, other)| same(other)) {
            // Shown with the names of its Go fields, and only those that make it a duplicate.
            let shown = json!({
                "Name": "", "Protocol": port.get("protocol"), "AppProtocol": null, "Port": port.get("port"),
                "TargetPort": 0, "NodePort": 0,
            });
            errors.push(FieldError::new(Fault::Duplicate, at, Some(shown), ""));
        }
    }
    for key in object
        .pointer("/spec/selector")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        names::check_key(key.0, "spec.selector", errors);
    }
    if kind == "ExternalName" {
        match text(object, "/spec/externalName") {
            "" => errors.push(FieldError::required("spec.externalName", "")),
            name => subdomain(
                "spec.externalName",
                name.strip_suffix('.').unwrap_or(name),
                errors,
            ),
        }
    }
    addresses(object, kind, errors);
    traffic(object, kind, errors);
    balancer(object, kind, errors);
}

fn node_port(at: &str, kind: &str, port: &Value, errors: &mut Vec<FieldError>) {
    let Some(number) = port.get("nodePort").filter(|number| **number != json!(0)) else {
        return;
    };
    let at = format!("{at}.nodePort");
    if !matches!(kind, "NodePort" | "LoadBalancer") {
        let detail = format!("may not be used when `type` is '{kind}'");
        errors.push(FieldError::forbidden(at, detail));
    } else if !number.as_i64().is_some_and(|number| NODE_PORTS.contains(&number)) {
        let detail = "provided port is not in the valid range. The range of valid ports is 30000-32767";
        errors.push(FieldError::invalid(at, number, detail));
    }
}

fn addresses(object: &Value, kind: &str, errors: &mut Vec<FieldError>) {
    const DETAIL: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
    let address = text(object, "/spec/clusterIP");
    match address {
        "None" if matches!(kind, "NodePort" | "LoadBalancer") => {
            let detail = format!("may not be set to 'None' for {kind} services");
            errors.push(FieldError::invalid("spec.clusterIPs[0]", &json!(address), detail));
        }
        "" | "None" => {}
        given => match given.parse() {
            Err(_) => errors.push(FieldError::invalid("spec.clusterIPs[0]", &json!(given), DETAIL)),
            Ok(IpAddr::V4(parsed)) if parsed.octets().starts_with(&[10, 96]) => {}
            Ok(_) if errors.is_empty() => {
                let detail = format!(
                    "failed to allocate IP {given}: the provided network does not match the current range"
                );
                errors.push(FieldError::invalid("spec.clusterIPs", &json!([given]), detail));
            }
            Ok(_) => {}
        },
    }
    for (at, given) in items(object, "spec.externalIPs", "/spec/externalIPs") {
        if given
            .as_str()
            .is_none_or(|given| given.parse::<IpAddr>().is_err())
        {
            errors.push(FieldError::invalid(at, given, DETAIL));
        }
    }
}

fn traffic(object: &Value, kind: &str, errors: &mut Vec<FieldError>) {
    const POLICIES: [&str; 2] = ["Cluster", "Local"];
    let outside = text(object, "/spec/externalTrafficPolicy");
    let is_reached = matches!(kind, "NodePort" | "LoadBalancer")
        || items(object, "", "/spec/externalIPs").next().is_some();
    if !outside.is_empty() && !is_reached {
        let detail = "may only be set for externally-accessible services";
        errors.push(FieldError::invalid(
            "spec.externalTrafficPolicy",
            &json!(outside),
            detail,
        ));
    } else if !outside.is_empty() {
        one_of("spec.externalTrafficPolicy", outside, &POLICIES, errors);
    }
    let inside = text(object, "/spec/internalTrafficPolicy");
    if !inside.is_empty() {
        one_of("spec.internalTrafficPolicy", inside, &POLICIES, errors);
    }
    let pointer = "/spec/sessionAffinityConfig/clientIP/timeoutSeconds";
    if let Some(seconds) = object.pointer(pointer)
        && !seconds
            .as_i64()
            .is_some_and(|seconds| (1..=86_400).contains(&seconds))
    {
        let detail = "must be greater than 0 and less than 86400";
        errors.push(FieldError::invalid(
            "spec.sessionAffinityConfig.clientIP.timeoutSeconds",
            seconds,
            detail,
        ));
    }
}

/// Fields of load balancers, and how requests are spread.
fn balancer(object: &Value, kind: &str, errors: &mut Vec<FieldError>) {
    const CLOSE: [&str; 3] = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    for key in ["loadBalancerClass", "allocateLoadBalancerNodePorts"] {
        if object.pointer(&format!("/spec/{key}")).is_some() && kind != "LoadBalancer" {
            let detail = "may only be used when `type` is 'LoadBalancer'";
            errors.push(FieldError::forbidden(format!("spec.{key}"), detail));
        }
    }
    let ranges = "/spec/loadBalancerSourceRanges";
    for (at, range) in items(object, "spec.LoadBalancerSourceRanges", ranges) {
        let (address, bits) = range
            .as_str()
            .and_then(|range| range.split_once('/'))
            .unwrap_or_default();
        if address.parse::<IpAddr>().is_err() || bits.parse::<u8>().is_err() {
            let detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
            errors.push(FieldError::invalid(at, range, detail));
        }
    }
    let close = text(object, "/spec/trafficDistribution");
    if !close.is_empty() {
        one_of("spec.trafficDistribution", close, &CLOSE, errors);
    }
    if text(object, "/spec/ipFamilyPolicy") == "RequireDualStack" && text(object, "/spec/clusterIP") != "None"
    {
        let detail = "this cluster is not configured for dual-stack services";
        let given = json!("RequireDualStack");
        errors.push(FieldError::invalid("spec.ipFamilyPolicy", &given, detail));
    }
    for (at, family) in items(object, "spec.ipFamilies", "/spec/ipFamilies") {
        if family == "IPv6" && text(object, "/spec/clusterIP") != "None" {
            errors.push(FieldError::invalid(at, family, "not configured on this cluster"));
        }
    }
}
