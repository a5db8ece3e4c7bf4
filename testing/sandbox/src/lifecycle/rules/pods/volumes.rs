//! Volumes of a pod and their mounts.

use serde_json::{Value, json};

use super::super::super::names;
use super::super::values::{items, one_of};
use super::environment;
use crate::error::{Fault, FieldError};
use crate::schema::quantity;
use crate::store::text;

/// The sources of a volume, in the order of the original's checks.
const SOURCES: [&str; 12] = [
    "emptyDir",
    "hostPath",
    "secret",
    "nfs",
    "iscsi",
    "persistentVolumeClaim",
    "downwardAPI",
    "configMap",
    "projected",
    "ephemeral",
    "csi",
    "image",
];
const HOST_PATHS: [&str; 8] = [
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];

/// The volumes, and that every mount has one.
pub(super) fn check(at: &str, pod: &Value, claims: &[&str], errors: &mut Vec<FieldError>) {
    let mut volumes = claims.to_vec();
    for (at, volume) in items(pod, &format!("{at}.volumes"), "/volumes") {
        let name = text(volume, "/name");
        if let Some(detail) = names::label_problem(name) {
            errors.push(FieldError::invalid(format!("{at}.name"), &json!(name), detail));
        }
        volumes.push(name);
        let sources: Vec<&str> = SOURCES
            .into_iter()
            .filter(|source| volume.get(source).is_some())
            .collect();
        for source in sources.iter().skip(1) {
            let detail = "may not specify more than 1 volume type";
            errors.push(FieldError::forbidden(format!("{at}.{source}"), detail));
        }
        if let Some(source) = sources.first() {
            source_of(
                &format!("{at}.{source}"),
                source,
                volume.get(source).unwrap_or(&Value::Null),
                errors,
            );
        }
    }
    for key in ["containers", "initContainers"] {
        for (at, container) in items(pod, &format!("{at}.{key}"), &format!("/{key}")) {
            for (at, mount) in items(container, &format!("{at}.volumeMounts"), "/volumeMounts") {
                let name = text(mount, "/name");
                if !volumes.contains(&name) {
                    let at = format!("{at}.name");
                    errors.push(FieldError::new(Fault::NotFound, at, Some(json!(name)), ""));
                }
            }
        }
    }
}

/// The mounts of a container.
pub(super) fn mounts(at: &str, container: &Value, errors: &mut Vec<FieldError>) {
    let at = format!("{at}.volumeMounts");
    let mut paths: Vec<&str> = Vec::new();
    for (item, mount) in items(container, &at, "/volumeMounts") {
        let path = text(mount, "/mountPath");
        let field = format!("{item}.mountPath");
        if path.is_empty() {
            errors.push(FieldError::required(field, ""));
        } else if paths.contains(&path) {
            errors.push(FieldError::invalid(field, &json!(path), "must be unique"));
        }
        paths.push(path);
        // The original omits the index here.
        inner_path(&format!("{at}.subPath"), text(mount, "/subPath"), errors);
        let expression = text(mount, "/subPathExpr");
        if !expression.is_empty() && !text(mount, "/subPath").is_empty() {
            let detail = "subPathExpr and subPath are mutually exclusive";
            errors.push(FieldError::invalid(
                format!("{item}.subPathExpr"),
                &json!(expression),
                detail,
            ));
        }
    }
}

fn source_of(at: &str, kind: &str, source: &Value, errors: &mut Vec<FieldError>) {
    match kind {
        "secret" | "configMap" => {
            let key = if kind == "secret" { "secretName" } else { "name" };
            if text(source, &format!("/{key}")).is_empty() {
                errors.push(FieldError::required(format!("{at}.{key}"), ""));
            }
            files(at, source, errors);
        }
        "projected" => {
            mode(&format!("{at}.defaultMode"), source.get("defaultMode"), errors);
            for (at, part) in items(source, &format!("{at}.sources"), "/sources") {
                for kind in ["secret", "configMap"] {
                    if let Some(part) = part.get(kind) {
                        files(&format!("{at}.{kind}"), part, errors);
                    }
                }
                if let Some(token) = part.get("serviceAccountToken") {
                    token_of(&format!("{at}.serviceAccountToken"), token, errors);
                }
            }
        }
        "hostPath" => {
            let path = text(source, "/path");
            if path.is_empty() {
                errors.push(FieldError::required(format!("{at}.path"), ""));
            }
            no_way_up(&format!("{at}.path"), path, errors);
            one_of(&format!("{at}.type"), text(source, "/type"), &HOST_PATHS, errors);
        }
        "persistentVolumeClaim" if text(source, "/claimName").is_empty() => {
            errors.push(FieldError::required(format!("{at}.claimName"), ""));
        }
        "emptyDir" => {
            let limit = source
                .get("sizeLimit")
                .and_then(Value::as_str)
                .and_then(quantity::number);
            if limit.is_some_and(|limit| limit < 0) {
                let detail = "SizeLimit field must be a valid resource quantity";
                errors.push(FieldError::forbidden(format!("{at}.sizeLimit"), detail));
            }
        }
        "downwardAPI" => {
            for (_, item) in items(source, "", "/items") {
                if let Some(field) = item.get("fieldRef") {
                    // The original omits the item here.
                    environment::field(&format!("{at}.fieldRef"), text(field, "/fieldPath"), errors);
                }
            }
        }
        _ => {}
    }
}

/// The keys of a Secret or `ConfigMap` as files.
fn files(at: &str, source: &Value, errors: &mut Vec<FieldError>) {
    mode(&format!("{at}.defaultMode"), source.get("defaultMode"), errors);
    for (at, item) in items(source, &format!("{at}.items"), "/items") {
        for key in ["key", "path"] {
            if text(item, &format!("/{key}")).is_empty() {
                errors.push(FieldError::required(format!("{at}.{key}"), ""));
            }
        }
        inner_path(&format!("{at}.path"), text(item, "/path"), errors);
        mode(&format!("{at}.mode"), item.get("mode"), errors);
    }
}

fn token_of(at: &str, token: &Value, errors: &mut Vec<FieldError>) {
    let seconds = token.get("expirationSeconds");
    if let Some(seconds) = seconds.filter(|seconds| seconds.as_i64().is_some_and(|seconds| seconds < 600)) {
        let detail = "may not specify a duration less than 10 minutes";
        errors.push(FieldError::invalid(
            format!("{at}.expirationSeconds"),
            seconds,
            detail,
        ));
    }
}

fn mode(at: &str, mode: Option<&Value>, errors: &mut Vec<FieldError>) {
    if let Some(mode) = mode.filter(|mode| mode.as_i64().is_some_and(|mode| !(0..=0o777).contains(&mode))) {
        let detail = "must be a number between 0 and 0777 (octal), both inclusive";
        errors.push(FieldError::invalid(at, mode, detail));
    }
}

fn inner_path(at: &str, path: &str, errors: &mut Vec<FieldError>) {
    if path.starts_with('/') {
        errors.push(FieldError::invalid(at, &json!(path), "must be a relative path"));
    }
    no_way_up(at, path, errors);
}

fn no_way_up(at: &str, path: &str, errors: &mut Vec<FieldError>) {
    if path.split('/').any(|part| part == "..") {
        errors.push(FieldError::invalid(at, &json!(path), "must not contain '..'"));
    }
}
