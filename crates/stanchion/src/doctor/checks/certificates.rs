//! Checks of the certificates of the webhooks: of the CAs in their configurations, and of what cert-manager issued.
//!
//! A certificate that the operator made itself ends together with its CA. One of cert-manager ends long before.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use x509_parser::parse_x509_certificate;
use x509_parser::pem::Pem;

use super::{Fault, Outcome, list, need, subject, text};
use crate::doctor::snapshot::Snapshot;

/// The operator renews its own certificates long before.
const SOON: i64 = 7 * 86_400;

/// cert-manager renews at the time that it names, so a later time means that it cannot.
const LATE: i64 = 3600;

pub(super) fn expired(snapshot: &Snapshot) -> Outcome {
    let mut faults = ends(snapshot, |until, now| until <= now, "expired at")?;
    faults.extend(issued(snapshot, "/status/notAfter", 0, "expired at")?);
    Ok(faults)
}

pub(super) fn expires(snapshot: &Snapshot) -> Outcome {
    let soon = |until: i64, now: i64| until > now && until - now < SOON;
    let mut faults = ends(snapshot, soon, "is valid only until")?;
    let expired: Vec<String> = expired(snapshot)?
        .into_iter()
        .map(|fault| fault.subject)
        .collect();
    let late = issued(snapshot, "/status/renewalTime", LATE, "was due for renewal at")?;
    faults.extend(late.into_iter().filter(|fault| !expired.contains(&fault.subject)));
    Ok(faults)
}

/// The certificates of cert-manager with a time that has passed.
fn issued(snapshot: &Snapshot, pointer: &str, late: i64, words: &str) -> Outcome {
    let certificates = need("certificates", &snapshot.certificates)?;
    let faults = certificates.iter().filter_map(|certificate| {
        let time: Timestamp = text(certificate, pointer).parse().ok()?;
        let (namespace, name) = (
            text(certificate, "/metadata/namespace"),
            text(certificate, "/metadata/name"),
        );
        (time.as_second() + late <= snapshot.now.as_second()).then(|| Fault {
            subject: subject(certificate),
            message: format!("the certificate that the operator presents {words} {time}"),
            remedy: format!(
                "kubectl -n {namespace} describe certificate/{name}, then cmctl renew -n {namespace} {name}"
            ),
        })
    });
    Ok(faults.collect())
}

fn ends(snapshot: &Snapshot, is: fn(i64, i64) -> bool, words: &str) -> Outcome {
    let webhooks = need("webhook configurations", &snapshot.webhooks)?;
    let now = snapshot.now.as_second();
    let mut faults = Vec::new();
    for configuration in webhooks {
        let bundles = list(configuration, "/webhooks").map(|webhook| text(webhook, "/clientConfig/caBundle"));
        let until: Option<Timestamp> = bundles.filter_map(valid_until).min();
        let Some(until) = until.filter(|until| is(until.as_second(), now)) else {
            continue;
        };
        let namespace = text(configuration, "/metadata/name")
            .strip_prefix("stanchion-")
            .unwrap_or_default();
        faults.push(Fault {
            subject: subject(configuration),
            message: format!("its CA certificate {words} {until}"),
            remedy: format!(
                "kubectl -n {namespace} delete secret {}; the operator creates another one (with cert-manager: cmctl renew)",
                crate::run::CERTIFICATE
            ),
        });
    }
    Ok(faults)
}

/// The earliest expiry of the certificates in a `caBundle`, which is PEM in base64. `None` if there is no certificate.
fn valid_until(bundle: &str) -> Option<Timestamp> {
    let pem = STANDARD.decode(bundle).ok()?;
    Pem::iter_from_buffer(&pem)
        .filter_map(|block| {
            let block = block.ok()?;
            let (_, certificate) = parse_x509_certificate(&block.contents).ok()?;
            Timestamp::from_second(certificate.validity().not_after.timestamp()).ok()
        })
        .min()
}
