//! The two servers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use stanchion_testkit::cluster::{Cluster, Kind};
use stanchion_testkit::process::{Launch, Process};
use stanchion_testkit::scratch::Scratch;

/// A running server. Dropping the value ends it.
pub(crate) struct Server {
    kubeconfig: PathBuf,
    _running: Running,
}

#[allow(dead_code, reason = "held for their ends")]
enum Running {
    Sandbox(Process, Scratch),
    Real(Cluster),
}

impl Server {
    /// The sandbox as a user starts it, without any objects.
    pub(crate) async fn sandbox(binary: &Path) -> Self {
        let scratch = Scratch::new("stanchion-bench-").expect("a directory");
        let kubeconfig = scratch.path().join("kubeconfig");
        let process = Launch::new(binary, scratch.path().join("log"))
            .args(["sandbox", "--api-only", "--kubeconfig"])
            .args([kubeconfig.as_os_str()])
            .spawn()
            .expect("the sandbox starts");
        while !kubeconfig.exists() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Self::answering(kubeconfig, Running::Sandbox(process, scratch)).await
    }

    /// A complete real control plane.
    pub(crate) async fn real() -> Self {
        assert_eq!(Kind::chosen(), Kind::Real, "STANCHION_TEST_CLUSTER must be real");
        let cluster = Cluster::start().await;
        Self::answering(cluster.kubeconfig_path(), Running::Real(cluster)).await
    }

    async fn answering(kubeconfig: PathBuf, running: Running) -> Self {
        let server = Self {
            kubeconfig,
            _running: running,
        };
        server
            .client()
            .await
            .apiserver_version()
            .await
            .expect("an answer");
        server
    }

    pub(crate) async fn client(&self) -> Client {
        let kubeconfig = Kubeconfig::read_from(&self.kubeconfig).expect("a kubeconfig");
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .expect("a configuration");
        Client::try_from(config).expect("a client")
    }
}
