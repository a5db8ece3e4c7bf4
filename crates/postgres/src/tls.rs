//! TLS with libpq's five modes.
//!
//! | mode | encrypted | chain checked | name checked |
//! |---|---|---|---|
//! | `disable` | no | | |
//! | `prefer` | if the server offers it | no | no |
//! | `require` | yes | if a CA is given | no |
//! | `verify-ca` | yes | yes | no |
//! | `verify-full` | yes | yes | yes |
//!
//! Without a CA the two `verify` modes trust the system's roots. Two differences from libpq: `prefer` never verifies a
//! certificate (it would fall back to no encryption at all), and the name must be among the certificate's alternative
//! names, the common name is ignored.
//!
//! The crypto provider is set here and not taken from the process, so that another library cannot change it.

use std::str::FromStr;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::connection_config::{ConnectionConfig, ConnectionConfigError};

/// The TLS mode, as in libpq.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TlsMode {
    /// No encryption.
    Disable,
    /// Encryption if the server offers it.
    #[default]
    Prefer,
    /// Encryption; the certificate is verified only if a CA is given.
    Require,
    /// Encryption with a server whose certificate the CA signed.
    VerifyCa,
    /// … and the certificate contains the server's name.
    VerifyFull,
}

impl TlsMode {
    /// As libpq spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Prefer => "prefer",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        }
    }
}

impl FromStr for TlsMode {
    type Err = ConnectionConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "disable" => Self::Disable,
            // libpq's `allow` tries the other order; both mean "encryption if possible".
            "prefer" | "allow" => Self::Prefer,
            "require" => Self::Require,
            "verify-ca" => Self::VerifyCa,
            "verify-full" => Self::VerifyFull,
            _ => {
                let modes = "use disable, prefer, require, verify-ca or verify-full";
                return Err(ConnectionConfigError::Invalid("sslmode", modes));
            }
        })
    }
}

/// Why TLS could not be set up, before any byte was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TlsSetupError {
    /// The CA certificate is invalid.
    #[error("the CA is not a certificate in PEM form")]
    BadCa,
    /// No CA was given, and the system has no roots.
    #[error("a certificate is to be checked, but no CA was given and this machine has no root certificates")]
    NoRoots,
    /// The crypto library supports none of the protocol versions.
    #[error("TLS cannot be set up: {0}")]
    Provider(String),
}

/// The TLS options for the driver: whether to request TLS, and how.
#[derive(Clone)]
pub(crate) struct Tls {
    pub(crate) mode: SslMode,
    pub(crate) connector: MakeRustlsConnect,
    /// Whether a successful handshake verifies the server. A certificate for any name does so only with a CA that was
    /// given for this purpose: everybody can get one from the system's roots.
    pub(crate) verifies: bool,
}

impl Tls {
    pub(crate) fn of(target: &ConnectionConfig) -> Result<Self, TlsSetupError> {
        let tls = if target.is_local_socket() {
            TlsMode::Disable
        } else {
            target.tls
        };
        let mode = match tls {
            TlsMode::Disable => SslMode::Disable,
            TlsMode::Prefer => SslMode::Prefer,
            TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => SslMode::Require,
        };
        Ok(Self {
            mode,
            connector: MakeRustlsConnect::new(client_config(tls, target.ca.as_deref())?),
            verifies: match tls {
                TlsMode::Disable | TlsMode::Prefer => false,
                TlsMode::Require | TlsMode::VerifyCa => target.ca.is_some(),
                TlsMode::VerifyFull => true,
            },
        })
    }
}

fn client_config(mode: TlsMode, ca: Option<&str>) -> Result<ClientConfig, TlsSetupError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = Verifier::new(mode, ca, &provider)?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsSetupError::Provider(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(config)
}

/// One verifier for all modes. Each of them checks that the server has the key of its certificate.
#[derive(Debug)]
struct Verifier {
    trust: Option<Trust>,
    check_name: bool,
    algorithms: WebPkiSupportedAlgorithms,
}

