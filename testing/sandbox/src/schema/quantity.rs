//! The canonical form of resource quantities, in which the API server stores them.

const BINARY: [(&str, u32); 6] = [
    ("Ki", 10),
    ("Mi", 20),
    ("Gi", 30),
    ("Ti", 40),
    ("Pi", 50),
    ("Ei", 60),
];
const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
/// Numbers are in billionths.
const SCALE: i32 = 9;

/// The amount in billionths; `None` if it is not a quantity.
pub(crate) fn number(text: &str) -> Option<i128> {
    let (number, suffix) = parts(text);
    let billionths = billionths(number)?;
    if let Some((_, shift)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        return billionths.checked_mul(1 << shift);
    }
    let known = DECIMAL.iter().find(|(name, _)| *name == suffix);
    let exponent = match known {
        Some((_, exponent)) => *exponent,
        None => suffix.strip_prefix(['e', 'E'])?.parse().ok()?,
    };
    shift(billionths, exponent)
}

fn parts(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-')))
        .unwrap_or(text.len());
    text.split_at(end)
}

/// Rewrites a quantity with the largest suffix that needs no fraction; `None` if it is not a quantity.
pub(crate) fn canonical(text: &str) -> Option<String> {
    let (number, suffix) = parts(text);
    let billionths = billionths(number)?;
    if let Some((_, shift)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        let value = billionths.checked_mul(1 << shift)?;
        let one = 10_i128.pow(SCALE.unsigned_abs());
        return Some(if value % one == 0 {
            binary(value / one)
        } else {
            decimal(value)
        });
    }
    if let Some((_, exponent)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some(decimal(shift(billionths, *exponent)?));
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    let value = shift(billionths, exponent)?;
    let (mantissa, exponent) = (-3..=6).rev().map(|step| step * 3).find_map(|exponent| {
        let unit = 10_i128.checked_pow(u32::try_from(exponent + SCALE).ok()?)?;
        (value % unit == 0).then_some((value / unit, exponent))
    })?;
    Some(if exponent == 0 {
        mantissa.to_string()
    } else {
        format!("{mantissa}e{exponent}")
    })
}

fn billionths(number: &str) -> Option<i128> {
    let (sign, digits) = match number.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty()
        || !(whole.to_owned() + fraction).bytes().all(|b| b.is_ascii_digit())
    {
        return None;
    }
    let places = SCALE.unsigned_abs() as usize;
    let kept: String = fraction
        .chars()
        .chain(std::iter::repeat('0'))
        .take(places)
        .collect();
    let round_up = fraction.chars().skip(places).any(|digit| digit != '0');
    let value: i128 = format!("{whole}{kept}").parse().ok()?;
    Some(sign * (value + i128::from(round_up)))
}

fn shift(value: i128, exponent: i32) -> Option<i128> {
    let power = 10_i128.checked_pow(exponent.unsigned_abs())?;
    if exponent >= 0 {
        value.checked_mul(power)
    } else {
        Some(value / power + i128::from(value % power > 0))
    }
}

fn binary(value: i128) -> String {
    let best = BINARY
        .iter()
        .rev()
        .find(|(_, shift)| value != 0 && value % (1 << shift) == 0);
    best.map_or_else(
        || value.to_string(),
        |(suffix, shift)| format!("{}{suffix}", value >> shift),
    )
}

fn decimal(value: i128) -> String {
    let unit = |exponent: i32| 10_i128.pow((exponent + SCALE).unsigned_abs());
    let best = DECIMAL
        .iter()
        .rev()
        .find(|(_, exponent)| value != 0 && value % unit(*exponent) == 0);
    best.map_or_else(
        || "0".to_owned(),
        |(suffix, exponent)| format!("{}{suffix}", value / unit(*exponent)),
    )
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn the_largest_suffix_without_a_fraction() {
        for (given, wanted) in [
            ("1", "1"),
            ("0.5", "500m"),
            ("1000m", "1"),
            ("1.5Gi", "1536Mi"),
            ("1024Mi", "1Gi"),
            ("1000", "1k"),
            ("0", "0"),
            ("0Mi", "0"),
            ("100Ki", "100Ki"),
            ("1e3", "1e3"),
            ("12e6", "12e6"),
            ("0.1Ki", "102400m"),
            ("-1.5", "-1500m"),
            ("10Gi", "10Gi"),
            ("250u", "250u"),
        ] {
            assert_eq!(canonical(given).as_deref(), Some(wanted), "{given}");
        }
        for wrong in ["", "Gi", "1Xi", "1.2.3", "abc"] {
            assert_eq!(canonical(wrong), None, "{wrong}");
        }
    }
}
