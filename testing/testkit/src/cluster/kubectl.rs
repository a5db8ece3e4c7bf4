//! kubectl on a cluster, for tests about kubectl. All others use a client: not every machine has kubectl.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::{io::AsyncWriteExt as _, process::Command};

use super::Cluster;
use crate::{
    error::{Attempt as _, Error, checked},
    report,
};

/// kubectl as the administrator of a cluster.
#[derive(Debug)]
pub struct Kubectl {
    program: &'static Path,
    kubeconfig: PathBuf,
}

impl Cluster {
    /// kubectl, or `None` if this machine has no suitable one. The report then lists the test as skipped, and the test
    /// returns.
    pub fn kubectl(&self) -> Option<Kubectl> {
        match stanchion_local::kubectl::find() {
            Ok(program) => Some(Kubectl {
                program,
                kubeconfig: self.kubeconfig_path(),
            }),
            Err(why) => {
                report::skipped(&report::this_test(), why);
                None
            }
        }
    }
}

impl Kubectl {
    /// Runs kubectl and returns its output, or why it failed.
    pub async fn run(&self, arguments: &[&str]) -> Result<String, Error> {
        self.run_with(arguments, "").await
    }

    /// [`Kubectl::run`] with input (`-f -`).
    pub async fn run_with(&self, arguments: &[&str], input: &str) -> Result<String, Error> {
        let running = || "run kubectl".to_owned();
        let mut child = Command::new(self.program)
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .attempting(running)?;
        if let Some(mut stdin) = child.stdin.take() {
            // A kubectl that does not read its input closes it; its own message contains the reason.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
        let output = child.wait_with_output().await.attempting(running)?;
        checked(&format!("kubectl {}", arguments.join(" ")), &output)
    }
}
