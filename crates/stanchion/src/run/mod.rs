//! `stanchion run`: the operator.
//!
//! In this order, so that each failure is one line and nothing has to be undone: check the arguments, bind the
//! addresses, check the cluster; then serve webhooks, wait for the Lease, and run the controllers until a signal comes
//! or the Lease is lost.

mod arguments;
mod error;
mod instance;
mod preflight;
mod replica;
mod serve;
mod signals;
mod telemetry;
mod webhooks;

use std::sync::Arc;

use kube::{Api, Config};
use stanchion_gitlab::charts::Tenants;
use stanchion_kernel::client::{self, Options};
use stanchion_kernel::driver::Settings;
use stanchion_kernel::redact::{FingerprintKey, install_key};
use stanchion_kernel::telemetry::Metrics;
use stanchion_kernel::telemetry::health::Health;
use stanchion_postgres::{AllowedNetworks, PoolSettings, Pools};
use stanchion_user::{DefaultInstance, Openings};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::info;

use self::preflight::ClusterInfo;
use self::replica::Replica;
use self::serve::Listeners;
use crate::cli::Failure;
use stanchion_fleet::kubeconfig;

pub(crate) use self::arguments::Arguments;
pub(crate) use self::arguments::{HEALTH_PORT, SERVICE, WEBHOOK_PORT};
pub(crate) use self::error::RunError;
pub(crate) use self::signals::shutdown;
pub(crate) use self::webhooks::{CERTIFICATE, SERVICE_PORT, registration_name};

/// The Lease that replicas share.
pub(crate) const LEASE: &str = "stanchion";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The Secret with the key of the fingerprints.
pub(crate) const FINGERPRINTS: &str = "stanchion-fingerprints";

/// The dependencies of the controllers in the [table](crate::controllers), in addition to the cluster.
pub(crate) struct Setup {
    /// The default server of `PostgresUser` objects.
    pub(crate) default_instance: DefaultInstance,
    pub(crate) openings: Openings,
    /// The connections of this process.
    pub(crate) pools: Pools,
    /// What authors of a `GitlabInstance` may do.
    pub(crate) gitlab_tenants: Arc<Tenants>,
    /// Detects whether a secret has changed, without keeping it.
    pub(crate) fingerprints: Arc<FingerprintKey>,
    /// The metrics of this process.
    pub(crate) metrics: Metrics,
    /// The allowed prefixes of component images.
    pub(crate) allowed_images: Vec<String>,
}

/// Runs the operator until a signal comes.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads())
        .enable_all()
        .build()
        .map_err(RunError::from)?;
    let ended = runtime.block_on(async {
        let shutdown = shutdown()?;
        let telemetry = telemetry::start(arguments)?;
        let ended = Box::pin(operate(arguments, None, shutdown)).await;
        telemetry.finish().await;
        ended
    });
    // Remaining tasks must not delay the end.
    runtime.shutdown_background();
    Ok(ended?)
}

/// One per core, and few on a large machine: the operator mostly waits, and each thread has its own memory arena.
fn threads() -> usize {
    const MOST: usize = 4;
    std::thread::available_parallelism().map_or(MOST, |cores| cores.get().min(MOST))
}

/// Runs the operator until shutdown, on the given cluster or on that of the environment.
pub(crate) async fn operate(
    arguments: &Arguments,
    cluster: Option<Config>,
    shutdown: CancellationToken,
) -> Result<(), RunError> {
    // Health checks, metrics and webhooks are served until the last reconcile is done.
    let closing = CancellationToken::new();
    let mut servers = JoinSet::new();
    let starting = Box::pin(start(arguments, cluster, &shutdown, &mut servers, &closing));
    let Some(replica) = shutdown.run_until_cancelled(starting).await else {
        return Ok(());
    };
    let replica = replica?;
    replica.run().await?;
    replica.setup.pools.close_idle().await;
    closing.cancel();
    while servers.join_next().await.is_some() {}
    info!("done");
    Ok(())
}

/// Does everything that can fail, and starts the servers.
async fn start<'a>(
    arguments: &'a Arguments,
    cluster: Option<Config>,
    shutdown: &CancellationToken,
    servers: &mut JoinSet<()>,
    closing: &CancellationToken,
) -> Result<Replica<'a>, RunError> {
    let default_instance = instance::read(&arguments.instance)?;
    let default_instance = DefaultInstance::new(default_instance);
    let metrics = Metrics::new(VERSION);
    let health = Health::default();
    let ready = health.ready.add("caches", "the operator is starting");
    let listeners = Listeners::bind(arguments, health, metrics.clone()).await?;

    let config = match cluster {
        Some(config) => config,
        None => kubeconfig::infer()
            .await
            .map_err(|error| RunError::NoCluster(Box::new(error)))?,
    };
    let unfenced = client::build(config.clone(), &metrics, &Options::new("operator"))?;
    let kinds: Vec<_> = arguments
        .controllers
        .rows()
        .flat_map(|row| (row.kinds)())
        .collect();
    let cluster = config.cluster_url.to_string();
    let ClusterInfo {
        version,
        streaming_lists,
    } = preflight::check(&unfenced, &cluster, &kinds).await?;
    let names: Vec<&str> = arguments.controllers.rows().map(|row| row.name).collect();
    info!(
        version = VERSION,
        kubernetes = version,
        cluster,
        controllers = names.join(","),
        "starting"
    );

    listeners.open(servers, closing);
    telemetry::export(arguments, &metrics, servers, closing)?;
    if let Some(file) = arguments.instance.postgres_url_file.clone() {
        let (closing, instance) = (closing.clone(), default_instance.clone());
        servers.spawn(async move {
            closing
                .run_until_cancelled(instance::follow(file, instance))
                .await;
        });
    }
    let namespace = arguments
        .operator_namespace
        .clone()
        .unwrap_or_else(|| config.default_namespace.clone());
    let secrets = Api::namespaced(unfenced.clone(), &namespace);
    let setup = Setup {
        default_instance,
        gitlab_tenants: Arc::new(arguments.gitlab.tenants()),
        pools: Pools::new(
            PoolSettings {
                networks: AllowedNetworks::detect(arguments.instance.allow_network.clone()),
                ..PoolSettings::default()
            },
            Arc::new(metrics.postgres().clone()),
        ),
        openings: arguments.instance.openings(),
        fingerprints: Arc::new(install_key(&secrets, FINGERPRINTS).await?),
        metrics: metrics.clone(),
        allowed_images: arguments.allowed_images.clone(),
    };
    metrics.count_connections(setup.pools.clone());
    let webhooks = webhooks::serve(
        arguments,
        (unfenced.clone(), metrics.clone()),
        (&namespace, &setup.fingerprints),
        servers,
        closing,
    )
    .await?;
    Ok(Replica {
        arguments,
        config,
        unfenced,
        namespace,
        settings: Settings {
            concurrency: arguments.concurrency,
            streaming_lists,
            shortest_interval: arguments.min_interval,
            ..Settings::default()
        },
        metrics,
        setup,
        webhooks,
        ready,
        shutdown: shutdown.clone(),
    })
}
