//! Durations as people write them in manifests: `90s`, `10m`, `1h30m`.

use std::time::Duration;

/// The pattern in the schema. It accepts at most about 45,000 years, so sums of durations do not overflow.
pub const PATTERN: &str = "^([0-9]{1,8}(h|m|s)){1,4}$";

/// The longest duration that the operator uses. Longer values are cut to it.
pub const LONGEST: Duration = Duration::from_hours(100 * 365 * 24);

/// Parses a duration that matches [`PATTERN`], cut to [`LONGEST`]; `None` for anything else.
pub fn parse(text: &str) -> Option<Duration> {
    let mut total: u64 = 0;
    let mut digits = String::new();
    for character in text.chars() {
        let unit = match character {
            '0'..='9' => {
                digits.push(character);
                continue;
            }
            'h' => 3600,
            'm' => 60,
            's' => 1,
            _ => return None,
        };
        let number: u64 = std::mem::take(&mut digits).parse().ok()?;
        total = total.saturating_add(number.saturating_mul(unit));
    }
    (digits.is_empty() && !text.is_empty()).then_some(Duration::from_secs(total).min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_what_the_schema_accepts_and_nothing_else() {
        for (text, seconds) in [
            ("10m", 600),
            ("1h30m", 5400),
            ("1s", 1),
            ("1h1h", 7200),
            ("0s", 0),
        ] {
            assert_eq!(parse(text), Some(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "10", "m", "1d", "1.5h", "-1s", "99999999999999999999h"] {
            assert_eq!(parse(text), None, "{text}");
        }
        for text in [
            "99999999h99999999h99999999h99999999h",
            "18446744073709551615s",
            "9223372036854775807h",
        ] {
            assert_eq!(parse(text), Some(LONGEST), "{text}");
        }
    }
}
