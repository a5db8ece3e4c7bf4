//! A component's pod as a kubelet would start it: its container, and its resolved environment.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Container, EnvVar};

use super::TestEnv;

/// The container of a Deployment's pods; each component has one.
pub(crate) fn container(deployment: &Deployment) -> &Container {
    let pod = deployment.spec.as_ref().unwrap().template.spec.as_ref().unwrap();
    &pod.containers[0]
}

/// The container and the environment of a pod.
pub(crate) struct Pod {
    pub(crate) container: Container,
    pub(crate) environment: BTreeMap<String, String>,
}

impl Pod {
    /// The path of its readiness probe.
    pub(crate) fn readiness_path(&self) -> String {
        let probe = self.container.readiness_probe.as_ref().unwrap();
        probe.http_get.as_ref().unwrap().path.clone().unwrap()
    }

    /// A variable that must exist.
    pub(crate) fn value(&self, name: &str) -> &str {
        self.environment
            .get(name)
            .unwrap_or_else(|| panic!("{name} is not among {:?}", self.environment.keys()))
    }
}

impl TestEnv {
    /// The generation of each Deployment.
    pub(crate) async fn generations(&self) -> BTreeMap<String, i64> {
        let all = self.all::<Deployment>().await.into_iter();
        all.map(|(name, deployment)| (name, deployment.metadata.generation.unwrap()))
            .collect()
    }

    /// The Deployments that have changed since then.
    pub(crate) async fn rolled_since(&self, before: &BTreeMap<String, i64>) -> Vec<String> {
        let now = self.generations().await.into_iter();
        now.filter(|(name, generation)| before.get(name) != Some(generation))
            .map(|(name, _)| name)
            .collect()
    }

    /// The pod of this Deployment.
    pub(crate) async fn pod(&self, deployment: &str) -> Pod {
        let container = container(&self.get(deployment).await).clone();
        let mut environment = BTreeMap::new();
        for variable in container.env.iter().flatten() {
            let value = self.value(variable, &environment).await;
            environment.insert(variable.name.clone(), value);
        }
        Pod {
            container,
            environment,
        }
    }

    async fn value(&self, variable: &EnvVar, before: &BTreeMap<String, String>) -> String {
        let Some(source) = &variable.value_from else {
            return expand(variable.value.as_deref().unwrap_or_default(), before);
        };
        if let Some(selected) = &source.secret_key_ref {
            let mut values = self.values(&selected.name).await;
            let missing = || panic!("{} has no key {}", selected.name, selected.key);
            return values.remove(&selected.key).unwrap_or_else(missing);
        }
        if let Some(selected) = &source.config_map_key_ref {
            let map = self.get::<ConfigMap>(&selected.name).await;
            return map.data.unwrap()[&selected.key].clone();
        }
        // A pod on this machine uses loopback.
        match source
            .field_ref
            .as_ref()
            .map(|selected| selected.field_path.as_str())
        {
            Some("status.podIP") => "127.0.0.1".to_owned(),
            Some("metadata.namespace") => self.namespace.clone(),
            Some("metadata.name") => variable.name.to_ascii_lowercase(),
            other => panic!("{}: nothing is known of {other:?}", variable.name),
        }
    }
}

/// `$(NAME)` is the value of an earlier variable, `$$` a dollar sign; everything else is literal.
fn expand(text: &str, before: &BTreeMap<String, String>) -> String {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((plain, after)) = rest.split_once('$') {
        expanded.push_str(plain);
        let named = after.strip_prefix('(').and_then(|after| after.split_once(')'));
        rest = if let Some(after) = after.strip_prefix('$') {
            expanded.push('$');
            after
        } else if let Some((value, after)) = named.and_then(|(name, after)| Some((before.get(name)?, after)))
        {
            expanded.push_str(value);
            after
        } else {
            expanded.push('$');
            after
        };
    }
    expanded + rest
}

#[test]
fn values_are_filled_in_as_a_kubelet_does() {
    let before = BTreeMap::from([("A".to_owned(), "x$(A)".to_owned())]);
    for (text, expected) in [
        ("$(A)/$(B)/$A", "x$(A)/$(B)/$A"),
        ("$$(A) $$$(A)", "$(A) $x$(A)"),
        ("a$", "a$"),
    ] {
        assert_eq!(expand(text, &before), expected);
    }
}
