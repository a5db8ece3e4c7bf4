//! The cluster of a person's kubeconfig, with that person's permissions. For the commands that only read.

use std::fmt::Debug;
use std::time::Duration;

use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::config::KubeConfigOptions;
use kube::{Api, Client, Config};
use serde::de::DeserializeOwned;
use serde_json::Value;
use stanchion_kernel::problem::chain;
use stanchion_postgres::error::plain;
use thiserror::Error;

use crate::kubeconfig;

/// Timeout of one request. A person waits for the answer.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Number of objects per page.
const PAGE: u32 = 500;

/// The cluster, and the namespaces.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Arguments {
    /// Context of the kubeconfig. Default: the current context
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Namespace of the objects. Default: the namespace of the context
    #[arg(short, long, value_name = "NS", conflicts_with = "all_namespaces")]
    pub namespace: Option<String>,
    /// Use all namespaces
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
}

/// Why the cluster cannot be used.
#[derive(Debug, Error)]
pub enum ClusterError {
    /// There is no configuration.
    #[error("no cluster is configured: set KUBECONFIG ({0})")]
    NoConfig(String),
    /// The configuration cannot be used.
    #[error("cannot use the kubeconfig: {0}")]
    Client(#[from] kube::Error),
    /// The cluster does not answer.
    #[error("cannot reach the cluster at {url}: {why}; check KUBECONFIG and its current context")]
    Unreachable {
        /// The address.
        url: String,
        /// The cause.
        why: String,
    },
}

/// A cluster that can be read.
#[derive(Clone)]
pub struct Cluster {
    /// Sends the requests.
    pub client: Client,
    /// The address of the API server.
    pub url: String,
    /// The namespace; `None` for all.
    pub namespace: Option<String>,
}

impl Arguments {
    /// Connects to the cluster of the arguments and KUBECONFIG.
    pub async fn connect(&self) -> Result<Cluster, ClusterError> {
        let mut config = self.config().await?;
        // A watch may be silent for long, so only single requests have a timeout; see `Cluster::ask`.
        config.connect_timeout = Some(TIMEOUT);
        config.read_timeout = None;
        let namespace = (!self.all_namespaces).then(|| {
            self.namespace
                .clone()
                .unwrap_or_else(|| config.default_namespace.clone())
        });
        let url = config.cluster_url.to_string();
        let client = Client::try_from(config)?;
        Ok(Cluster {
            client,
            url,
            namespace,
        })
    }

    async fn config(&self) -> Result<Config, ClusterError> {
        let no_config = |error: &dyn std::error::Error| ClusterError::NoConfig(chain(error));
        let Some(context) = &self.context else {
            return kubeconfig::infer().await.map_err(|error| no_config(&error));
        };
        let file = kubeconfig::read().map_err(|error| no_config(&error))?;
        let options = KubeConfigOptions {
            context: Some(context.clone()),
            ..KubeConfigOptions::default()
        };
        let mut config = Config::from_custom_kubeconfig(file, &options)
            .await
            .map_err(|error| no_config(&error))?;
        kubeconfig::heed_no_proxy(&mut config);
        Ok(config)
    }
}

/// Why something cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Unreadable {
    /// The user lacks the permission.
    Forbidden,
    /// The cluster does not serve the kind.
    NotServed,
    /// Another error.
    Failed(String),
}

impl Unreadable {
    /// Classifies an error of the API server.
    pub fn of(error: &kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => match status.code {
                401 | 403 => Self::Forbidden,
                404 => Self::NotServed,
                code => Self::Failed(format!("{code} {}", status.message)),
            },
            _ => Self::Failed(chain(error)),
        }
    }

    /// The text after "not shown: KIND: ".
    pub fn words(&self) -> String {
        match self {
            Self::Forbidden => "you may not list them".to_owned(),
            Self::NotServed => "the cluster does not serve this kind".to_owned(),
            Self::Failed(why) => printable(why),
        }
    }
}

impl Cluster {
    /// Sends a request with a timeout.
    pub async fn ask<T>(
        &self,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, Unreadable> {
        match tokio::time::timeout(TIMEOUT, request).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(Unreadable::of(&error)),
            Err(_) => Err(Unreadable::Failed(format!(
                "no answer within {} seconds",
                TIMEOUT.as_secs()
            ))),
        }
    }

