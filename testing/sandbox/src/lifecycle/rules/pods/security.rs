//! Security contexts of pods and containers.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

use super::super::values::{items, one_of};
use crate::error::{Fault, FieldError};
use crate::store::text;

const PROFILES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];

/// The name of a kernel parameter.
static PARAMETER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$").ok()
});

/// The context of a whole pod.
pub(super) fn pod(at: &str, pod: &Value, errors: &mut Vec<FieldError>) {
    let at = format!("{at}.securityContext");
    let flag = |key: &str| pod.get(key) == Some(&json!(true));
    if flag("hostPID") && flag("shareProcessNamespace") {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.push(FieldError::invalid(
            format!("{at}.shareProcessNamespace"),
            &json!(true),
            detail,
        ));
    }
    let Some(context) = pod.get("securityContext") else {
        return;
    };
    for key in ["fsGroup", "runAsUser", "runAsGroup"] {
        identity(&format!("{at}.{key}"), context.get(key), errors);
    }
    for (at, group) in items(
        context,
        &format!("{at}.supplementalGroups"),
        "/supplementalGroups",
    ) {
        identity(&at, Some(group), errors);
    }
    let policy = text(context, "/fsGroupChangePolicy");
    if !policy.is_empty() {
        let known = ["Always", "OnRootMismatch"];
        one_of(&format!("{at}.fsGroupChangePolicy"), policy, &known, errors);
    }
    profiles(&at, context, errors);
    let mut known: Vec<&str> = Vec::new();
    for (at, parameter) in items(context, &format!("{at}.sysctls"), "/sysctls") {
        let name = text(parameter, "/name");
        let at = format!("{at}.name");
        let is_valid = name.len() <= 253 && PARAMETER.as_ref().is_some_and(|pattern| pattern.is_match(name));
        if name.is_empty() {
            errors.push(FieldError::required(at, ""));
        } else if !is_valid {
            let detail = "must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
            errors.push(FieldError::invalid(at, &json!(name), detail));
        } else if known.contains(&name) {
            errors.push(FieldError::new(Fault::Duplicate, at, Some(json!(name)), ""));
        }
        known.push(name);
    }
}

/// The context of a container.
pub(super) fn container(at: &str, context: Option<&Value>, errors: &mut Vec<FieldError>) {
    let Some(context) = context else { return };
    for key in ["runAsUser", "runAsGroup"] {
        identity(&format!("{at}.{key}"), context.get(key), errors);
    }
    let mount = text(context, "/procMount");
    if !mount.is_empty() {
        one_of(
            &format!("{at}.procMount"),
            mount,
            &["Default", "Unmasked"],
            errors,
        );
    }
    profiles(at, context, errors);
}

fn identity(at: &str, id: Option<&Value>, errors: &mut Vec<FieldError>) {
    if let Some(id) = id
        && id
            .as_i64()
            .is_some_and(|id| !(0..=i64::from(i32::MAX)).contains(&id))
    {
        let detail = "must be between 0 and 2147483647, inclusive";
        errors.push(FieldError::invalid(at, id, detail));
    }
}

fn profiles(at: &str, context: &Value, errors: &mut Vec<FieldError>) {
    for (key, name) in [("seccompProfile", "seccomp"), ("appArmorProfile", "AppArmor")] {
        let Some(profile) = context.get(key) else {
            continue;
        };
        let at = format!("{at}.{key}");
        let kind = text(profile, "/type");
        if kind.is_empty() {
            errors.push(FieldError::required(
                format!("{at}.type"),
                format!("type is required when {key} is set"),
            ));
        } else {
            one_of(&format!("{at}.type"), kind, &PROFILES, errors);
        }
        let file = format!("{at}.localhostProfile");
        match (kind, profile.get("localhostProfile").and_then(Value::as_str)) {
            ("Localhost", None) => {
                let detail = format!("must be set when {name} type is Localhost");
                errors.push(FieldError::required(file, detail));
            }
            ("Localhost", Some(path)) if path.starts_with('/') => {
                errors.push(FieldError::invalid(file, &json!(path), "must be a relative path"));
            }
            ("Localhost", Some(_)) | (_, None) => {}
            (_, Some(path)) => {
                // Shown with the names of its Go fields.
                let shown = json!({"Type": kind, "LocalhostProfile": path});
                let detail = format!("can only be set when {name} type is Localhost");
                errors.push(FieldError::invalid(file, &shown, detail));
            }
        }
    }
}
