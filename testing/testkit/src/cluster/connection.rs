//! Kubeconfig files, and clients for them.

use std::path::{Path, PathBuf};

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;

use crate::{certificates::write, error::Error};

/// Writes a kubeconfig with one user and its token.
pub(super) fn write_kubeconfig(path: &Path, server: &str, ca: &Path, token: &str) -> Result<PathBuf, Error> {
    // JSON is valid YAML.
    let content = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "clusters": [{"name": "test", "cluster": {"server": server, "certificate-authority": ca}}],
        "users": [{"name": "test", "user": {"token": token}}],
    });
    write(path.to_owned(), &format!("{content:#}\n"), 0o600)
}

/// The configuration in a kubeconfig file.
pub(super) async fn config(kubeconfig: &Path) -> Config {
    let read =
        Kubeconfig::read_from(kubeconfig).unwrap_or_else(|error| panic!("{}: {error}", kubeconfig.display()));
    Config::from_custom_kubeconfig(read, &KubeConfigOptions::default())
        .await
        .unwrap_or_else(|error| panic!("{}: {error}", kubeconfig.display()))
}

/// A client from a kubeconfig file.
pub(super) async fn client(kubeconfig: &Path) -> Client {
    Client::try_from(config(kubeconfig).await)
        .unwrap_or_else(|error| panic!("{}: {error}", kubeconfig.display()))
}
