//! Connection parameters with libpq's names; both text formats fill the same table.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio_postgres::config::ChannelBinding;

use crate::connection_config::{ConnectionConfig, ConnectionConfigError, DEFAULT_PORT};
use crate::tls::TlsMode;

/// The supported parameters. Others are rejected: ignoring `sslcert` would be a surprise.
const KNOWN: &[&str] = &[
    "host",
    "port",
    "dbname",
    "user",
    "password",
    "sslmode",
    "sslrootcert",
    "connect_timeout",
    "options",
    "application_name",
    "channel_binding",
];

pub(super) fn known() -> String {
    KNOWN.join(", ")
}

/// Parameters read so far. A later value replaces an earlier one, as in libpq.
#[derive(Default)]
pub(super) struct Settings(BTreeMap<&'static str, String>);

impl Settings {
    pub(super) fn set(&mut self, name: &str, value: String) -> Result<(), ConnectionConfigError> {
        // What JDBC users write; libpq accepts it too.
        if (name, value.as_str()) == ("ssl", "true") {
            return self.set("sslmode", "require".to_owned());
        }
        let name = KNOWN
            .iter()
            .find(|known| **known == name)
            .ok_or(ConnectionConfigError::UnknownParameter)?;
        self.0.insert(name, value);
        Ok(())
    }

    pub(super) fn into_target(mut self) -> Result<ConnectionConfig, ConnectionConfigError> {
        // An empty value means the default, as in libpq.
        self.0.retain(|_, value| !value.is_empty());
        let mut take = |name| self.0.remove(name);

        let host = take("host").ok_or(ConnectionConfigError::Missing("host"))?;
        let user = take("user").ok_or(ConnectionConfigError::Missing("user"))?;
        let database = take("dbname").unwrap_or_else(|| user.clone());
        let port = take("port").map_or(Ok(DEFAULT_PORT), |text| number("port", &text))?;
        let mut target = ConnectionConfig::new(&host, port, &database, &user)?;

        target.password = take("password").map(Into::into);
        if let Some(mode) = take("sslmode") {
            target.tls = mode.parse()?;
        }
        target.ca = take("sslrootcert").map_or(Ok(None), |text| root_certificate(text, &mut target.tls))?;
        target.connect_timeout = take("connect_timeout")
            .map(|text| number("connect_timeout", &text).map(seconds))
            .transpose()?
            .flatten();
        target.options = take("options");
        if let Some(name) = take("application_name") {
            target.application_name = name;
        }
        target.channel_binding = match take("channel_binding").as_deref() {
            None | Some("prefer") => ChannelBinding::Prefer,
            Some("disable") => ChannelBinding::Disable,
            Some("require") => ChannelBinding::Require,
            Some(_) => {
                return Err(ConnectionConfigError::Invalid(
                    "channel_binding",
                    "use disable, prefer or require",
                ));
            }
        };
        Ok(target)
    }
}

fn number<T: std::str::FromStr>(name: &'static str, text: &str) -> Result<T, ConnectionConfigError> {
    text.parse()
        .map_err(|_| ConnectionConfigError::Invalid(name, "it is not a number in range"))
}

/// For 0 libpq waits without limit; we then use the caller's limit.
fn seconds(count: u32) -> Option<Duration> {
    (count > 0).then(|| Duration::from_secs(count.into()))
}

/// PEM text, or `system` for the system's roots, which then must also be verified.
fn root_certificate(text: String, tls: &mut TlsMode) -> Result<Option<String>, ConnectionConfigError> {
    if text == "system" {
        *tls = TlsMode::VerifyFull;
        Ok(None)
    } else if text.contains("-----BEGIN CERTIFICATE-----") {
        Ok(Some(text))
    } else {
        Err(ConnectionConfigError::Invalid(
            "sslrootcert",
            "give the certificate itself (PEM), or `system`; not a path",
        ))
    }
}