    /// One object. Its name may come from another object, whose author lacks the permissions of this user: as a part of the
    /// path of a request, it must not name anything else.
    pub async fn get<K>(&self, api: &Api<K>, name: &str) -> Result<K, Unreadable>
    where
        K: Clone + DeserializeOwned + Debug,
    {
        if !is_name(name) {
            return Err(Unreadable::Failed(format!(
                "\"{}\" cannot be the name of an object; correct the object that contains it",
                printable(name)
            )));
        }
        self.ask(api.get(name)).await
    }

    /// The version of the API server. Every user may read it: without an answer there is no cluster.
    pub async fn version(&self) -> Result<String, ClusterError> {
        let asked = self.ask(self.client.apiserver_version()).await;
        asked.map(|version| version.git_version).map_err(|why| {
            let why = match why {
                Unreadable::Failed(why) => why,
                Unreadable::Forbidden => "it does not know these credentials".to_owned(),
                Unreadable::NotServed => "this is not a Kubernetes API server".to_owned(),
            };
            ClusterError::Unreachable {
                url: self.url.clone(),
                why,
            }
        })
    }

    /// The API of this kind in the selected namespace, or in all.
    pub fn api(&self, kind: &ApiResource) -> Api<DynamicObject> {
        match &self.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, kind),
            None => Api::all_with(self.client.clone(), kind),
        }
    }

    /// Lists objects, page by page.
    pub async fn list(&self, api: &Api<DynamicObject>) -> Result<Vec<Value>, Unreadable> {
        let mut objects = Vec::new();
        let mut page = ListParams::default().limit(PAGE);
        loop {
            let mut list = self.ask(api.list(&page)).await?;
            for object in list.items.drain(..) {
                objects.push(
                    serde_json::to_value(object).map_err(|error| Unreadable::Failed(error.to_string()))?,
                );
            }
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => return Ok(objects),
            }
        }
    }
}

/// Whether an object or a namespace can have this name. Every such name is one segment of a path, and one word of a command that
/// is no option.
pub fn is_name(text: &str) -> bool {
    let valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    !text.is_empty() && text.len() <= 253 && text.chars().all(valid) && !text.starts_with(['.', '-'])
}

/// Whether a character is shown as itself: no control character, no invisible one, and none that changes the direction of
/// writing.
pub fn is_visible(character: char) -> bool {
    if character.is_ascii() {
        return !character.is_ascii_control();
    }
    let text = character.to_string();
    plain(&text) == text
}

/// The text in a field of an object; empty without one.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The items of a list in an object; none without one.
pub fn items<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    let list = object.pointer(pointer).and_then(Value::as_array);
    list.into_iter().flatten()
}

/// Text from outside, without control characters for the terminal.
pub fn printable(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words
        .join(" ")
        .chars()
        .map(|character| {
            if is_visible(character) {
                character
            } else {
                '\u{fffd}'
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing listens at this address: a request would have another error.
    #[tokio::test]
    async fn a_name_that_would_change_the_path_of_a_request_is_not_asked_for() {
        let config = Config::new("http://127.0.0.1:1".parse().unwrap());
        let client = Client::try_from(config).unwrap();
        let cluster = Cluster {
            client: client.clone(),
            url: String::new(),
            namespace: None,
        };
        let secrets: Api<k8s_openapi::api::core::v1::Secret> = Api::namespaced(client, "shop");
        for name in [
            "../../kube-system/secrets/x",
            "x?watch=true",
            "x/y",
            "x%2Fy",
            "..",
            "",
            "X y",
            "-rf",
        ] {
            let Err(Unreadable::Failed(why)) = cluster.get(&secrets, name).await else {
                panic!("{name}");
            };
            assert!(why.contains("cannot be the name"), "{name}: {why}");
        }
        let Err(Unreadable::Failed(why)) = cluster.get(&secrets, "db-1.admin").await else {
            panic!("nothing listens there");
        };
        assert!(!why.contains("cannot be the name"), "{why}");
    }

    #[test]
    fn nothing_from_a_cluster_moves_the_cursor() {
        assert_eq!(
            printable("a\x1b[2Jb\n c\u{202e}d\r\u{7}\u{200b}ä"),
            "a\u{fffd}[2Jb c\u{fffd}d \u{fffd}\u{fffd}ä"
        );
    }
}
