//! Canonical form of password expiry timestamps.
//!
//! The same point in time can be written with any offset and any number of trailing zeros. Both sides of the diff use
//! one form, UTC with at most microseconds (PostgreSQL's precision), so that `2030-01-01T00:00:00+02:00` does not cause
//! an ALTER on every run.

use jiff::{Timestamp, Unit};

/// The canonical form of a timestamp, or why the text is not a timestamp.
pub(crate) fn canonical_timestamp(text: &str) -> Result<String, String> {
    let shape =
        "expected an ISO 8601 timestamp such as \"2030-12-31T00:00:00Z\" or \"2030-12-31T00:00:00+02:00\"";
    let bytes = text.as_bytes();
    let has_time =
        bytes.get(10) == Some(&b'T') && bytes.get(13) == Some(&b':') && bytes.get(16) == Some(&b':');
    if !has_time {
        return Err(shape.to_owned());
    }
    let moment: Timestamp = text.parse().map_err(|_| shape.to_owned())?;
    if moment < Timestamp::UNIX_EPOCH {
        return Err("it lies before 1970".to_owned());
    }
    moment
        .round(Unit::Microsecond)
        .map(|moment| moment.to_string())
        .map_err(|_| shape.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_moment_has_one_form() {
        for text in [
            "2029-12-31T22:00:00Z",
            "2030-01-01T00:00:00+02:00",
            "2029-12-31T22:00:00.000Z",
        ] {
            assert_eq!(canonical_timestamp(text).unwrap(), "2029-12-31T22:00:00Z");
        }
        assert_eq!(
            canonical_timestamp("2030-01-01T00:00:00.1234567Z").unwrap(),
            "2030-01-01T00:00:00.123457Z"
        );
    }

    #[test]
    fn other_shapes_are_refused() {
        for text in [
            "2025-12-31",
            "2025-12-31 00:00:00Z",
            "2025-12-31T00:00:00",
            "1969-12-31T00:00:00Z",
            "soon",
        ] {
            assert!(canonical_timestamp(text).is_err(), "{text}");
        }
    }
}
