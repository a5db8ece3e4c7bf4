//! The embedded API server, and the file by which others find it.

use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use stanchion_local::scratch::Passing;
use stanchion_sandbox::{Sandbox, User};

use super::Arguments;
use super::command::ImageCommand;
use super::error::SandboxError;
use super::home::Home;

/// How long a simulated pod takes to become ready: long enough to be seen.
const POD_START: Duration = Duration::from_secs(1);

/// The API server. Its kubeconfig, which is of no use without it, goes with it.
pub(super) struct ApiServer {
    sandbox: Sandbox,
    url: String,
    kubeconfig: Passing,
}

impl ApiServer {
    /// Starts to answer, then writes the kubeconfig.
    pub(super) async fn start(arguments: &Arguments, home: &Home) -> Result<Self, SandboxError> {
        let mut builder = Sandbox::builder().workloads(Some(POD_START));
        for ImageCommand { image, command } in &arguments.run {
            let words: Vec<&str> = command.iter().map(String::as_str).collect();
            builder = builder.command(image, &words);
        }
        if let Some(file) = home.state() {
            builder = builder.state(file);
        }
        let mut sandbox = builder.start()?;
        let address = sandbox.listen(arguments.port).await?;
        let kubeconfig = arguments.kubeconfig.clone().unwrap_or_else(|| home.kubeconfig());
        let kubeconfig = std::path::absolute(kubeconfig)?;
        sandbox.write_kubeconfig(&kubeconfig)?;
        Ok(Self {
            sandbox,
            url: format!("https://{address}"),
            kubeconfig: Passing::file(kubeconfig)?,
        })
    }

    /// Its address.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// The line for a shell that wants to use it.
    pub(super) fn export(&self) -> String {
        format!("export KUBECONFIG={}", self.kubeconfig.path().display())
    }

    /// A client with all rights.
    pub(super) fn client(&self) -> Client {
        self.sandbox.client()
    }

    /// How a service account reaches it.
    pub(super) async fn config_of(&self, namespace: &str, name: &str) -> Result<Config, SandboxError> {
        let user = User::service_account(namespace, name);
        let text = self.sandbox.kubeconfig(user).unwrap_or_default();
        let config = Kubeconfig::from_yaml(&text)?;
        Ok(Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?)
    }
}
