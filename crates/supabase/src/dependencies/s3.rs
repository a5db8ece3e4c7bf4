//! Checks S3 with a signed request to the bucket.
//!
//! It lists the bucket, with at most one object: unlike HEAD, a refused GET explains itself in its body.

mod refusal;
mod transport;

use std::time::Duration;

use http::Uri;
use rusty_s3::{Bucket, Credentials, S3Action as _, UrlStyle};
use secrecy::{ExposeSecret as _, SecretString};
use stanchion_kernel::Problem;
use stanchion_postgres::http::Connector;
use tokio::time::Instant;

use super::PROBE_TIMEOUT;

/// Validity of the signature; clocks differ, and nobody else sees it.
const SIGNED_FOR: Duration = Duration::from_mins(5);

/// A bucket and its access key.
#[derive(Debug, Clone)]
pub struct Store {
    /// `https://host:port`, or `http://`.
    pub endpoint: String,
    /// The region that requests are signed for.
    pub region: String,
    pub bucket: String,
    pub access_key_id: SecretString,
    pub secret_access_key: SecretString,
    /// `https://host/bucket` instead of `https://bucket.host`.
    pub force_path_style: bool,
    /// The trusted authorities, in PEM; default: those of the machine.
    pub ca: Option<String>,
}

/// Sends the request and returns its latency.
pub async fn probe(store: &Store, connector: Connector) -> Result<Duration, Problem> {
    let uri = sign(store)?;
    let client = transport::client(store.ca.as_deref(), &uri, connector)?;
    let about = |what: &str| format!("bucket {:?} at {}: {what}", store.bucket, shown(&uri));
    let begun = Instant::now();
    match tokio::time::timeout(PROBE_TIMEOUT, transport::get(&client, &uri)).await {
        Err(_) => {
            let what = format!("no answer within {} seconds", PROBE_TIMEOUT.as_secs());
            Err(Problem::transient("Timeout", about(&what)))
        }
        Ok(Err(failure)) => {
            let (class, reason, what) = failure.explain(&uri).await;
            Err(Problem::new(class, reason, about(&what)))
        }
        Ok(Ok(answer)) if answer.is_list() => Ok(begun.elapsed()),
        Ok(Ok(answer)) => {
            let (class, reason, what) = refusal::explain(&answer, &store.region);
            Err(Problem::new(class, reason, about(&what)))
        }
    }
}

/// The signed URL that lists the bucket.
fn sign(store: &Store) -> Result<Uri, Problem> {
    let invalid = |why: String| Problem::permanent("InvalidEndpoint", why);
    let endpoint = store.endpoint.parse().map_err(|error| {
        invalid(format!(
            "the S3 endpoint is not a URL ({error}): write https://HOST or http://HOST:PORT"
        ))
    })?;
    let style = if store.force_path_style {
        UrlStyle::Path
    } else {
        UrlStyle::VirtualHost
    };
    let bucket = Bucket::new(endpoint, style, store.bucket.clone(), store.region.clone())
        .map_err(|error| invalid(format!("the S3 endpoint or bucket cannot be used: {error}")))?;
    let credentials = Credentials::new(
        store.access_key_id.expose_secret(),
        store.secret_access_key.expose_secret(),
    );
    let mut list = bucket.get_object(Some(&credentials), "");
    list.query_mut().insert("list-type", "2");
    list.query_mut().insert("max-keys", "1");
    let url = list.sign(SIGNED_FOR);
    url.as_str()
        .parse()
        .map_err(|_| invalid("the S3 endpoint cannot be used in a request".to_owned()))
}

/// Scheme, host and port: the rest of the URL is a signature, and a user before the host may have a password.
fn shown(uri: &Uri) -> String {
    let (scheme, host) = (
        uri.scheme_str().unwrap_or_default(),
        uri.host().unwrap_or_default(),
    );
    match uri.port() {
        Some(port) => format!("{scheme}://{host}:{port}"),
        None => format!("{scheme}://{host}"),
    }
}
