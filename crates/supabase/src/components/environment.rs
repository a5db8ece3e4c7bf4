//! The environment of a container, in order, and without a name twice: Kubernetes merges it by name.

use k8s_openapi::api::core::v1::{EnvVar, EnvVarSource, ObjectFieldSelector, SecretKeySelector};

/// Environment variables.
#[derive(Debug, Default)]
pub struct Environment(Vec<EnvVar>);

impl Environment {
    /// A value that may be shown, to the letter.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.expanded(name, value.into().replace("$(", "$$("));
    }

    /// A value in which Kubernetes writes the values of earlier variables where it says `$(NAME)`.
    pub fn expanded(&mut self, name: &str, value: impl Into<String>) {
        self.put(EnvVar {
            name: name.into(),
            value: Some(value.into()),
            value_from: None,
        });
    }

    /// Several values that may be shown.
    pub fn set_all(&mut self, values: &[(&str, &str)]) {
        for (name, value) in values {
            self.set(name, *value);
        }
    }

    /// A value of a Secret.
    pub fn secret(&mut self, name: &str, secret: &str, key: &str) {
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

    /// A value that is known only where the pod runs.
    pub fn field(&mut self, name: &str, path: &str) {
        self.put(EnvVar {
            name: name.into(),
            value: None,
            value_from: Some(EnvVarSource {
                field_ref: Some(ObjectFieldSelector {
                    // As the server would complete it: what is stored is then what was written.
                    api_version: Some("v1".into()),
                    field_path: path.into(),
                }),
                ..EnvVarSource::default()
            }),
        });
    }

    /// A variable of the user's. It takes the place of one of ours, so that what refers to it still follows it.
    pub fn put(&mut self, variable: EnvVar) {
        match self.0.iter_mut().find(|known| known.name == variable.name) {
            Some(known) => *known = variable,
            None => self.0.push(variable),
        }
    }

    /// All of them.
    pub fn variables(&self) -> &[EnvVar] {
        &self.0
    }

    /// The Secrets' names and keys that values are taken from.
    pub fn secrets(&self) -> Vec<(String, String)> {
        secrets(&self.0).collect()
    }

    /// The same of `ConfigMaps`.
    pub fn config_maps(&self) -> Vec<(String, String)> {
        config_maps(&self.0).collect()
    }
}

/// Names and keys of the Secrets that variables take values from.
pub fn secrets(variables: &[EnvVar]) -> impl Iterator<Item = (String, String)> {
    let selectors = variables
        .iter()
        .filter_map(|variable| variable.value_from.as_ref()?.secret_key_ref.as_ref());
    selectors.map(|selector| (selector.name.clone(), selector.key.clone()))
}

/// Names and keys of the `ConfigMaps` that variables take values from.
pub fn config_maps(variables: &[EnvVar]) -> impl Iterator<Item = (String, String)> {
    let selectors = variables
        .iter()
        .filter_map(|variable| variable.value_from.as_ref()?.config_map_key_ref.as_ref());
    selectors.map(|selector| (selector.name.clone(), selector.key.clone()))
}
