//! The embedded API server and its kubeconfig.

use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use stanchion_local::scratch::Passing;
use stanchion_sandbox::{Sandbox, User};

use super::Arguments;
use super::command::ImageCommand;
use super::error::SandboxError;
use super::home::Home;

/// How long a simulated pod takes to become ready: long enough to be visible.
const POD_START: Duration = Duration::from_secs(1);

/// The API server. Its kubeconfig is removed with it.
pub(super) struct ApiServer {
    sandbox: Sandbox,
    url: String,
    kubeconfig: Passing,
}

impl ApiServer {
    /// Starts the server, then writes the kubeconfig.
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

    /// The URL of the server.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// The shell command that selects it.
    pub(super) fn export(&self) -> String {
        format!("export KUBECONFIG={}", self.kubeconfig.path().display())
    }

    /// A client with all permissions.
    pub(super) fn client(&self) -> Client {
        self.sandbox.client()
    }

    /// The client configuration of a service account.
    pub(super) async fn config_of(&self, namespace: &str, name: &str) -> Result<Config, SandboxError> {
        let user = User::service_account(namespace, name);
        let text = self.sandbox.kubeconfig(user).unwrap_or_default();
        let config = Kubeconfig::from_yaml(&text)?;
        Ok(Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?)
    }
}
