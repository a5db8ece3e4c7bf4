//! Times as people write them in manifests.
//!
//! Many people write `9999-12-31T23:59:59Z` for "never". The last valid [`Timestamp`] is a day earlier, so later times
//! are read as that one.

use jiff::Timestamp;
use jiff::fmt::temporal::Pieces;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// The pattern in the schema, in addition to the format `date-time`, which accepts more.
pub const PATTERN: &str = "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{1,9})?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$";

/// Deserializes an optional time.
pub fn optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    let text: Option<String> = Option::deserialize(deserializer)?;
    text.map(|text| parse(&text))
        .transpose()
        .map_err(D::Error::custom)
}

/// Parses a time.
pub fn parse(text: &str) -> Result<Timestamp, jiff::Error> {
    text.parse().or_else(|error| {
        let is_last_day = Pieces::parse(text).is_ok_and(|pieces| {
            let complete = pieces.time().is_some() && pieces.offset().is_some();
            complete && pieces.date().year() == 9999
        });
        if is_last_day {
            Ok(Timestamp::MAX)
        } else {
            Err(error)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_never_is_the_last_time_that_there_is() {
        for never in [
            "9999-12-31T23:59:59Z",
            "9999-12-31t23:59:59.999999999z",
            "9999-12-31T00:00:00-23:59",
        ] {
            assert_eq!(parse(never).unwrap(), Timestamp::MAX, "{never}");
        }
    }

    #[test]
    fn every_other_time_is_what_it_says() {
        for time in [
            "2030-01-31T00:00:00Z",
            "0001-01-01T00:00:00Z",
            "9999-12-30T00:00:00Z",
        ] {
            assert_eq!(parse(time).unwrap(), time.parse().unwrap(), "{time}");
        }
        for nonsense in [
            "",
            "never",
            "9999-13-01T00:00:00Z",
            "9999-12-31",
            "9999-12-31T23:59:59",
        ] {
            assert!(parse(nonsense).is_err(), "{nonsense}");
        }
    }
}
