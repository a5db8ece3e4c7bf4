//! Values that follow the name of a credential: `password=…`, `"token": "…"`, `PASSWORD '…'`, `Authorization: Bearer …`.

use std::cmp::Reverse;

use super::BLANK;

/// Names of credentials. An underscore and more may follow, as in `secret_access_key`.
const NAMES: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "api_key",
    "api-key",
    "accesskey",
    "access_key",
    "access-key",
    "privatekey",
    "private_key",
    "private-key",
    "authorization",
    "bearer",
];

/// The text without the values.
pub(super) fn blanked(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let mut shown = String::with_capacity(text.len());
    let mut from = 0;
    while let Some((at, name)) = NAMES
        .iter()
        .filter_map(|name| lower.get(from..)?.find(name).map(|at| (from + at, *name)))
        .min_by_key(|(at, name)| (*at, Reverse(name.len())))
    {
        let after = at + name.len();
        let tail = text.get(after..).unwrap_or_default();
        let Some((value, length)) = value(name, tail) else {
            shown.push_str(text.get(from..after).unwrap_or_default());
            from = after;
            continue;
        };
        let start = text.len() - value.len();
        shown.push_str(text.get(from..start).unwrap_or_default());
        let given = value.get(..length).unwrap_or_default();
        // "cannot read the password secret: Secret x does not exist" is a sentence about a kind.
        if ["Secret", "secrets", "ConfigMap", "configmaps"].contains(&given) {
            shown.push_str(given);
        } else if length > 0 {
            shown.push_str(BLANK);
        }
        from = start + length;
    }
    shown.push_str(text.get(from..).unwrap_or_default());
    shown
}

/// The rest of the text from the value on, and the value's length. `None` if no value follows this name.
fn value<'a>(name: &str, tail: &'a str) -> Option<(&'a str, usize)> {
    if name == "bearer" {
        // "a bearer token is required" is a sentence.
        let value = tail.strip_prefix(' ')?;
        let length = unquoted(value);
        let word = value.get(..length)?;
        return (!word.chars().all(|c| c.is_ascii_lowercase())).then_some((value, length));
    }
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let rest = match tail.strip_prefix('_') {
        Some(rest) => rest.trim_start_matches(part),
        None => tail,
    };
    if let Some(literal) = literal(name, rest) {
        return Some(literal);
    }
    let rest = rest.trim_start_matches(['"', '\'', '\\']).trim_start();
    let value = rest.strip_prefix(['=', ':'])?;
    let value = value.trim_start().trim_start_matches('\\');
    Some(match value.chars().next() {
        Some('"') => {
            let value = value.get(1..)?;
            (value, value.find(['"', '\\']).unwrap_or(line(value)))
        }
        Some('\'') => {
            let value = value.get(1..)?;
            (value, quoted(value))
        }
        // The scheme and what follows it.
        _ if name == "authorization" => (value, value.find(['"', '\'', '\\', '\n']).unwrap_or(value.len())),
        _ => (value, unquoted(value)),
    })
}

/// `PASSWORD 'x'` in SQL.
fn literal<'a>(name: &str, rest: &'a str) -> Option<(&'a str, usize)> {
    let words = rest.strip_prefix(char::is_whitespace)?.trim_start();
    let value = words.trim_start_matches(['E', 'e']).strip_prefix('\'')?;
    name.starts_with("pass").then(|| (value, quoted(value)))
}

/// The length up to the single quote that ends a text; a doubled one belongs to it.
fn quoted(value: &str) -> usize {
    let mut characters = value.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        if character == '\'' && characters.next_if(|(_, next)| *next == '\'').is_none() {
            return at;
        }
    }
    line(value)
}

fn unquoted(value: &str) -> usize {
    let end = value.find([' ', '\t', '\n', '&', ',', ';', '}', ')']);
    end.unwrap_or(line(value))
}

fn line(value: &str) -> usize {
    value.trim_end_matches('\n').len()
}

#[cfg(test)]
mod tests {
    use super::super::text;

    #[test]
    fn a_value_after_the_name_of_a_credential_is_blanked_out() {
        for (given, shown) in [
            ("secret_access_key=hunter2 x", "secret_access_key=[REDACTED] x"),
            (
                "AWS_SECRET_ACCESS_KEY: hunter2",
                "AWS_SECRET_ACCESS_KEY: [REDACTED]",
            ),
            (
                "\"secretAccessKey\": \"hunter2\"",
                "\"secretAccessKey\": \"[REDACTED]\"",
            ),
            ("api-key=hunter2", "api-key=[REDACTED]"),
            ("x-api-key: hunter2, y", "x-api-key: [REDACTED], y"),
            ("ssl passphrase = hunter2", "ssl passphrase = [REDACTED]"),
            ("Authorization: Bearer hunter2", "Authorization: [REDACTED]"),
            (
                "{\"authorization\": \"Basic hunter2==\"} y",
                "{\"authorization\": \"[REDACTED]\"} y",
            ),
            ("sent Bearer Hunter2, y", "sent Bearer [REDACTED], y"),
            (
                "ALTER ROLE a PASSWORD 'it''s hunter2' VALID",
                "ALTER ROLE a PASSWORD '[REDACTED]' VALID",
            ),
            ("password E'hunter2';", "password E'[REDACTED]';"),
            ("password='hunter2", "password='[REDACTED]"),
        ] {
            assert_eq!(text(given), shown);
        }
    }

    #[test]
    fn a_sentence_stays_readable() {
        for sentence in [
            r#"cannot read password secret: Secret "billing" does not exist"#,
            r#"cannot read password secret: secrets "billing" not found"#,
            "a bearer token is required",
            "secret 'billing' is in use",
            "the password of role \"app\" was changed",
            "stanchion_requests_total{resource=\"secrets\",code=\"200\"} 9",
        ] {
            assert_eq!(text(sentence), sentence);
        }
        assert_eq!(
            text("secret: Secret1, token=ConfigMaps"),
            "secret: [REDACTED], token=[REDACTED]"
        );
    }
}
