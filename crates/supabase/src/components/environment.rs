//! The environment of a container, in order, and without a name twice: Kubernetes merges it by name.

use k8s_openapi::api::core::v1::{EnvVar, EnvVarSource, SecretKeySelector};

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
        self.0
            .iter()
            .filter_map(|variable| variable.value_from.as_ref()?.secret_key_ref.as_ref())
            .map(|selector| (selector.name.clone(), selector.key.clone()))
            .collect()
    }
}
