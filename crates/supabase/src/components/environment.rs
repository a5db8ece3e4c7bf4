//! The environment of a container, in order, without duplicate names: Kubernetes merges it by name.

use k8s_openapi::api::core::v1::{EnvVar, EnvVarSource, ObjectFieldSelector, SecretKeySelector};

/// Environment variables.
#[derive(Debug, Default)]
pub(crate) struct Environment(Vec<EnvVar>);

impl Environment {
    /// A literal value that is not secret.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<String>) {
        self.expanded(name, value.into().replace("$(", "$$("));
    }

    /// A value in which Kubernetes expands `$(NAME)` to the values of earlier variables.
    pub(crate) fn expanded(&mut self, name: &str, value: impl Into<String>) {
        self.put(EnvVar {
            name: name.into(),
            value: Some(value.into()),
            value_from: None,
        });
    }

    /// Several literal values that are not secret.
    pub(crate) fn set_all(&mut self, values: &[(&str, &str)]) {
        for (name, value) in values {
            self.set(name, *value);
        }
    }

    /// A value from a Secret.
    pub(crate) fn secret(&mut self, name: &str, secret: &str, key: &str) {
        self.put(EnvVar {
            name: name.into(),
            value: None,
            value_from: Some(EnvVarSource {
                secret_key_ref: Some(SecretKeySelector {
                    name: secret.into(),
                    key: key.into(),
                    optional: None,
                }),
                ..EnvVarSource::default()
            }),
        });
    }

    /// A value from a field of the pod.
    pub(crate) fn field(&mut self, name: &str, path: &str) {
        self.put(EnvVar {
            name: name.into(),
            value: None,
            value_from: Some(EnvVarSource {
                field_ref: Some(ObjectFieldSelector {
                    // With the server's default, so that the stored object equals the written one.
                    api_version: Some("v1".into()),
                    field_path: path.into(),
                }),
                ..EnvVarSource::default()
            }),
        });
    }

    /// A variable of the user. It replaces one of the same name in place, so that references to it still work.
    pub(crate) fn put(&mut self, variable: EnvVar) {
        match self.0.iter_mut().find(|known| known.name == variable.name) {
            Some(known) => *known = variable,
            None => self.0.push(variable),
        }
    }

    /// All of them.
    pub(crate) fn variables(&self) -> &[EnvVar] {
        &self.0
    }

    /// The names and keys of Secrets that values come from.
    pub(crate) fn secrets(&self) -> Vec<(String, String)> {
        secrets(&self.0).collect()
    }

    /// The names and keys of `ConfigMaps` that values come from.
    pub(crate) fn config_maps(&self) -> Vec<(String, String)> {
        config_maps(&self.0).collect()
    }
}

/// Names and keys of the Secrets that variables refer to.
pub(crate) fn secrets(variables: &[EnvVar]) -> impl Iterator<Item = (String, String)> {
    let selectors = variables
        .iter()
        .filter_map(|variable| variable.value_from.as_ref()?.secret_key_ref.as_ref());
    selectors.map(|selector| (selector.name.clone(), selector.key.clone()))
}

/// Names and keys of the `ConfigMaps` that variables refer to.
pub(crate) fn config_maps(variables: &[EnvVar]) -> impl Iterator<Item = (String, String)> {
    let selectors = variables
        .iter()
        .filter_map(|variable| variable.value_from.as_ref()?.config_map_key_ref.as_ref());
    selectors.map(|selector| (selector.name.clone(), selector.key.clone()))
}
