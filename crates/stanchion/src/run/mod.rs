//! `stanchion run`: the operator.
//!
//! In this order, so that each failure is one line and nothing has to be undone: the arguments are checked, the
//! addresses taken, the cluster looked at; then webhooks are served, the lease is waited for, and the controllers
//! run until a signal comes or the lease is lost.

mod arguments;
mod error;
mod instance;
mod preflight;
mod replica;
mod serve;
mod signals;
mod telemetry;
mod webhooks;

use kube::Config;
use stanchion_kernel::client::{self, Options};
use stanchion_kernel::driver::Settings;
use stanchion_kernel::lease::Fence;
use stanchion_kernel::telemetry::Metrics;
use stanchion_kernel::telemetry::health::Health;
use stanchion_postgres::Target;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::info;

use self::error::RunError;
use self::preflight::Ground;
use self::replica::Replica;
use self::serve::Doors;
use crate::cli::Failure;

pub(crate) use self::arguments::Arguments;
pub(crate) use self::webhooks::{CERTIFICATE, registration_name};

/// The Lease that replicas share.
pub(crate) const LEASE: &str = "stanchion";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What the controllers of the [table](crate::controllers) are made of, beside the cluster.
#[expect(dead_code, reason = "the table has no row yet")]
pub(crate) struct Setup {
    /// The server of every `PostgresUser` that names none.
    pub(crate) default_instance: Option<Target>,
    /// To be asked before each write that does not go to the cluster.
    pub(crate) fence: Fence,
    /// The operator's numbers.
    pub(crate) metrics: Metrics,
}

/// Runs the operator until a signal comes.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(RunError::from)?;
    let ended = runtime.block_on(async {
        let telemetry = telemetry::start(arguments)?;
        let ended = operate(arguments).await;
        telemetry.finish().await;
        ended
    });
    // What is left behind may not hold up the end.
    runtime.shutdown_background();
    Ok(ended?)
}

async fn operate(arguments: &Arguments) -> Result<(), RunError> {
    let shutdown = signals::shutdown()?;
    // Probes, metrics and webhooks are answered until the last reconcile is done.
    let closing = CancellationToken::new();
    let mut servers = JoinSet::new();
    let starting = start(arguments, &shutdown, &mut servers, &closing);
    let Some(replica) = shutdown.run_until_cancelled(starting).await else {
        return Ok(());
    };
    replica?.run().await?;
    closing.cancel();
    while servers.join_next().await.is_some() {}
    info!("done");
    Ok(())
}

/// Does everything that can fail, and starts to answer.
async fn start<'a>(
    arguments: &'a Arguments,
    shutdown: &CancellationToken,
    servers: &mut JoinSet<()>,
    closing: &CancellationToken,
) -> Result<Replica<'a>, RunError> {
    let default_instance = instance::read(&arguments.instance)?;
    let metrics = Metrics::new(VERSION);
    let health = Health::default();
    let ready = health.ready.add("caches", "the operator is starting");
    let doors = Doors::bind(arguments, health, metrics.clone()).await?;

    let config = Config::infer()
        .await
        .map_err(|error| RunError::NoCluster(Box::new(error)))?;
    let unfenced = client::build(config.clone(), &metrics, &Options::new("operator"))?;
    let kinds: Vec<_> = arguments
        .controllers
        .rows()
        .flat_map(|row| (row.kinds)())
        .collect();
    let cluster = config.cluster_url.to_string();
    let Ground {
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

    doors.open(servers, closing);
    let namespace = arguments
        .operator_namespace
        .clone()
        .unwrap_or_else(|| config.default_namespace.clone());
    let webhooks = webhooks::serve(arguments, unfenced.clone(), &namespace, servers, closing).await?;
    Ok(Replica {
        arguments,
        config,
        unfenced,
        namespace,
        settings: Settings {
            concurrency: arguments.concurrency,
            streaming_lists,
            ..Settings::default()
        },
        metrics,
        default_instance,
        webhooks,
        ready,
        shutdown: shutdown.clone(),
    })
}
