//! How a value is written into a text that gives some characters a meaning. One function a syntax; each is also
//! a function of the templates.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Everything but what RFC 3986 calls unreserved. `+` is among it: some drivers read it as a space.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The same for an address of colons.
const RESERVED_IN_BRACKETS: &AsciiSet = &RESERVED.remove(b':');

/// A part of a URI: user, password, database, or a value of the query. A space is `%20`, which every driver
/// understands; a `+` would be a plus sign to libpq.
pub(super) fn percent(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// The host of a URI: an IPv6 address stands in brackets, so that its colons are not taken for the port's.
pub(super) fn host(host: &str) -> String {
    if host.contains(':') {
        format!("[{}]", utf8_percent_encode(host, RESERVED_IN_BRACKETS))
    } else {
        percent(host)
    }
}

/// A value of a .NET connection string: in double quotes where it needs them.
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

/// A string of JSON, which YAML reads as well.
pub(super) fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// One word of a POSIX shell.
pub(super) fn shell(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
