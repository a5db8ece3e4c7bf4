//! Connects to the server and reads its properties. Reads only.

use stanchion_api::PostgresInstance;
use stanchion_kernel::{Problem, Reader};
use stanchion_postgres::session::Security;

use crate::server::{self, Setup};

/// The server's properties.
pub struct Current {
    pub(super) address: String,
    pub(super) version: String,
    pub(super) system: String,
    pub(super) replica: bool,
    /// How far the server was verified.
    pub(super) security: Security,
    pub(super) log: String,
}

/// Connects to the server and reads its properties.
pub(super) async fn observe(
    setup: &Setup,
    read: &Reader,
    instance: &PostgresInstance,
) -> Result<Current, Problem> {
    let server = server::of_instance(read, setup, instance).await?;
    let session = setup.pools.read_only(&server.target).await?;
    let inspected = session.inspect(&[]).await?;
    Ok(Current {
        address: server.target.to_string(),
        version: version(session.version()),
        system: session.identity().system().to_owned(),
        replica: inspected.0.in_recovery,
        security: session.security(),
        log: server::log_exposure(&inspected.0),
    })
}

/// `150018` is 15.18.
fn version(number: u32) -> String {
    format!("{}.{}", number / 10_000, number % 10_000)
}
