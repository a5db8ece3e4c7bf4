//! `stanchion ui`: the fleet as a page in the browser.

use std::io;

use stanchion_ui::{Server, ServerError};
use thiserror::Error;

use crate::cluster::{self, ClusterError};
use crate::output::{self, OutputError};

/// Arguments of `stanchion ui`. Without a namespace, it shows all of them.
#[derive(Debug, clap::Args)]
#[group(id = "ui")]
pub(crate) struct Arguments {
    /// Context of the kubeconfig. Default: the current context
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Namespace of the objects. Default: all namespaces
    #[arg(short, long, value_name = "NS")]
    namespace: Option<String>,
    /// Port on loopback; 0 selects a free one
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
}

/// Why there is no page.
#[derive(Debug, Error)]
pub(crate) enum UiError {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
}

/// Serves the page until Ctrl-C.
pub(crate) fn run(arguments: &Arguments) -> Result<(), UiError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(async {
        let shutdown = crate::run::shutdown()?;
        let chosen = cluster::Arguments {
            context: arguments.context.clone(),
            namespace: arguments.namespace.clone(),
            all_namespaces: arguments.namespace.is_none(),
        };
        let cluster = chosen.connect().await?;
        cluster.version().await?;
        let url = cluster.url.clone();
        let server = Server::start(cluster, arguments.port).await?;
        output::print(&format!(
            "{}\n\nThe page shows {url} with your permissions, until Ctrl-C. Do not share the address: its token \
             lets others act as you.\n",
            server.address()
        ))?;
        shutdown.cancelled().await;
        Ok(())
    });
    // An open page must not delay the end.
    runtime.shutdown_background();
    ended
}
