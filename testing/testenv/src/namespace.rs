//! A namespace of a cluster, for one test.

use std::ops::Deref;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::version::Info;
use kube::Client;
use stanchion_testkit::cluster::Cluster;
use stanchion_testkit::operator_log::OperatorLog;
use stanchion_testkit::wait::{self, Wait};

/// The timeout of every wait: test machines are slow and busy.
pub const WAIT_TIMEOUT: Duration = Duration::from_mins(2);

/// The cluster that all tests share, or one of this test.
pub enum TestCluster {
    /// See [`Cluster::shared`].
    Shared(&'static Cluster),
    /// A cluster that ends with the test.
    Own(Box<Cluster>),
}

impl Deref for TestCluster {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        match self {
            Self::Shared(cluster) => cluster,
            Self::Own(cluster) => cluster,
        }
    }
}

/// A namespace, a client for it, and the log of the operators that a test starts in it.
///
/// The environment of each kind contains one and dereferences to it.
pub struct TestNamespace {
    /// The cluster.
    pub cluster: TestCluster,
    /// The name of the namespace.
    pub namespace: String,
    /// A client with all permissions.
    pub client: Client,
    /// The version of the API server.
    pub server_version: Info,
    /// The operators' log, for failed tests.
    pub log: OperatorLog,
}

impl TestNamespace {
    /// A new namespace of the shared cluster. Its name starts with `prefix`.
    pub async fn new(prefix: &str) -> Self {
        Self::of(TestCluster::Shared(Cluster::shared().await), prefix).await
    }

    /// A new namespace of a cluster that only this test uses.
    pub async fn in_own_cluster(prefix: &str) -> Self {
        Self::of(TestCluster::Own(Box::new(Cluster::start().await)), prefix).await
    }

    /// A new namespace of a cluster that some tests share.
    pub async fn in_cluster(cluster: &'static Cluster, prefix: &str) -> Self {
        Self::of(TestCluster::Shared(cluster), prefix).await
    }

    async fn of(cluster: TestCluster, prefix: &str) -> Self {
        let client = cluster.client().await;
        Self {
            namespace: cluster.namespace(prefix).await,
            server_version: client.apiserver_version().await.unwrap(),
            client,
            log: OperatorLog::in_memory(),
            cluster,
        }
    }

    /// A wait that shows the operators' log when it fails.
    pub fn wait(&self) -> Wait<'_> {
        wait::within(WAIT_TIMEOUT).showing(&self.log)
    }
}
