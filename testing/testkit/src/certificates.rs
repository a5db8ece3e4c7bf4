//! A certificate authority for one test, and the server certificates it issues.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

use crate::error::{Attempt, Error};

/// A certificate authority that lives as long as the test.
pub struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// A new authority with a new key.
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, "Stanchion test authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("generate a key");
        let pem = params.self_signed(&key).expect("sign the authority").pem();
        Self {
            pem,
            issuer: Issuer::new(params, key),
        }
    }

    /// The CA certificate in PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Certificate and key, in PEM, of a server with these `names` (DNS names or addresses).
    pub fn issue(&self, names: &[String]) -> (String, String) {
        let mut params = CertificateParams::new(names).expect("names of a server");
        params
            .distinguished_name
            .push(DnType::CommonName, names.first().map_or("server", String::as_str));
        let key = KeyPair::generate().expect("generate a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("sign a certificate");
        (certificate.pem(), key.serialize_pem())
    }

    /// Writes what [`Authority::issue`] returns to `server.crt` and `server.key` in `directory`.
    pub(crate) fn issue_into(&self, directory: &Path, names: &[String]) -> Result<(PathBuf, PathBuf), Error> {
        let (certificate, key) = self.issue(names);
        let certificate = write(directory.join("server.crt"), &certificate, 0o644)?;
        let key = write(directory.join("server.key"), &key, 0o600)?;
        Ok((certificate, key))
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

/// A fresh private key and its public key in PEM, for signing the tokens of service accounts.
pub(crate) fn signing_keys() -> (String, String) {
    let key = KeyPair::generate().expect("generate a key");
    (key.serialize_pem(), key.public_key_pem())
}

/// Writes a file with the given mode and returns its path.
pub(crate) fn write(path: PathBuf, content: &str, mode: u32) -> Result<PathBuf, Error> {
    fs::write(&path, content)
        .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(mode)))
        .attempting(|| format!("write {}", path.display()))?;
    Ok(path)
}
