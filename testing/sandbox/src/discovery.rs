//! Discovery, in its legacy and in its aggregated format.

use serde_json::{Value, json};

use crate::answer::{self, Answer};
use crate::data;
use crate::error::ApiError;
use crate::resource::Resource;
use crate::server::Server;
use crate::store::text;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

pub(crate) fn wants_aggregated(accept: &str) -> bool {
    accept.split(',').any(|media| {
        media.contains("as=APIGroupDiscoveryList") && media.split(';').any(|part| part.trim() == "v=v2")
    })
}

/// The groups of CRDs, in the aggregated format. Versions are ordered by priority.
fn custom_groups(server: &Server) -> Vec<Value> {
    type Versions = Vec<(String, Vec<Value>)>;
    let mut groups: Vec<(String, Versions)> = Vec::new();
    for resource in server.registry.custom() {
        let index = groups
            .iter()
            .position(|(group, _)| *group == resource.group)
            .unwrap_or_else(|| {
                groups.push((resource.group.clone(), Vec::new()));
                groups.len() - 1
            });
        let Some((_, versions)) = groups.get_mut(index) else {
            continue;
        };
        match versions
            .iter_mut()
            .find(|(version, _)| *version == resource.version)
        {
            Some((_, resources)) => resources.push(resource.discovery.clone()),
            None => versions.push((resource.version.clone(), vec![resource.discovery.clone()])),
        }
    }
    groups
        .into_iter()
        .map(|(group, mut versions)| {
            versions.sort_by_key(|(version, _)| std::cmp::Reverse(priority(version)));
            let versions: Vec<Value> = versions
                .into_iter()
                .map(|(version, resources)| json!({"version": version, "resources": resources, "freshness": "Current"}))
                .collect();
            json!({"metadata": {"name": group}, "versions": versions})
        })
        .collect()
}

/// `v2` before `v1` before `v1beta2` before `v1beta1` before `v1alpha1`.
pub(crate) fn priority(version: &str) -> (u8, u32, u32) {
    let numbers = |text: &str| text.parse::<u32>().ok();
    let Some(rest) = version.strip_prefix('v') else {
        return (0, 0, 0);
    };
    for (word, rank) in [("alpha", 1), ("beta", 2)] {
        if let Some((major, minor)) = rest.split_once(word) {
            return (
                rank,
                numbers(major).unwrap_or_default(),
                numbers(minor).unwrap_or_default(),
            );
        }
    }
    numbers(rest).map_or((0, 0, 0), |major| (3, major, 0))
}

fn all_groups(server: &Server) -> Vec<Value> {
    data::groups().cloned().chain(custom_groups(server)).collect()
}

pub(crate) fn aggregated(server: &Server, core: bool) -> Answer {
    let items: Vec<Value> = all_groups(server)
        .into_iter()
        .filter(|group| text(group, "/metadata/name").is_empty() == core)
        .collect();
    let list = json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items});
    answer::bytes(200, AGGREGATED, list.to_string())
}

pub(crate) fn core_versions() -> Answer {
    answer::json(
        200,
        &json!({
            "kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}],
        }),
    )
}

fn api_group(group: &Value) -> Value {
    let name = text(group, "/metadata/name");
    let versions: Vec<Value> = group
        .get("versions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|version| text(version, "/version"))
        .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
        .collect();
    json!({"name": name, "versions": versions, "preferredVersion": versions.first()})
}

pub(crate) fn groups(server: &Server) -> Answer {
    let groups: Vec<Value> = all_groups(server)
        .iter()
        .filter(|group| !text(group, "/metadata/name").is_empty())
        .map(api_group)
        .collect();
    answer::json(
        200,
        &json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}),
    )
}

pub(crate) fn group(server: &Server, name: &str) -> Result<Answer, ApiError> {
    let groups = all_groups(server);
    let group = groups
        .iter()
        .find(|group| text(group, "/metadata/name") == name)
        .ok_or_else(ApiError::page_not_found)?;
    let mut answer = json!({"kind": "APIGroup", "apiVersion": "v1"});
    for (key, value) in api_group(group).as_object().into_iter().flatten() {
        answer[key] = value.clone();
    }
    Ok(answer::json(200, &answer))
}

pub(crate) fn resources(server: &Server, group: &str, version: &str) -> Result<Answer, ApiError> {
    let all = server.registry.all();
    let mut list = Vec::new();
    for resource in all
        .iter()
        .filter(|resource| resource.group == group && resource.version == version)
    {
        list.extend(old_form(resource));
    }
    if list.is_empty() {
        return Err(ApiError::page_not_found());
    }
    if data::groups().any(|known| text(known, "/metadata/name") == group) {
        list.sort_by_key(|entry| text(entry, "/name").to_owned());
    }
    let group_version = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    Ok(answer::json(
        200,
        &json!({
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": list,
        }),
    ))
}

fn old_form(resource: &Resource) -> Vec<Value> {
    let entry = &resource.discovery;
    let mut main = json!({
        "name": resource.plural, "singularName": text(entry, "/singularResource"),
        "namespaced": resource.namespaced, "kind": resource.kind, "verbs": entry.get("verbs"),
    });
    for key in ["shortNames", "categories"] {
        if let Some(list) = entry.get(key) {
            main[key] = list.clone();
        }
    }
    let subresources = entry
        .get("subresources")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let subresources = subresources.map(|sub| {
        let mut one = json!({
            "name": format!("{}/{}", resource.plural, text(sub, "/subresource")), "singularName": "",
            "namespaced": resource.namespaced, "kind": text(sub, "/responseKind/kind"), "verbs": sub.get("verbs"),
        });
        let (group, version) = (text(sub, "/responseKind/group"), text(sub, "/responseKind/version"));
        if !version.is_empty() && (group != resource.group || version != resource.version) {
            one["group"] = json!(group);
            one["version"] = json!(version);
        }
        one
    });
    std::iter::once(main).chain(subresources).collect()
}

#[cfg(test)]
mod tests {
    use super::priority;

    #[test]
    fn stable_versions_come_first() {
        let mut versions = ["v1alpha1", "v1", "v1beta1", "v2", "v1beta2", "foo"];
        versions.sort_by_key(|version| std::cmp::Reverse(priority(version)));
        assert_eq!(versions, ["v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "foo"]);
    }
}
