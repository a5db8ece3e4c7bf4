//! What is compared of two ends: not what depends on the way there.

use serde_json::{Map, Value, json};

use super::super::{CONFIG_MAP, SECRET, without_marks};
use super::objects::{DEPLOYMENT, PROJECT, SERVICE};
use super::{PROJECTS, suffix};
use crate::scenario::Kind;

/// Takes out of an end state what may depend on the way to it.
pub(super) fn comparable(end: &mut Value) {
    without_marks(end);
    without_hashes(end);
    for name in PROJECTS {
        if end["objects"][PROJECT.kind].get(name).is_none() {
            without_project(&mut end["world"], name);
        }
    }
    let objects = &mut end["objects"];
    for project in each(objects, PROJECT) {
        let status = &mut project["status"];
        status["keys"] = Value::Null;
        let conditions = status["conditions"].as_array_mut().into_iter().flatten();
        for keys in conditions
            .filter(|condition| condition["type"] == "SecretsReady" && condition["status"] == "True")
        {
            keys["reason"] = Value::Null;
            keys["message"] = Value::Null;
        }
        for dependency in ["postgresql", "s3"] {
            status["dependencies"][dependency]["latencyMs"] = Value::Null;
        }
    }
    for deployment in each(objects, DEPLOYMENT) {
        deployment["status"] = Value::Null;
        deployment["metadata"]["annotations"] = Value::Null;
    }
    for service in each(objects, SERVICE) {
        service["spec"]["clusterIP"] = Value::Null;
        service["spec"]["clusterIPs"] = Value::Null;
    }
    for (name, secret) in objects[SECRET.kind].as_object_mut().into_iter().flatten() {
        if name.ends_with("-jwt") {
            let keys = secret["data"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(key, _)| key);
            let kept = keys.filter(|key| !is_of_rotation(key));
            secret["data"] = json!(kept.collect::<Vec<_>>());
            secret["metadata"]["annotations"] = Value::Null;
        }
    }
    without_rotation(objects);
}

/// What a deleted project has left shows what had been made for it: `left` says whether that is too much.
fn without_project(world: &mut Value, name: &str) {
    let suffix = suffix(name);
    for part in ["roles", "members", "databases"] {
        if let Some(lines) = world[part].as_array_mut() {
            lines.retain(|line| line.as_str().is_some_and(|line| !line.contains(&suffix)));
        }
    }
    for part in ["inside", "logins"] {
        if let Some(parts) = world[part].as_object_mut() {
            parts.retain(|key, _| key != name && !key.ends_with(&suffix));
        }
    }
}

fn each(objects: &mut Value, kind: Kind) -> impl Iterator<Item = &mut Value> {
    let objects = objects[kind.kind].as_object_mut().into_iter();
    objects.flat_map(Map::values_mut)
}

/// Whether a key or a variable is there because keys are replaced. A project whose keys are made after the request to replace
/// them has nothing to replace, and two requests are one for an operator that sees only the second: that shows the way.
fn is_of_rotation(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.split(['-', '_'])
        .any(|word| ["next", "published", "previous"].contains(&word))
}

/// The gateway also accepts keys that were replaced: of its routes, the names and targets are compared.
fn without_rotation(objects: &mut Value) {
    for deployment in each(objects, DEPLOYMENT) {
        let containers = deployment["spec"]["template"]["spec"]["containers"].as_array_mut();
        for variables in containers
            .into_iter()
            .flatten()
            .filter_map(|container| container["env"].as_array_mut())
        {
            variables.retain(|variable| !variable["name"].as_str().is_some_and(is_of_rotation));
        }
    }
    for map in each(objects, CONFIG_MAP) {
        if let Some(Value::String(gateway)) = map["data"].get_mut("kong.yml") {
            let is_route = |line: &&str| line.contains("name: ") || line.contains("url: ");
            let routes: Vec<&str> = gateway.lines().filter(is_route).collect();
            *gateway = routes.join("\n");
        }
    }
}

/// Hashes follow from keys, which are others in each run.
fn without_hashes(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if name.ends_with("-hash") || name.ends_with("/checksum") {
                    *field = Value::Null;
                }
                without_hashes(field);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(without_hashes),
        _ => {}
    }
}
