//! How the program finds its cluster: KUBECONFIG, or the pod that it runs in.

use std::env;

use http::Uri;
use kube::Config;
use kube::config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use stanchion_postgres::http::is_proxied;

/// The cluster of KUBECONFIG, or the one that this process runs in.
pub async fn infer() -> Result<Config, InferConfigError> {
    let options = KubeConfigOptions::default();
    let found = match existing() {
        Some(file) => Config::from_custom_kubeconfig(file, &options).await.ok(),
        None => None,
    };
    let mut config = match found {
        Some(config) => config,
        None => Config::infer().await?,
    };
    heed_no_proxy(&mut config);
    Ok(config)
}

/// The files of KUBECONFIG, as one.
pub fn read() -> Result<Kubeconfig, KubeconfigError> {
    existing().map_or_else(Kubeconfig::read, Ok)
}

/// The files of KUBECONFIG that exist, if some do not: kubectl passes over the others, and kube fails.
fn existing() -> Option<Kubeconfig> {
    let paths: Vec<_> = env::split_paths(&env::var_os("KUBECONFIG")?).collect();
    let (there, missing): (Vec<_>, Vec<_>) = paths.iter().partition(|path| path.exists());
    if missing.is_empty() {
        return None;
    }
    let files = there.iter().map(|path| Kubeconfig::read_from(path).ok());
    files
        .collect::<Option<Vec<_>>>()?
        .into_iter()
        .try_fold(None, |all: Option<Kubeconfig>, file| {
            let merged = match all {
                Some(all) => all.merge(file).ok()?,
                None => file,
            };
            Some(Some(merged))
        })?
}

/// Reaches the API server directly if `NO_PROXY` lists it, or if it is on this machine. kube compares `NO_PROXY` with the
/// proxy and not with the server. A `proxy-url` in the kubeconfig is for exactly this server and always used, as kubectl
/// does it.
pub(crate) fn heed_no_proxy(config: &mut Config) {
    let of_environment = ["HTTPS_PROXY", "https_proxy"]
        .iter()
        .find_map(|name| env::var(name).ok().filter(|value| !value.is_empty()))
        .and_then(|value| value.parse::<Uri>().ok());
    if config.proxy_url.is_some() && config.proxy_url == of_environment && !is_proxied(&config.cluster_url) {
        config.proxy_url = None;
    }
}
