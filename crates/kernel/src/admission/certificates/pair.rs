//! One certificate with its own CA.
//!
//! The CA signs this one certificate and its key is dropped: nobody can create another certificate that the API server
//! would trust, not even with access to the Secret.

use std::{net::IpAddr, time::Duration};

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use secrecy::{ExposeSecret, SecretString};
use x509_parser::{
    extensions::GeneralName,
    prelude::{FromDer, X509Certificate},
};

use super::serving::certified_key;

/// Clocks of API servers may be behind ours.
const BACKDATED: Duration = Duration::from_hours(1);

/// A certificate and its key, both PEM.
#[derive(Clone)]
pub(super) struct Pair {
    pub(super) certificate: String,
    pub(super) key: SecretString,
    names: Vec<String>,
    not_after: Timestamp,
}

impl Pair {
    /// Creates a certificate for `names` and its CA certificate (PEM).
    pub(super) fn make(
        names: &[String],
        now: Timestamp,
        lifetime: Duration,
    ) -> Result<(Self, String), rcgen::Error> {
        let mut ca = CertificateParams::new(Vec::new())?;
        valid(&mut ca, now, lifetime);
        // Several CA certificates are in one bundle; different names keep them apart.
        ca.distinguished_name.push(
            DnType::CommonName,
            format!("stanchion webhooks {:016x}", rand::random::<u64>()),
        );
        ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let ca_key = KeyPair::generate()?;
        let authority = ca.self_signed(&ca_key)?.pem();

        let mut leaf = CertificateParams::new(names)?;
        valid(&mut leaf, now, lifetime);
        leaf.distinguished_name
            .push(DnType::CommonName, "stanchion webhooks");
        leaf.use_authority_key_identifier_extension = true;
        leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let certificate = leaf.signed_by(&key, &Issuer::new(ca, ca_key))?.pem();

        let not_after = now + lifetime;
        let pair = Self {
            certificate,
            key: key.serialize_pem().into(),
            names: sorted(names.to_vec()),
            not_after,
        };
        Ok((pair, authority))
    }

    /// Parses a pair; fails if the key does not match the certificate, or one is missing.
    pub(super) fn parse(certificate: String, key: SecretString) -> Result<Self, String> {
        certified_key(&certificate, &key)?;
        let der =
            CertificateDer::from_pem_slice(certificate.as_bytes()).map_err(|error| error.to_string())?;
        let (_, x509) = X509Certificate::from_der(&der).map_err(|error| error.to_string())?;
        let not_after =
            Timestamp::from_second(x509.validity().not_after.timestamp()).map_err(|e| e.to_string())?;
        let names = x509
            .subject_alternative_name()
            .map_err(|error| error.to_string())?;
        let names = names
            .iter()
            .flat_map(|names| &names.value.general_names)
            .filter_map(name)
            .collect();
        Ok(Self {
            certificate,
            key,
            names: sorted(names),
            not_after,
        })
    }

    pub(super) fn not_after(&self) -> Timestamp {
        self.not_after
    }

    /// Whether it is valid for exactly these names.
    pub(super) fn is_for(&self, names: &[String]) -> bool {
        self.names == sorted(names.to_vec())
    }
}

impl PartialEq for Pair {
    fn eq(&self, other: &Self) -> bool {
        self.certificate == other.certificate && self.key.expose_secret() == other.key.expose_secret()
    }
}

fn valid(params: &mut CertificateParams, now: Timestamp, lifetime: Duration) {
    let since_epoch = Duration::try_from(now.duration_since(Timestamp::UNIX_EPOCH)).unwrap_or_default();
    let now = rcgen::date_time_ymd(1970, 1, 1) + since_epoch;
    params.not_before = now - BACKDATED;
    params.not_after = now + lifetime;
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let v4 = <[u8; 4]>::try_from(*bytes).map(IpAddr::from).ok();
            let v6 = <[u8; 16]>::try_from(*bytes).map(IpAddr::from).ok();
            v4.or(v6).map(|ip| ip.to_string())
        }
        _ => None,
    }
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_read_back_as_it_was_made() {
        let names = [
            "stanchion.ns.svc".to_owned(),
            "127.0.0.1".to_owned(),
            "::1".to_owned(),
        ];
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let (made, authority) = Pair::make(&names, now, Duration::from_hours(24)).unwrap();
        let read = Pair::parse(made.certificate.clone(), made.key.clone()).unwrap();
        assert!(read == made && read.is_for(&names) && !read.is_for(&names[..2]));
        assert_eq!(read.not_after().to_string(), "2026-01-02T00:00:00Z");
        assert!(authority.starts_with("-----BEGIN CERTIFICATE-----"));
    }

    #[test]
    fn a_key_of_another_certificate_is_refused() {
        let make = || {
            Pair::make(&["a.b.svc".into()], Timestamp::now(), Duration::from_hours(1))
                .unwrap()
                .0
        };
        let (one, other) = (make(), make());
        assert!(Pair::parse(one.certificate.clone(), other.key).is_err());
        assert!(Pair::parse("nothing".into(), one.key).is_err());
    }
}
