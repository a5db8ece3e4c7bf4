//! Checks of the certificates of the webhooks: of the CAs in their configurations, and of what cert-manager issued.
//!
//! A certificate that the operator made itself ends together with its CA. One of cert-manager ends long before.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::Value;
use x509_parser::parse_x509_certificate;
use x509_parser::pem::Pem;

use super::{Fault, Outcome, installations, items, need, subject, text};
use crate::doctor::snapshot::{Installation, Snapshot};
use crate::run::registration_name;

/// The operator renews its own certificates long before.
const SOON: i64 = 7 * 86_400;

/// cert-manager renews at the time that it names, so a later time means that it cannot.
const LATE: i64 = 3600;

pub(super) fn expired(snapshot: &Snapshot) -> Outcome {
    let found = ends(snapshot, |until, now| until <= now, "expired at")?;
    let has_ended = |certificate: &Value| past(certificate, "/status/notAfter", now(snapshot), "expired at");
    both(found, issued(snapshot, has_ended))
}

pub(super) fn expires(snapshot: &Snapshot) -> Outcome {
    let soon = |until: i64, now: i64| until > now && until - now < SOON;
    let found = ends(snapshot, soon, "is valid only until")?;
    let now = now(snapshot);
    let is_late = |certificate: &Value| match past(certificate, "/status/notAfter", now, "expired at") {
        // The other check reports it.
        Some(_) => None,
        None => past(
            certificate,
            "/status/renewalTime",
            now - LATE,
            "was due for renewal at",
        ),
    };
    both(found, issued(snapshot, is_late))
}

fn now(snapshot: &Snapshot) -> i64 {
    snapshot.now.as_second()
}

/// The time in the status of a certificate, with these words, if it has passed at this second.
fn past(certificate: &Value, pointer: &str, second: i64, words: &str) -> Option<String> {
    let time: Timestamp = text(certificate, pointer).parse().ok()?;
    (time.as_second() <= second).then(|| format!("{words} {time}"))
}

/// Certificates of cert-manager that may not be read do not hide a CA that was.
fn both(found: Vec<Fault>, issued: Outcome) -> Outcome {
    match issued {
        Ok(issued) => Ok([found, issued].concat()),
        Err(_) if !found.is_empty() => Ok(found),
        Err(why) => Err(why),
    }
}

/// The certificates of cert-manager that `say` finds fault with. Where every operator makes its own, they are of no interest.
fn issued(snapshot: &Snapshot, say: impl Fn(&Value) -> Option<String>) -> Outcome {
    let mounts = installations(snapshot)?
        .iter()
        .any(Installation::mounts_its_certificate);
    if !mounts {
        return Ok(Vec::new());
    }
    let certificates = need("certificates", &snapshot.certificates)?;
    let faults = certificates.iter().filter_map(|certificate| {
        let words = say(certificate)?;
        let (namespace, name) = (
            text(certificate, "/metadata/namespace"),
            text(certificate, "/metadata/name"),
        );
        Some(Fault {
            subject: subject(certificate),
            message: format!("the certificate that the operator presents {words}"),
            remedy: format!(
                "kubectl -n {namespace} describe certificate/{name}, then cmctl renew -n {namespace} {name}"
            ),
        })
    });
    Ok(faults.collect())
}

fn ends(snapshot: &Snapshot, is: fn(i64, i64) -> bool, words: &str) -> Outcome {
    let webhooks = need("webhook configurations", &snapshot.webhooks)?;
    let deployments = snapshot.deployments.as_deref().unwrap_or_default();
    let mounted: Vec<String> = deployments
        .iter()
        .map(Installation::of)
        .filter(Installation::mounts_its_certificate)
        .map(|installation| registration_name(installation.namespace))
        .collect();
    let now = snapshot.now.as_second();
    let mut faults = Vec::new();
    for configuration in webhooks {
        let name = text(configuration, "/metadata/name");
        let is_mounted = mounted.iter().any(|registered| registered == name);
        let bundles =
            items(configuration, "/webhooks").map(|webhook| text(webhook, "/clientConfig/caBundle"));
        let until = bundles.filter_map(|bundle| valid_until(bundle, is_mounted)).min();
        let Some(until) = until.filter(|until| is(until.as_second(), now)) else {
            continue;
        };
        let namespace = name.strip_prefix("stanchion-").unwrap_or_default();
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

/// The expiry of the CA that signed what the operator presents, in a `caBundle`: PEM in base64. `None` if there is no
/// certificate.
///
/// The operator's own bundle has the CA of the previous certificate until it ends, that of the current one, and that of the
/// next one, which ends last. A mounted bundle has those that are trusted at present.
fn valid_until(bundle: &str, is_mounted: bool) -> Option<Timestamp> {
    let pem = STANDARD.decode(bundle).ok()?;
    let mut ends: Vec<Timestamp> = Pem::iter_from_buffer(&pem)
        .filter_map(|block| {
            let block = block.ok()?;
            let (_, certificate) = parse_x509_certificate(&block.contents).ok()?;
            Timestamp::from_second(certificate.validity().not_after.timestamp()).ok()
        })
        .collect();
    ends.sort_unstable();
    let last = ends.pop()?;
    if is_mounted {
        return Some(last);
    }
    Some(ends.pop().unwrap_or(last))
}
