//! Checks PostgreSQL with a query, over the same path as the services.

use std::time::{Duration, Instant};

use stanchion_kernel::{Class, Problem};
use stanchion_postgres::{
    Class as Reaction, ConnectionConfig, Error, Kind, LEFT_ALONE, Pools, Query, Security,
};

use super::{PROBE_TIMEOUT, is_unknown};
use crate::database::check_version;

/// Runs a query and returns its latency, and whether the server that answered was verified.
pub async fn probe(pools: &Pools, target: &ConnectionConfig) -> Result<(Duration, Security), Problem> {
    let question = async {
        let session = pools.read_only(target).await?;
        let begun = Instant::now();
        session.query(&Query::new("SELECT 1")).await?;
        Ok::<_, Error>((begun.elapsed(), session.security(), session.version()))
    };
    match tokio::time::timeout(PROBE_TIMEOUT, question).await {
        Ok(Ok((latency, security, version))) => check_version(version).map(|()| (latency, security)),
        Ok(Err(error)) => {
            let breaker = error.is_left_alone();
            let mut problem = explain(error, target).await;
            if breaker && !problem.message.ends_with(LEFT_ALONE) {
                problem.message = format!("{}; {LEFT_ALONE}", problem.message);
            }
            Err(problem)
        }
        Err(_) => Err(timeout(target)),
    }
}

fn timeout(target: &ConnectionConfig) -> Problem {
    let message = format!(
        "PostgreSQL at {target} does not answer within {} seconds",
        PROBE_TIMEOUT.as_secs()
    );
    Problem::transient("Timeout", message)
}

/// The reason, and what to check.
async fn explain(error: Error, target: &ConnectionConfig) -> Problem {
    let class = match error.class() {
        Reaction::Transient => Class::Transient,
        Reaction::Dependency => Class::Dependency,
        Reaction::Human => Class::Human,
        Reaction::Permanent => Class::Permanent,
    };
    let said = || {
        let message = error.message().map(|message| message.message.as_str());
        message.unwrap_or_default().to_owned()
    };
    let (class, reason, what) = match (error.kind(), error.sqlstate()) {
        (Kind::Refused, _) => (
            class,
            "ConnectionRefused",
            "nothing listens there; check host and port".to_owned(),
        ),
        (Kind::TimedOut, _) => return timeout(target).caused_by(error),
        (Kind::TlsRefused, _) => (
            class,
            "TlsNotOffered",
            format!(
                "the server offers no TLS, which sslMode {} asks for",
                target.tls().as_str()
            ),
        ),
        (Kind::CertificateUntrusted, _) => (
            class,
            "CertificateUntrusted",
            "the server's certificate is expired or not signed by the CA".to_owned(),
        ),
        (Kind::CertificateName, _) => (
            class,
            "CertificateName",
            "the server's certificate is for another name".to_owned(),
        ),
        (Kind::Tls, _) => (class, "TlsFailed", error.to_string()),
        (Kind::Exhausted, _) => (
            class,
            "DatabaseBusy",
            "all of the operator's connections to it are in use".to_owned(),
        ),
        // Also a missing password: the server asked and there was none.
        (_, Some("28P01" | "28000")) => (class, "AuthenticationFailed", said()),
        (_, Some("3D000")) => (class, "DatabaseNotFound", said()),
        (_, Some("53300")) => (class, "TooManyConnections", said()),
        (_, Some("57P03")) => (class, "NotReady", said()),
        (Kind::Unreachable, _) if is_unknown(target.host()).await => (
            Class::Dependency,
            "HostNotFound",
            format!("the host name {:?} is not in DNS", target.host()),
        ),
        (Kind::Unreachable, _) => (class, "Unreachable", "the connection broke".to_owned()),
        _ => return Problem::from(error),
    };
    Problem::new(class, reason, format!("PostgreSQL at {target}: {what}")).caused_by(error)
}
