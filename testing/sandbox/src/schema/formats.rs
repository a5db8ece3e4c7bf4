//! The string formats of CRD schemas. Formats that are not listed are not checked, as in the original.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use regex::Regex;

fn pattern(text: &str) -> Regex {
    // The patterns are constants, and the test below covers each.
    Regex::new(text).unwrap_or_else(|_| Regex::new("").unwrap_or_else(|_| unreachable!()))
}

static UUID: LazyLock<Regex> =
    LazyLock::new(|| pattern("^(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"));
static EMAIL: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[^@\s]+@[^@\s]+$"));
static HOSTNAME: LazyLock<Regex> = LazyLock::new(|| {
    // One label, or several labels ending with a top-level domain.
    pattern(
        r"^([a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?|([a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)+[a-zA-Z]{2,63})$",
    )
});
static MAC: LazyLock<Regex> = LazyLock::new(|| pattern("^([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$"));
static DURATION: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^[-+]?(0|([0-9]*\.?[0-9]+\s*(ns|us|µs|μs|ms|s|m|h|d|w)[a-z]*\s*)+)$"));

/// Whether a text has the named format.
pub(crate) fn holds(format: &str, text: &str) -> bool {
    match format {
        "date-time" | "datetime" => text.parse::<jiff::Timestamp>().is_ok(),
        "date" => text.parse::<jiff::civil::Date>().is_ok(),
        "duration" => DURATION.is_match(text),
        "uuid" | "uuid3" | "uuid4" | "uuid5" => UUID.is_match(text),
        "email" => EMAIL.is_match(text),
        "hostname" => HOSTNAME.is_match(text),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => text.split_once('/').is_some_and(|(ip, bits)| {
            ip.parse::<IpAddr>().is_ok() && bits.parse::<u8>().is_ok_and(|n| n <= 128)
        }),
        "mac" => MAC.is_match(text),
        "byte" => STANDARD.decode(text).is_ok(),
        "uri" => http::Uri::try_from(text).is_ok_and(|uri| uri.scheme().is_some() || text.starts_with('/')),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::holds;

    #[test]
    fn formats_are_checked() {
        for (format, good, bad) in [
            ("date-time", "2026-01-02T03:04:05Z", "yesterday"),
            ("date", "2026-01-02", "2026-13-02"),
            ("duration", "1h30m", "soon"),
            ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123"),
            ("email", "a@b.example", "a"),
            ("hostname", "db.example.com", "-x-"),
            ("ipv4", "127.0.0.1", "::1"),
            ("ipv6", "::1", "127.0.0.1"),
            ("cidr", "10.0.0.0/8", "10.0.0.0"),
            ("hostname", "x", "a.b"),
            ("mac", "00:11:22:aa:bb:cc", "00:11"),
            ("byte", "YQ==", "???"),
            ("uri", "https://example.com/x", "not a uri"),
        ] {
            assert!(holds(format, good), "{format} {good}");
            assert!(!holds(format, bad), "{format} {bad}");
        }
    }
}
