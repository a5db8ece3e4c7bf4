//! A server, a database and the credentials.
//!
//! A target contains credentials, so it prints only `host:port`, and parse errors never repeat the input: a URL with an
//! unescaped `@` has half a password in place of the host. That is why this is not `tokio_postgres::Config`, whose errors can
//! repeat the input.

mod fingerprint;
mod keywords;
mod settings;
mod url;

use std::fmt;
use std::time::Duration;

use secrecy::SecretString;
use tokio_postgres::config::ChannelBinding;

pub use fingerprint::Fingerprint;

use crate::tls::TlsMode;

/// PostgreSQL's port.
pub const DEFAULT_PORT: u16 = 5432;
/// The application name of our sessions, for the server's administrators.
pub(crate) const APPLICATION_NAME: &str = "stanchion";

/// A database on a server, and the credentials for it.
#[derive(Clone)]
pub struct ConnectionConfig {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) database: String,
    pub(crate) user: String,
    pub(crate) password: Option<SecretString>,
    pub(crate) tls: TlsMode,
    pub(crate) ca: Option<String>,
    pub(crate) application_name: String,
    pub(crate) options: Option<String>,
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) channel_binding: ChannelBinding,
    pub(crate) set_role: Option<String>,
    /// The operator's administrator named it, and not an object.
    pub(crate) of_administrator: bool,
    /// The namespace of the object that named it.
    pub(crate) named_in: Option<String>,
}

/// Why a text is not a valid target. Never repeats the input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionConfigError {
    /// Neither `postgres://…`, `postgresql://…` nor `host=… user=…`.
    #[error("not a connection string: expected postgres://USER:PASSWORD@HOST:PORT/DATABASE or host=… user=…")]
    Form,
    /// A required part is missing.
    #[error("the {0} is missing")]
    Missing(&'static str),
    /// A part is invalid.
    #[error("the {0} is not valid: {1}")]
    Invalid(&'static str, &'static str),
    /// `%` without two hexadecimal digits, or bytes that are not UTF-8.
    #[error("the {0} is not percent-encoded correctly")]
    Encoding(&'static str),
    /// The URL is ambiguous because user or password contain unescaped delimiters.
    #[error(
        "user and password must be percent-encoded: write @ as %40, / as %2F, : as %3A, ? as %3F, % as %25"
    )]
    Unescaped,
    /// A parameter that we would have to ignore.
    #[error("unknown connection parameter; known are: {}", settings::known())]
    UnknownParameter,
}

impl ConnectionConfig {
    /// A target with the four required parts. TLS is used if the server offers it.
    pub fn new(host: &str, port: u16, database: &str, user: &str) -> Result<Self, ConnectionConfigError> {
        let target = Self {
            host: host.to_owned(),
            port,
            database: database.to_owned(),
            user: user.to_owned(),
            password: None,
            tls: TlsMode::Prefer,
            ca: None,
            application_name: APPLICATION_NAME.to_owned(),
            options: None,
            connect_timeout: None,
            channel_binding: ChannelBinding::Prefer,
            set_role: None,
            of_administrator: false,
            named_in: None,
        };
        target.checked()
    }

    /// Parses a connection URL, or libpq's `keyword=value` format.
    pub fn parse(text: &SecretString) -> Result<Self, ConnectionConfigError> {
        use secrecy::ExposeSecret;
        let text = text.expose_secret().trim();
        let settings = match url::strip_scheme(text) {
            Some(rest) => url::parse(rest)?,
            None => keywords::parse(text)?,
        };
        settings.into_target()?.checked()
    }

    /// Whether it has a password.
    pub fn has_password(&self) -> bool {
        self.password.is_some()
    }

    pub(crate) fn without_password(&self) -> Self {
        Self {
            password: None,
            ..self.clone()
        }
    }

    /// Adds the password.
    #[must_use]
    pub fn with_password(mut self, password: SecretString) -> Self {
        self.password = Some(password);
        self
    }

    /// Sets the TLS mode; `ca` is PEM text, without it the system's roots apply.
    #[must_use]
    pub fn with_tls(mut self, mode: TlsMode, ca: Option<String>) -> Self {
        self.tls = mode;
        self.ca = ca;
        self
    }

    /// The same server and credentials, another database.
    pub fn with_database(&self, database: &str) -> Result<Self, ConnectionConfigError> {
        Self {
            database: database.to_owned(),
            ..self.clone()
        }
        .checked()
    }

