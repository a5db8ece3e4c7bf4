//! The real Flux: its source-controller and helm-controller, on a real control plane.

use std::{fs, path::Path};

use super::{Cluster, Kind, assets};
use crate::{
    port,
    process::{Launch, Process},
    scratch::Scratch,
};

/// Flux's controllers. They end with this value, or with the process.
#[derive(Debug)]
pub struct Flux {
    // Before `scratch`: the processes must have ended when their directory is removed.
    _processes: [Process; 2],
    _scratch: Scratch,
}

impl Flux {
    /// Starts both controllers with the administrator's permissions, if their programs are beside those of the control
    /// plane. The CRDs of Flux must exist. The error says in a few words what is missing.
    pub fn start(cluster: &Cluster) -> Result<Self, String> {
        if cluster.kind() == Kind::Sandbox {
            return Err("Flux runs on a real control plane only".to_owned());
        }
        let assets = assets::directory().map_err(|error| error.to_string())?;
        let scratch = Scratch::new("stanchion-flux-").map_err(|error| error.to_string())?;
        let storage = format!("127.0.0.1:{}", port::free());
        let artifacts = scratch.path().join("artifacts");
        fs::create_dir(&artifacts).map_err(|error| error.to_string())?;
        let source = [
            format!("--storage-path={}", artifacts.display()),
            format!("--storage-addr={storage}"),
            format!("--storage-adv-addr={storage}"),
        ];
        let processes = [
            controller(&assets, "source-controller", cluster, &scratch, &source)?,
            controller(&assets, "helm-controller", cluster, &scratch, &[])?,
        ];
        Ok(Self {
            _processes: processes,
            _scratch: scratch,
        })
    }
}

fn controller(
    assets: &Path,
    name: &str,
    cluster: &Cluster,
    scratch: &Scratch,
    arguments: &[String],
) -> Result<Process, String> {
    let program = assets.join(name);
    if !program.is_file() {
        return Err(format!("{name} is not among the programs of the control plane"));
    }
    let listen = ["health", "metrics"].map(|part| format!("--{part}-addr=127.0.0.1:{}", port::free()));
    Launch::new(program, scratch.path().join(format!("{name}.log")))
        .args(arguments)
        .args(listen)
        .env("KUBECONFIG", cluster.kubeconfig_path())
        .env("RUNTIME_NAMESPACE", "default")
        .directory(scratch.path())
        .spawn()
        .map_err(|error| error.to_string())
}
