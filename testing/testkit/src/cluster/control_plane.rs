//! A real control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, and kwok as the kubelet of one
//! simulated node.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use k8s_openapi::api::core::v1::Node;
use kube::{
    Api,
    api::{Patch, PatchParams},
};

use super::{assets, connection, parts::Parts};
use crate::{
    error::Error,
    process::{Launch, Process},
    scratch::Scratch,
};

const READY_DEADLINE: Duration = Duration::from_mins(2);

/// The node whose kubelet kwok simulates.
const NODE: &str = include_str!("node.yaml");

/// A running control plane. Dropping the value ends it.
#[derive(Debug)]
pub(super) struct ControlPlane {
    // Before `scratch`: the processes must have ended when their directory is removed.
    processes: Vec<Process>,
    scratch: Scratch,
}

impl ControlPlane {
    /// Starts everything and waits until the API answers.
    pub(super) async fn start() -> Result<Self, Error> {
        let assets = assets::directory()?;
        let mut attempts = 0;
        loop {
            attempts += 1;
            match Self::try_start(&assets).await {
                // Another process may have taken a port between choosing it and binding it.
                Err(Error::Start { log, .. }) if attempts < 4 && log.contains("address already in use") => {}
                done => return done,
            }
        }
    }

    /// The directory with the kubeconfig, the audit log and the logs of the programs.
    pub(super) fn directory(&self) -> &Path {
        self.scratch.path()
    }

    async fn try_start(assets: &Path) -> Result<Self, Error> {
        let scratch = Scratch::new("stanchion-cluster-")?;
        let parts = Parts::lay_out(scratch.path())?;
        let mut plane = Self {
            processes: Vec::new(),
            scratch,
        };
        plane.run(assets, "etcd", &parts.etcd_arguments())?;
        plane.run(assets, "kube-apiserver", &parts.api_server_arguments())?;
        plane.wait_until_ready(&parts.admin).await?;
        // The default of 20 requests per second would make the controllers the bottleneck of every test.
        let common = [format!("--kubeconfig={}", parts.components.display())];
        let rate = [
            "--kube-api-qps=2000",
            "--kube-api-burst=4000",
            "--leader-elect=false",
        ]
        .map(str::to_owned);
        plane.run(
            assets,
            "kube-controller-manager",
            &[common.as_slice(), &rate, &parts.controller_manager_arguments()].concat(),
        )?;
        plane.run(
            assets,
            "kube-scheduler",
            &[common.as_slice(), &rate, &["--secure-port=0".to_owned()]].concat(),
        )?;
        plane.run(
            assets,
            "kwok",
            &[common.as_slice(), &parts.kubelet_arguments()].concat(),
        )?;
        plane.add_node(&parts.admin).await?;
        plane.check()?;
        Ok(plane)
    }

    fn run(&mut self, assets: &Path, program: &str, arguments: &[String]) -> Result<(), Error> {
        let directory = self.scratch.path();
        let process = Launch::new(assets.join(program), directory.join(format!("{program}.log")))
            .args(arguments)
            .directory(directory)
            .spawn()?;
        self.processes.push(process);
        Ok(())
    }

    fn check(&mut self) -> Result<(), Error> {
        self.processes.iter_mut().try_for_each(Process::check_alive)
    }

    async fn wait_until_ready(&mut self, kubeconfig: &Path) -> Result<(), Error> {
        let client = connection::client(kubeconfig).await;
        let started = Instant::now();
        loop {
            self.check()?;
            let request = http::Request::get("/readyz")
                .body(Vec::new())
                .expect("a plain request");
            match client.request_text(request).await {
                Ok(_) => return Ok(()),
                Err(error) if started.elapsed() > READY_DEADLINE => {
                    let log = crate::error::tail(&self.scratch.path().join("kube-apiserver.log"));
                    return Err(Error::Start {
                        what: "kube-apiserver".to_owned(),
                        why: error.to_string(),
                        log,
                    });
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    async fn add_node(&self, kubeconfig: &Path) -> Result<(), Error> {
        let nodes: Api<Node> = Api::all(connection::client(kubeconfig).await);
        let node: Node = serde_saphyr::from_str(NODE).expect("node.yaml is a Node");
        let name = node.metadata.name.clone().unwrap_or_default();
        let parameters = PatchParams::apply("testkit").force();
        let failed = |error: kube::Error| Error::Start {
            what: "the simulated node".to_owned(),
            why: error.to_string(),
            log: String::new(),
        };
        nodes
            .patch(&name, &parameters, &Patch::Apply(&node))
            .await
            .map_err(failed)?;
        nodes
            .patch_status(&name, &parameters, &Patch::Apply(&node))
            .await
            .map_err(failed)?;
        Ok(())
    }
}
