//! libpq's `keyword=value` format: `host=db user=admin password='it''s'`.

use std::iter::Peekable;
use std::str::Chars;

use crate::connection_config::ConnectionConfigError;
use crate::connection_config::settings::Settings;

pub(super) fn parse(text: &str) -> Result<Settings, ConnectionConfigError> {
    let mut settings = Settings::default();
    let mut chars = text.chars().peekable();
    skip_space(&mut chars);
    if chars.peek().is_none() {
        return Err(ConnectionConfigError::Form);
    }
    while chars.peek().is_some() {
        let name = keyword(&mut chars)?;
        let value = value(&mut chars)?;
        settings.set(&name, value)?;
        skip_space(&mut chars);
    }
    Ok(settings)
}

fn skip_space(chars: &mut Peekable<Chars<'_>>) {
    while chars.next_if(char::is_ascii_whitespace).is_some() {}
}

fn keyword(chars: &mut Peekable<Chars<'_>>) -> Result<String, ConnectionConfigError> {
    let mut name = String::new();
    while let Some(c) = chars.next_if(|c| c.is_ascii_lowercase() || *c == '_') {
        name.push(c);
    }
    skip_space(chars);
    match chars.next() {
        Some('=') if !name.is_empty() => {
            skip_space(chars);
            Ok(name)
        }
        _ => Err(ConnectionConfigError::Form),
    }
}

/// Up to a space, or between single quotes; a backslash escapes the next character.
fn value(chars: &mut Peekable<Chars<'_>>) -> Result<String, ConnectionConfigError> {
    let quoted = chars.next_if_eq(&'\'').is_some();
    let mut value = String::new();
    loop {
        match chars.next() {
            None if quoted => {
                return Err(ConnectionConfigError::Invalid(
                    "connection string",
                    "a quote is not closed",
                ));
            }
            None => return Ok(value),
            Some('\'') if quoted => return Ok(value),
            Some(c) if !quoted && c.is_ascii_whitespace() => return Ok(value),
            Some('\\') => value.extend(chars.next()),
            Some(c) => value.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use crate::connection_config::{ConnectionConfig, ConnectionConfigError};
    use crate::tls::TlsMode;

    #[test]
    fn quotes_and_escapes() {
        let text =
            r"host = db.example port=6432 user=admin password='it\'s a \\ b' dbname=app sslmode=require";
        let target = ConnectionConfig::parse(&text.into()).unwrap();
        assert_eq!(target.to_string(), "db.example:6432");
        assert_eq!(target.password.unwrap().expose_secret(), r"it's a \ b");
        assert_eq!((target.database.as_str(), target.tls), ("app", TlsMode::Require));
    }

    #[test]
    fn mistakes() {
        let cases = [
            ("", ConnectionConfigError::Form),
            ("host", ConnectionConfigError::Form),
            ("=x", ConnectionConfigError::Form),
            ("host=h user=u service=x", ConnectionConfigError::UnknownParameter),
            (
                "host=h user='u",
                ConnectionConfigError::Invalid("connection string", "a quote is not closed"),
            ),
            ("user=u", ConnectionConfigError::Missing("host")),
        ];
        for (text, expected) in cases {
            assert_eq!(
                ConnectionConfig::parse(&text.into()).unwrap_err(),
                expected,
                "{text}"
            );
        }
    }
}
