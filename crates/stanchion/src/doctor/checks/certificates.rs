//! Checks of the CA certificates in the webhook configurations.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use x509_parser::parse_x509_certificate;
use x509_parser::pem::Pem;

use super::{Fault, Outcome, list, need, subject, text};
use crate::doctor::snapshot::Snapshot;

/// The operator renews its own certificates long before.
const SOON: i64 = 7 * 86_400;

pub(super) fn expired(snapshot: &Snapshot) -> Outcome {
    ends(snapshot, |until, now| until <= now, "expired at")
}

pub(super) fn expires(snapshot: &Snapshot) -> Outcome {
    let soon = |until: i64, now: i64| until > now && until - now < SOON;
    ends(snapshot, soon, "is valid only until")
}

fn ends(snapshot: &Snapshot, is: fn(i64, i64) -> bool, words: &str) -> Outcome {
    let webhooks = need("webhook configurations", &snapshot.webhooks)?;
    let mut faults = Vec::new();
    for configuration in webhooks {
        let bundles = list(configuration, "/webhooks").map(|webhook| text(webhook, "/clientConfig/caBundle"));
        let until: Option<Timestamp> = bundles.filter_map(valid_until).min();
        let Some(until) = until.filter(|until| is(until.as_second(), snapshot.now.as_second())) else {
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
