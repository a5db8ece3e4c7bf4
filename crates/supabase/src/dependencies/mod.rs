//! Checks whether PostgreSQL and S3 answer, how fast, and if not, why.
//!
//! Both checks are real: a query returned, a signed request was accepted. A failure's reason names what to check: the
//! host, the certificate, the password, the bucket, the key, the region.

pub mod postgres;
pub mod s3;

use std::time::Duration;

/// Timeout of a check; an unresponsive host must not block the project.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// Whether a name is not in DNS. Libraries report that only as text, so the name is resolved again.
async fn is_unknown(host: &str) -> bool {
    let lookup = tokio::net::lookup_host((host, 0));
    matches!(tokio::time::timeout(PROBE_TIMEOUT, lookup).await, Ok(Err(_)))
}
