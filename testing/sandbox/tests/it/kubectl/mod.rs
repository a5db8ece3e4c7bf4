//! kubectl's own flows over TLS. They run if kubectl is found, and are skipped and listed otherwise.

mod changes;
mod custom;
mod events;
mod lists;
mod output_formats;
mod prune;
mod rollouts;
mod single_objects;
mod watching;
mod workloads;

use std::path::Path;
use std::process::Output;

use stanchion_sandbox::Sandbox;
use tokio::process::Command;

use crate::{real_cluster, report};

struct Kubectl {
    program: &'static Path,
    folder: tempfile::TempDir,
    /// Dropped at the end; `None` for the real cluster.
    _sandbox: Option<Sandbox>,
}

impl Kubectl {
    async fn start() -> Option<Self> {
        let program = match stanchion_local::kubectl::find() {
            Ok(program) => program,
            Err(why) => {
                report::skipped(why);
                return None;
            }
        };
        let folder = tempfile::tempdir().unwrap();
        let mut sandbox = Sandbox::builder().start().unwrap();
        sandbox.listen(0).await.unwrap();
        sandbox.write_kubeconfig(&folder.path().join("config")).unwrap();
        Some(Self {
            program,
            folder,
            _sandbox: Some(sandbox),
        })
    }

    /// The sandbox, and in `make test-real` also the real cluster.
    async fn on_both() -> Vec<Self> {
        let sandbox = Self::start().await;
        let original = sandbox.as_ref().and_then(|sandbox| {
            let kubeconfig = real_cluster::kubeconfig()?;
            let folder = tempfile::tempdir().unwrap();
            std::fs::copy(kubeconfig, folder.path().join("config")).unwrap();
            Some(Self {
                program: sandbox.program,
                folder,
                _sandbox: None,
            })
        });
        sandbox.into_iter().chain(original).collect()
    }

    fn file(&self, name: &str, content: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_string_lossy().into_owned()
    }

    /// Creates the CRD in `crd.json`, and waits until it is served.
    async fn define_gadgets(&self) {
        let crd = self.file("crd.json", include_str!("../crd.json"));
        self.run(&format!("apply -f {crd}")).await;
        self.run("wait --for=condition=Established crd/gadgets.example.com --timeout=30s")
            .await;
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.program);
        let home: &Path = self.folder.path();
        command
            .args(arguments)
            .env("KUBECONFIG", home.join("config"))
            .env("HOME", home)
            .env("KUBECTL_APPLYSET", "true")
            .kill_on_drop(true);
        command.env("KUBECTL_EXTERNAL_DIFF", "diff -u -N").env(
            "KUBE_EDITOR",
            "sed -i -e s/size:.*/size:\\ 9/ -e s/sessionAffinity:.None/sessionAffinity:\\ ClientIP/",
        );
        command
    }

    async fn output(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(arguments);
        tokio::time::timeout(std::time::Duration::from_mins(1), command.output())
            .await
            .unwrap()
            .unwrap()
    }

    /// Runs a command that must succeed, and returns its output.
    async fn run(&self, line: &str) -> String {
        self.code(line, 0).await
    }

    /// Runs a command that exits with this code, and returns its output: `diff` and `can-i` use exit codes.
    async fn code(&self, line: &str, code: i32) -> String {
        let arguments: Vec<&str> = line.split(' ').collect();
        let output = self.output(&arguments).await;
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "kubectl {line}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command that must fail, and returns its error output.
    async fn fail(&self, line: &str) -> String {
        let arguments: Vec<&str> = line.split(' ').collect();
        let output = self.output(&arguments).await;
        assert!(!output.status.success(), "kubectl {line} should have failed");
        String::from_utf8(output.stderr).unwrap()
    }
}

/// Fails unless the text contains every word.
fn holds(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "no {word:?} in:\n{text}");
    }
}

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: 'web:1', ports: [{containerPort: 80}]}]}
";
