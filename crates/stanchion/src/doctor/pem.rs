//! Expiry of certificates.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use x509_parser::parse_x509_certificate;
use x509_parser::pem::Pem;

/// The earliest expiry of the certificates in a `caBundle`, which is PEM in base64. `None` if there is no certificate.
pub(super) fn valid_until(bundle: &str) -> Option<Timestamp> {
    let pem = STANDARD.decode(bundle).ok()?;
    Pem::iter_from_buffer(&pem)
        .filter_map(|block| {
            let block = block.ok()?;
            let (_, certificate) = parse_x509_certificate(&block.contents).ok()?;
            Timestamp::from_second(certificate.validity().not_after.timestamp()).ok()
        })
        .min()
}
