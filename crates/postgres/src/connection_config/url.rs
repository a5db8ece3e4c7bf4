//! `postgres://user:password@host:port/database?parameter=value`, as libpq reads it.

use percent_encoding::percent_decode_str;

use crate::connection_config::ConnectionConfigError;
use crate::connection_config::settings::Settings;

/// The text after the scheme, if there is one.
pub(super) fn strip_scheme(text: &str) -> Option<&str> {
    ["postgres://", "postgresql://"]
        .iter()
        .find_map(|scheme| text.strip_prefix(scheme))
}

pub(super) fn parse(rest: &str) -> Result<Settings, ConnectionConfigError> {
    let mut settings = Settings::default();
    let (location, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = location.split_once('/').unwrap_or((location, ""));
    let (credentials, address) = match authority.split_once('@') {
        Some((credentials, address)) => (Some(credentials), address),
        None => (None, authority),
    };
    // A remaining @ belongs to a password with an unescaped delimiter: `u:p@ss@host`, `u:p/ss@host`.
    if address.contains('@') || database.contains(['@', '/']) {
        return Err(ConnectionConfigError::Unescaped);
    }
    if let Some(credentials) = credentials {
        let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
        settings.set("user", decode("user", user)?)?;
        settings.set("password", decode("password", password)?)?;
    }
    let (host, port) = split_address(address)?;
    settings.set("host", decode("host", host)?)?;
    settings.set("port", decode("port", port)?)?;
    settings.set("dbname", decode("database", database)?)?;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair
            .split_once('=')
            .ok_or(ConnectionConfigError::Invalid("query", "expected name=value"))?;
        if value.contains('@') {
            return Err(ConnectionConfigError::Unescaped);
        }
        settings.set(&decode("query", name)?, decode("query", value)?)?;
    }
    Ok(settings)
}

/// `host`, `host:port`, `[address]`, `[address]:port`.
fn split_address(address: &str) -> Result<(&str, &str), ConnectionConfigError> {
    if let Some(rest) = address.strip_prefix('[') {
        let (host, after) = rest
            .split_once(']')
            .ok_or(ConnectionConfigError::Invalid("host", "the ] is missing"))?;
        return match after.strip_prefix(':') {
            Some(port) => Ok((host, port)),
            None if after.is_empty() => Ok((host, "")),
            None => Err(ConnectionConfigError::Invalid("host", "text follows the ]")),
        };
    }
    Ok(address.split_once(':').unwrap_or((address, "")))
}

