//! Escapes values for the syntax that they are written into. One function for each syntax; each is also a template
//! function.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// All characters except RFC 3986's unreserved ones. `+` is included, because some drivers read it as a space.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The same for an IPv6 address.
const RESERVED_IN_BRACKETS: &AsciiSet = &RESERVED.remove(b':');

/// A part of a URI: user, password, database, or a value of the query. A space becomes `%20`, which every driver
/// understands; libpq would read `+` as a plus sign.
pub(super) fn percent(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// The host of a URI: an IPv6 address is in brackets, so that its colons do not look like the port's.
pub(super) fn host(host: &str) -> String {
    if host.contains(':') {
        format!("[{}]", utf8_percent_encode(host, RESERVED_IN_BRACKETS))
    } else {
        percent(host)
    }
}

/// A value of a .NET connection string: in double quotes where necessary.
pub(super) fn dotnet(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// A field of a line of a password file.
pub(super) fn pgpass(text: &str) -> String {
    text.replace('\\', "\\\\").replace(':', "\\:")
}

/// A value of libpq's `key=value` form.
pub(super) fn conninfo(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// A JSON string, which is also valid YAML.
pub(super) fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// One word of a POSIX shell.
pub(super) fn shell(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
