//! `stanchion manifest`: all manifests to install the operator, in the order in which they can be applied.

mod workload;

use clap::builder::BoolishValueParser;
use serde_json::Value;
use thiserror::Error;

use crate::output::{self, OutputError};
use crate::{rbac, yaml};
use workload::Workload;

/// One leader, and one standby.
const REPLICAS: u16 = 2;

/// Arguments of `stanchion manifest`.
#[derive(Debug, clap::Args)]
#[group(id = "manifest")] // The arguments of `stanchion rbac` have the same struct name.
pub(crate) struct Arguments {
    /// Image of this program, as your cluster pulls it
    #[arg(long, env = "STANCHION_IMAGE", value_name = "IMAGE")]
    image: String,
    /// Number of pods; one is the leader, the others are standby
    #[arg(long, env = "STANCHION_REPLICAS", value_name = "N", default_value_t = REPLICAS,
          value_parser = clap::value_parser!(u16).range(1..))]
    replicas: u16,
    /// Add a `ServiceMonitor` for the Prometheus operator
    #[arg(long, env = "STANCHION_SERVICE_MONITOR", value_parser = BoolishValueParser::new())]
    service_monitor: bool,
    #[command(flatten)]
    permissions: rbac::Arguments,
}

/// Why the manifest could not be printed.
#[derive(Debug, Error)]
pub(crate) enum ManifestError {
    /// An object cannot be serialized.
    #[error("cannot serialize an object: {0}")]
    Json(#[from] serde_json::Error),
    /// An object cannot be written as YAML.
    #[error("cannot write an object as YAML: {0}")]
    Yaml(#[from] serde_saphyr::ser::Error),
    /// The manifest cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Prints the manifest.
pub(crate) fn run(arguments: &Arguments) -> Result<(), ManifestError> {
    Ok(output::print(&yaml::stream(&objects(arguments)?)?)?)
}

fn objects(arguments: &Arguments) -> Result<Vec<Value>, ManifestError> {
    let workload = Workload::new(&arguments.image, arguments.replicas, &arguments.permissions);
    let mut objects = vec![workload.namespace()];
    for crd in stanchion_api::crds() {
        objects.push(serde_json::to_value(crd)?);
    }
    objects.extend(rbac::objects(&arguments.permissions)?);
    objects.extend(workload.pods());
    objects.extend(arguments.service_monitor.then(|| workload.service_monitor()));
    Ok(objects)
}

/// The operator itself, without CRDs and RBAC: they have separate files in the repository.
pub(crate) fn everything() -> Result<String, ManifestError> {
    let image = concat!("stanchion:", env!("CARGO_PKG_VERSION"));
    let permissions = rbac::Arguments::cluster_wide(crate::controllers::Choice::everything());
    let workload = Workload::new(image, REPLICAS, &permissions);
    let mut objects = vec![workload.namespace()];
    objects.extend(workload.pods());
    Ok(yaml::stream(&objects)?)
}