#[derive(Debug)]
struct Trust {
    roots: RootCertStore,
    /// The given certificates themselves. A server often has a self-signed certificate that is its own CA, which a
    /// strict chain check would reject: a CA must not be a server.
    given: Vec<CertificateDer<'static>>,
}

impl Verifier {
    fn new(mode: TlsMode, ca: Option<&str>, provider: &CryptoProvider) -> Result<Self, TlsSetupError> {
        let trust = match (mode, ca) {
            (TlsMode::Disable | TlsMode::Prefer, _) | (TlsMode::Require, None) => None,
            (_, Some(pem)) => Some(Trust::given(pem)?),
            (_, None) => Some(Trust::of_the_machine()?),
        };
        Ok(Self {
            trust,
            check_name: mode == TlsMode::VerifyFull,
            algorithms: provider.signature_verification_algorithms,
        })
    }
}

impl Trust {
    fn given(pem: &str) -> Result<Self, TlsSetupError> {
        let given: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(|_| TlsSetupError::BadCa)?;
        let mut roots = RootCertStore::empty();
        for certificate in &given {
            roots.add(certificate.clone()).map_err(|_| TlsSetupError::BadCa)?;
        }
        if roots.is_empty() {
            Err(TlsSetupError::BadCa)
        } else {
            Ok(Self { roots, given })
        }
    }

    fn of_the_machine() -> Result<Self, TlsSetupError> {
        let mut roots = RootCertStore::empty();
        // Some of a machine's certificates are usually unreadable or outdated; the others are enough.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            Err(TlsSetupError::NoRoots)
        } else {
            Ok(Self {
                roots,
                given: Vec::new(),
            })
        }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(trust) = &self.trust else {
            return Ok(ServerCertVerified::assertion());
        };
        let certificate = ParsedCertificate::try_from(end_entity)?;
        if !trust.given.contains(end_entity) {
            let algorithms = self.algorithms.all;
            verify_server_cert_signed_by_trust_anchor(
                &certificate,
                &trust.roots,
                intermediates,
                now,
                algorithms,
            )?;
        }
        if self.check_name {
            verify_server_name(&certificate, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_by_name() {
        let names = ["disable", "prefer", "require", "verify-ca", "verify-full"];
        let modes = [
            TlsMode::Disable,
            TlsMode::Prefer,
            TlsMode::Require,
            TlsMode::VerifyCa,
            TlsMode::VerifyFull,
        ];
        for (name, mode) in names.into_iter().zip(modes) {
            assert_eq!(name.parse(), Ok(mode));
        }
        assert!("VERIFY-FULL".parse::<TlsMode>().is_err());
    }

    #[test]
    fn a_ca_that_is_none_is_refused() {
        for pem in [
            "",
            "hunter2",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ] {
            assert_eq!(
                client_config(TlsMode::VerifyCa, Some(pem)).unwrap_err(),
                TlsSetupError::BadCa
            );
        }
        assert!(client_config(TlsMode::Disable, Some("not looked at")).is_ok());
    }

    /// The output of `openssl req -x509`, which most manually configured servers use: a CA that is itself the server.
    #[test]
    fn a_self_signed_server_is_its_own_ca() {
        let mut params = rcgen::CertificateParams::new(vec!["db.example".to_owned()]).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let own = params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
        let verify = |mode, ca: &str, name: &'static str| {
            let verifier = Verifier::new(mode, Some(ca), &aws_lc_rs::default_provider()).unwrap();
            let name = ServerName::try_from(name).unwrap();
            verifier
                .verify_server_cert(own.der(), &[], &name, &[], UnixTime::now())
                .is_ok()
        };
        assert!(verify(TlsMode::VerifyFull, &own.pem(), "db.example"));
        assert!(!verify(TlsMode::VerifyFull, &own.pem(), "other.example"));
        assert!(verify(TlsMode::VerifyCa, &own.pem(), "other.example"));
        let stranger = params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
        assert!(!verify(TlsMode::VerifyCa, &stranger.pem(), "db.example"));
    }
}