    /// The operator's own administrator names this server in a flag, and not in an object: it may also be one of the
    /// operator's own addresses, such as a proxy beside it.
    #[must_use]
    pub fn named_by_administrator(mut self) -> Self {
        self.of_administrator = true;
        self
    }

    /// An object in this namespace names the server: the answers of all servers of one namespace have a common limit.
    #[must_use]
    pub fn named_in(mut self, namespace: &str) -> Self {
        self.named_in = Some(namespace.to_owned());
        self
    }

    /// Runs all statements as another role: `SET ROLE` right after connecting.
    #[must_use]
    pub fn with_set_role(mut self, role: Option<String>) -> Self {
        self.set_role = role;
        self
    }

    /// The application name in `pg_stat_activity`.
    #[must_use]
    pub fn with_application_name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.application_name);
        self
    }

    /// The host, or the directory of the socket.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The database.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// The role that logs in.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The connect timeout that the author of the target has set.
    pub fn connect_timeout(&self) -> Option<Duration> {
        self.connect_timeout
    }

    /// The TLS mode.
    pub fn tls(&self) -> TlsMode {
        self.tls
    }

    /// The certificates of the CA that signs the server's, if it was given: public data.
    pub fn ca(&self) -> Option<&str> {
        self.ca.as_deref()
    }

    /// Whether it is a local socket, which does not use TLS.
    pub(crate) fn is_local_socket(&self) -> bool {
        self.host.starts_with('/')
    }

    fn checked(self) -> Result<Self, ConnectionConfigError> {
        for (name, value) in [
            ("host", &self.host),
            ("database", &self.database),
            ("user", &self.user),
        ] {
            if value.is_empty() {
                return Err(ConnectionConfigError::Missing(name));
            }
            if value.contains('\0') {
                return Err(ConnectionConfigError::Invalid(name, "it contains NUL"));
            }
        }
        if self.port == 0 {
            return Err(ConnectionConfigError::Invalid(
                "port",
                "it must be a number from 1 to 65535",
            ));
        }
        if self.host.contains(',') {
            return Err(ConnectionConfigError::Invalid(
                "host",
                "one host is expected, not a list",
            ));
        }
        let plain = |c: char| c.is_alphanumeric() || "-_.:%".contains(c);
        if !self.is_local_socket() && !self.host.chars().all(plain) {
            return Err(ConnectionConfigError::Invalid(
                "host",
                "it is neither a name nor an address",
            ));
        }
        Ok(self)
    }
}

/// Prints only `host:port`.
impl fmt::Display for ConnectionConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Debug for ConnectionConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_host_and_port_only() {
        let target = ConnectionConfig::new("db.example", 5432, "app", "admin")
            .unwrap()
            .with_password("hunter2".into());
        assert_eq!(target.to_string(), "db.example:5432");
        assert_eq!(format!("{target:?}"), "Target(db.example:5432)");
        assert_eq!(
            ConnectionConfig::new("::1", 5433, "app", "admin")
                .unwrap()
                .to_string(),
            "[::1]:5433"
        );
    }

    #[test]
    fn refuses_what_cannot_work() {
        let new = ConnectionConfig::new;
        assert_eq!(
            new("", 1, "d", "u").unwrap_err(),
            ConnectionConfigError::Missing("host")
        );
        assert_eq!(
            new("h", 1, "", "u").unwrap_err(),
            ConnectionConfigError::Missing("database")
        );
        assert_eq!(
            new("h", 1, "d", "").unwrap_err(),
            ConnectionConfigError::Missing("user")
        );
        for host in ["a,b", "a b", "u:p@h", "h/x", "h\n"] {
            assert!(
                matches!(
                    new(host, 1, "d", "u"),
                    Err(ConnectionConfigError::Invalid("host", _))
                ),
                "{host:?}"
            );
        }
        assert!(matches!(
            new("h", 0, "d", "u"),
            Err(ConnectionConfigError::Invalid("port", _))
        ));
        assert!(matches!(
            new("h", 1, "d\0", "u"),
            Err(ConnectionConfigError::Invalid("database", _))
        ));
    }

    #[test]
    fn another_database_keeps_the_rest() {
        let target = ConnectionConfig::new("h", 1, "a", "u")
            .unwrap()
            .with_set_role(Some("owner".into()));
        let other = target.with_database("b").unwrap();
        assert_eq!(
            (other.database(), other.set_role.as_deref()),
            ("b", Some("owner"))
        );
    }
}
