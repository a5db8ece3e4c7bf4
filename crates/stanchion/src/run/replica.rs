//! One replica of the operator: leader or standby.

use kube::{Client, Config};
use stanchion_kernel::client::{self, Options};
use stanchion_kernel::driver::{Environment, Operator, Settings};
use stanchion_kernel::lease::{Elector, Fence, Identity, LeaseSettings, Term, Timings};
use stanchion_kernel::scope::Scope;
use stanchion_kernel::telemetry::Metrics;
use stanchion_kernel::telemetry::health::Check;
use tokio_util::sync::CancellationToken;

use super::arguments::Arguments;
use super::error::RunError;
use super::webhooks::Served;
use super::{LEASE, Setup, serve};

/// A replica that is ready to work.
pub(super) struct Replica<'a> {
    pub(super) arguments: &'a Arguments,
    pub(super) config: Config,
    /// Writes the Lease, which the fence must not stop.
    pub(super) unfenced: Client,
    pub(super) namespace: String,
    pub(super) settings: Settings,
    pub(super) metrics: Metrics,
    pub(super) setup: Setup,
    pub(super) webhooks: Option<Served>,
    pub(super) ready: Check,
    pub(super) shutdown: CancellationToken,
}

impl Replica<'_> {
    /// Works until shutdown; with leader election, while it holds the Lease.
    pub(super) async fn run(&self) -> Result<(), RunError> {
        if !self.arguments.leader_elect {
            return Box::pin(self.work(Fence::open())).await;
        }
        let settings = LeaseSettings {
            namespace: self.namespace.clone(),
            name: LEASE.into(),
            identity: Identity::new(&host_name()),
            timings: Timings::default(),
        };
        // A standby replica is ready: it answers webhooks and can take over.
        self.ready.pass();
        self.metrics.set_leader(LEASE, false);
        let term = Elector::new(self.unfenced.clone(), settings)
            .lead(self.shutdown.clone(), |leadership| {
                self.metrics.set_leader(LEASE, true);
                Box::pin(self.work(Fence::guarded_by(leadership)))
            })
            .await;
        self.metrics.set_leader(LEASE, false);
        match term {
            Term::Finished(ended) => ended,
            Term::NeverLed => Ok(()),
            Term::Lost => Err(RunError::LeaseLost),
        }
    }

    /// Runs the controllers until shutdown; running passes have a moment to finish.
    async fn work(&self, fence: Fence) -> Result<(), RunError> {
        let options = Options::new("controllers").with_layer(fence.clone());
        let client = client::build(self.config.clone(), &self.metrics, &options)?;
        let mut operator = Operator::new(Environment {
            client: client.clone(),
            metrics: self.metrics.clone(),
            instance: host_name(),
            settings: self.settings.clone(),
            shutdown: self.shutdown.clone(),
        })
        .fenced_by(fence);
        let scopes = Scope::from_namespaces(&self.arguments.namespace);
        for controller in self.arguments.controllers.rows() {
            (controller.add)(&self.setup, &scopes, &mut operator);
        }
        let following = serve::follow(operator.readiness(), self.ready.clone());
        let registered = async {
            if let Some(webhooks) = &self.webhooks {
                webhooks.keep_registered(client, self.shutdown.clone()).await;
            }
            // The controllers decide when to end.
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = operator.run() => {}
            () = following => {}
            () = registered => {}
        }
        if self.shutdown.is_cancelled() {
            Ok(())
        } else {
            Err(RunError::Ended)
        }
    }
}

/// In a pod, this is the pod's name.
fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map(|name| name.trim().to_owned())
        .ok()
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "stanchion".into())
}
