//! The measured operator: ours, or the original.
//!
//! Nothing of the original is in this repository. Its package is `pgroles-operator`; install it outside of the project:
//!
//!     cargo install --locked pgroles-operator@0.15.0 --root ~/.cache/stanchion/rival/0.15.0
//!     ~/.cache/stanchion/rival/0.15.0/bin/crdgen > crds.yaml
//!     cargo run -p stanchion-bench-policy -- --binary target/release/stanchion \
//!         --rival ~/.cache/stanchion/rival/0.15.0/bin/pgroles-operator --rival-crds crds.yaml
//!
//! Both get the same policies, and each its own cluster and server, one after the other: both serve the same kinds.

use std::fs;
use std::path::PathBuf;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_saphyr::from_multiple;
use stanchion_bench_env::{BenchEnv, OURS, RIVAL};
use stanchion_testkit::cluster::User;
use stanchion_testkit::process::Process;

const ANYWHERE: &str = "127.0.0.1:0";

/// The measured operator.
pub(crate) enum Operator {
    Ours(PathBuf),
    Rival {
        binary: PathBuf,
        /// A file with all its CRDs.
        crds: PathBuf,
    },
}

impl Operator {
    /// The administrator in the Secrets, which identifies its statements.
    pub(crate) fn login(&self) -> &'static str {
        match self {
            Self::Ours(_) => OURS,
            Self::Rival { .. } => RIVAL,
        }
    }

    /// A cluster that serves its kinds.
    pub(crate) async fn env(&self) -> BenchEnv {
        let Self::Rival { crds, .. } = self else {
            return BenchEnv::new("ours").await;
        };
        let env = BenchEnv::bare("rival").await;
        let text = fs::read_to_string(crds).expect("a file with definitions");
        let crds: Vec<CustomResourceDefinition> = from_multiple(&text).expect("definitions");
        env.cluster().install_crds(crds).await;
        env
    }

    /// Starts the operator as this user.
    pub(crate) fn start(&self, env: &BenchEnv, user: &User) -> Process {
        let launch = match self {
            Self::Ours(binary) => env
                .launch(binary, "ours")
                .args(["run", "--controllers", "policy", "--no-webhooks"])
                .args(["--health-addr", ANYWHERE, "--metrics-addr", ANYWHERE]),
            Self::Rival { binary, .. } => env
                .launch(binary, "rival")
                .env("OPERATOR_HTTP_ADDR", ANYWHERE)
                .env("OTEL_METRICS_EXPORTER", "none"),
        };
        launch
            .env("KUBECONFIG", user.kubeconfig_path())
            .env("POD_NAMESPACE", env.namespace())
            .spawn()
            .expect("the operator starts")
    }
}
