//! The input of the components: the spec, and everything that was read or generated for the project.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use stanchion_api::SupabaseProjectSpec;
use stanchion_api::duration;
use stanchion_api::instance::TlsMode;
use stanchion_kernel::tls_mode;

use super::SecretDigests;
use crate::database::{Login, Names};

/// The mount path of the database's authority.
pub(super) const CA_FOLDER: &str = "/etc/stanchion/database";
/// The volume of the database's authority.
pub(super) const CA_VOLUME: &str = "database-ca";
/// Characters that need no escaping anywhere.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'_').remove(b'-').remove(b'.');

/// A project, resolved.
pub struct Project<'a> {
    /// Its name, the prefix of its children's names.
    pub name: &'a str,
    /// The user's spec.
    pub spec: &'a SupabaseProjectSpec,
    pub database: &'a Address,
    pub logins: &'a Names,
    pub bucket: &'a Bucket,
    /// Digests of the Secrets that pods use.
    pub secrets: &'a SecretDigests,
    /// Values of the user's `ConfigMaps` that pods use.
    pub config: &'a ConfigMaps,
}

/// `ConfigMaps` by name, with their values.
pub(crate) type ConfigMaps = BTreeMap<String, BTreeMap<String, String>>;

/// The address of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Host name or address.
    pub host: String,
    pub port: u16,
    /// Database.
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The Secret with the credentials.
    pub secret: String,
    /// The server's URL.
    pub endpoint: String,
    pub region: String,
    pub name: String,
}

impl Project<'_> {
    /// The name of the Secret with the project's keys.
    pub(crate) fn key_secret(&self) -> String {
        format!("{}-jwt", self.name)
    }

    /// The host name of another component.
    pub fn host(&self, component: &str) -> String {
        format!("{}-{component}", self.name)
    }

    /// The public URL of the project; if the spec has none, the gateway's URL in the cluster.
    pub(crate) fn public_url(&self) -> String {
        self.stated_url()
            .unwrap_or_else(|| format!("http://{}:8000", self.host("kong")))
    }

    /// The public URL of the project, if the spec sets it or implies it.
    pub(crate) fn stated_url(&self) -> Option<String> {
        let stated = self
            .spec
            .studio
            .public_url
            .as_deref()
            .filter(|url| !url.is_empty());
        let ingress = self.spec.ingress.as_ref().filter(|ingress| ingress.enabled);
        let by_ingress = || {
            let ingress = ingress?;
            let host = ingress.host.as_deref().filter(|host| !host.is_empty())?;
            let secret = ingress.tls_secret_name.as_deref();
            Some(url(secret.is_some_and(|name| !name.is_empty()), host))
        };
        let by_gateway = || {
            let gateway = self.spec.gateway.as_ref()?;
            let host = gateway.hostnames.iter().find(|host| !host.starts_with('*'))?;
            Some(url(gateway.tls, host))
        };
        stated
            .map(|url| url.trim_end_matches('/').to_owned())
            .or_else(by_ingress)
            .or_else(by_gateway)
    }

    /// A connection URL for a login. The password is `$(DB_PASSWORD)`, which Kubernetes expands; everything else is
    /// escaped, so a database may have any name.
    pub(crate) fn database_url(&self, login: Login, parameters: &[(&str, &str)]) -> String {
        let escaped = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let host = self.host_in_url();
        let parameters: Vec<String> = parameters
            .iter()
            .map(|(name, value)| format!("{name}={}", value.replace(' ', "%20")))
            .collect();
        let question = if parameters.is_empty() { "" } else { "?" };
        format!(
            "postgres://{}:$(DB_PASSWORD)@{host}:{}/{}{question}{}",
            escaped(&self.logins.of(login)),
            self.database.port,
            escaped(&self.database.name),
            parameters.join("&"),
        )
    }

    /// The same for the internal database, for Elixir drivers, which either encrypt or do not.
    pub(crate) fn internal_url(&self, scheme: &str, login: Login) -> String {
        let plain = |text: &str| utf8_percent_encode(text, PLAIN).to_string();
        format!(
            "{scheme}://{}:$(DB_PASSWORD)@{}:{}/{}{}",
            plain(&self.logins.of(login)),
            self.host_in_url(),
            self.database.port,
            plain(&self.logins.internal_database()),
            if self.encrypts() { "?ssl=true" } else { "" },
        )
    }

    fn host_in_url(&self) -> String {
        if self.database.host.contains(':') {
            format!("[{}]", self.database.host)
        } else {
            self.database.host.clone()
        }
    }

    /// The database's name for a component that inserts it into a URL unchanged.
    pub(crate) fn database_in_url(&self) -> String {
        utf8_percent_encode(&self.database.name, PLAIN).to_string()
    }

    /// The lifetime of a user's token.
    pub(crate) fn token_seconds(&self) -> u64 {
        duration::parse(&self.spec.jwt.expiry).map_or(3600, |expiry| expiry.as_secs())
    }

    /// Whether a Secret has a key.
    pub fn has(&self, secret: &str, key: &str) -> bool {
        self.secrets.keys_of(secret).any(|known| known == key)
    }

    /// libpq's `sslmode`.
    pub(crate) fn ssl_mode(&self) -> &'static str {
        tls_mode(self.spec.database.ssl_mode).as_str()
    }

    /// The same for a driver that only distinguishes encrypted and unencrypted: `prefer` allows unencrypted.
    pub fn encrypts(&self) -> bool {
        !matches!(self.spec.database.ssl_mode, TlsMode::Disable | TlsMode::Prefer)
    }

    /// Whether the server's certificate is verified with the authorities of the component's image, because the spec
    /// names none.
    pub(crate) fn trusts_its_image(&self) -> bool {
        let database = &self.spec.database;
        database.ca_secret_ref.is_none()
            && matches!(database.ssl_mode, TlsMode::VerifyCa | TlsMode::VerifyFull)
    }

    /// `sslmode` of node-postgres, which has three: unencrypted, encrypted, and encrypted with a verified name and
    /// authority.
    pub(crate) fn node_ssl_mode(&self, with_anybody: &'static str) -> &'static str {
        let checked = self.spec.database.ca_secret_ref.is_some() || self.trusts_its_image();
        match (self.encrypts(), checked) {
            (false, _) => "disable",
            (true, false) => with_anybody,
            (true, true) => "verify-full",
        }
    }

    /// The file with the certificate of the database's authority.
    pub(crate) fn ca_file(&self) -> Option<String> {
        let ca = self.spec.database.ca_secret_ref.as_ref()?;
        Some(format!("{CA_FOLDER}/{}", ca.key))
    }
}

fn url(tls: bool, host: &str) -> String {
    let scheme = if tls { "https" } else { "http" };
    format!("{scheme}://{host}")
}

#[cfg(test)]
pub(crate) mod tests;