fn decode(part: &'static str, text: &str) -> Result<String, ConnectionConfigError> {
    let mut percent = text.split('%');
    percent.next();
    let escaped = |piece: &str| {
        piece
            .as_bytes()
            .get(..2)
            .is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit))
    };
    if !percent.all(escaped) {
        return Err(ConnectionConfigError::Encoding(part));
    }
    let decoded = percent_decode_str(text)
        .decode_utf8()
        .map_err(|_| ConnectionConfigError::Encoding(part))?;
    Ok(decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use secrecy::ExposeSecret;

    use super::*;
    use crate::connection_config::ConnectionConfig;
    use crate::tls::TlsMode;

    fn read(url: &str) -> Result<ConnectionConfig, ConnectionConfigError> {
        ConnectionConfig::parse(&url.into())
    }

    #[test]
    fn a_full_url() {
        let target = read(
            "postgresql://ad%40min:p%40%3A%2F%23%25@db.example:6432/my%20app?sslmode=verify-full&connect_timeout=7\
             &application_name=x&options=-c%20search_path%3Da",
        )
        .unwrap();
        assert_eq!(target.to_string(), "db.example:6432");
        assert_eq!((target.user(), target.database()), ("ad@min", "my app"));
        assert_eq!(target.password.unwrap().expose_secret(), "p@:/#%");
        assert_eq!(target.tls, TlsMode::VerifyFull);
        assert_eq!(target.connect_timeout.unwrap().as_secs(), 7);
        assert_eq!(target.options.as_deref(), Some("-c search_path=a"));
    }

    #[test]
    fn defaults() {
        let target = read("postgres://admin@[::1]").unwrap();
        assert_eq!(target.to_string(), "[::1]:5432");
        assert_eq!(target.database(), "admin");
        assert_eq!(target.tls, TlsMode::Prefer);
        assert!(target.password.is_none());
        let socket = read("postgres:///app?host=/run/postgresql&user=me").unwrap();
        assert_eq!(socket.to_string(), "/run/postgresql:5432");
        assert_eq!(read("postgres://u@h/d?ssl=true").unwrap().tls, TlsMode::Require);
    }

    #[test]
    fn mistakes() {
        let cases = [
            ("mysql://u:p@h/d", ConnectionConfigError::Form),
            ("hunter2", ConnectionConfigError::Form),
            ("postgres://u:p@ss@h/d", ConnectionConfigError::Unescaped),
            ("postgres://u:12/3@h/d", ConnectionConfigError::Unescaped),
            ("postgres://u:p?x=1@h/d", ConnectionConfigError::Unescaped),
            (
                "postgres://u:100%@h/d",
                ConnectionConfigError::Encoding("password"),
            ),
            (
                "postgres://u:%ff@h/d",
                ConnectionConfigError::Encoding("password"),
            ),
            ("postgres://u:p@/d", ConnectionConfigError::Missing("host")),
            ("postgres://h/d", ConnectionConfigError::Missing("user")),
            (
                "postgres://u@h/d?sslcert=x",
                ConnectionConfigError::UnknownParameter,
            ),
            (
                "postgres://u@h:x/d",
                ConnectionConfigError::Invalid("port", "it is not a number in range"),
            ),
            (
                "postgres://u@h:70000/d",
                ConnectionConfigError::Invalid("port", "it is not a number in range"),
            ),
        ];
        for (url, expected) in cases {
            assert_eq!(read(url).unwrap_err(), expected, "{url}");
        }
        // Parameters that name files of the operator's pod, or that change the kind of session.
        for parameter in [
            "passfile",
            "service",
            "servicefile",
            "sslkey",
            "sslcrl",
            "krbsrvname",
            "replication",
            "hostaddr",
        ] {
            let url = format!("postgres://u@h/d?{parameter}=x");
            assert_eq!(
                read(&url).unwrap_err(),
                ConnectionConfigError::UnknownParameter,
                "{url}"
            );
        }
        assert!(matches!(
            read("postgres://u@h/d?sslmode=maybe"),
            Err(ConnectionConfigError::Invalid("sslmode", _))
        ));
        assert!(matches!(
            read("postgres://u@h/d?sslrootcert=/etc/passwd"),
            Err(ConnectionConfigError::Invalid(..))
        ));
    }

    proptest! {
        #[test]
        fn every_value_survives_encoding(user in ".{1,20}", password in ".{1,20}", database in ".{1,20}") {
            prop_assume!(![&user, &password, &database].iter().any(|part| part.contains('\0')));
            let encode = |text: &str| {
                percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
            };
            let url = format!("postgres://{}:{}@h/{}", encode(&user), encode(&password), encode(&database));
            let target = read(&url).unwrap();
            prop_assert_eq!(target.user(), user);
            prop_assert_eq!(target.database(), database);
            let read = target.password.unwrap();
            prop_assert_eq!(read.expose_secret(), &password);
        }

        #[test]
        fn an_unencoded_password_never_shows(password in "[a-zA-Z0-9@/:?#%=& ]{6,20}") {
            let url = format!("postgres://user:canary{password}canary@host/db");
            let shown = match read(&url) {
                Ok(target) => format!("{target} {target:?}"),
                Err(error) => format!("{error} {error:?}"),
            };
            prop_assert!(!shown.contains("canary"), "{}", shown);
        }
    }
}
