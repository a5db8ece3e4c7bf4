//! Whether PostgreSQL and S3 answer, how fast, and if not, why not.
//!
//! Both are really asked: a query came back, a signed request was accepted. A failure has a reason that names the
//! thing to look at: the host, the certificate, the password, the bucket, the key, the region.

pub mod postgres;
pub mod s3;

use std::time::Duration;

/// How long an answer may take; a host that hangs must not hold up the project.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whether a name is in no DNS. Libraries report that in words only, so the question is asked again.
async fn is_unknown(host: &str) -> bool {
    let lookup = tokio::net::lookup_host((host, 0));
    matches!(tokio::time::timeout(PATIENCE, lookup).await, Ok(Err(_)))
}
