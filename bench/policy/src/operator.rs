//! Who is measured: our operator, or the original's.
//!
//! Nothing of the original is in this repository. Its package is `pgroles-operator`; whoever runs this installs it, outside
//! of the project:
//!
//!     cargo install --locked pgroles-operator@0.15.0 --root ~/.cache/stanchion/rival/0.15.0
//!     ~/.cache/stanchion/rival/0.15.0/bin/crdgen > crds.json
//!     cargo run -p stanchion-bench-policy -- --binary target/release/stanchion \
//!         --rival ~/.cache/stanchion/rival/0.15.0/bin/pgroles-operator --rival-crds crds.json
//!
//! Both get the same policies, and each a cluster and a server of its own, one after the other: both serve the same kinds.

use std::path::PathBuf;

use stanchion_bench_bed::{Bed, OURS, RIVAL};
use stanchion_testkit::cluster::User;
use stanchion_testkit::process::Process;

const ANYWHERE: &str = "127.0.0.1:0";

/// Who is measured.
pub(crate) enum Operator {
    Ours(PathBuf),
    Rival {
        binary: PathBuf,
        /// A file, or a folder of files, as `kubectl apply` takes it.
        crds: PathBuf,
    },
}

impl Operator {
    /// The administrator in the Secrets, by whom its statements are known.
    pub(crate) fn login(&self) -> &'static str {
        match self {
            Self::Ours(_) => OURS,
            Self::Rival { .. } => RIVAL,
        }
    }

    /// A cluster that serves its kinds.
    pub(crate) async fn bed(&self) -> Bed {
        let Self::Rival { crds, .. } = self else {
            return Bed::new("ours").await;
        };
        let bed = Bed::bare("rival").await;
        let crds = crds.to_str().expect("a path");
        let established = ["wait", "--for=condition=Established", "crd", "--all"];
        for arguments in [&["apply", "--server-side", "-f", crds][..], &established] {
            bed.cluster().kubectl(arguments).await.expect("its kinds");
        }
        bed
    }

    /// Starts it, as this user.
    pub(crate) fn start(&self, bed: &Bed, user: &User) -> Process {
        let launch = match self {
            Self::Ours(binary) => bed
                .launch(binary, "ours")
                .args(["run", "--controllers", "policy", "--no-webhooks"])
                .args(["--health-addr", ANYWHERE, "--metrics-addr", ANYWHERE]),
            Self::Rival { binary, .. } => bed
                .launch(binary, "rival")
                .env("OPERATOR_HTTP_ADDR", ANYWHERE)
                .env("OTEL_METRICS_EXPORTER", "none"),
        };
        launch
            .env("KUBECONFIG", user.kubeconfig_path())
            .env("POD_NAMESPACE", bed.namespace())
            .spawn()
            .expect("the operator starts")
    }
}
