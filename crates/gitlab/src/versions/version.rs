//! Versions as numbers: compared as text, 18.8.10 would come before 18.8.9.
//!
//! The crate `semver` does not replace this: it refuses the `v` of a chart's application version, accepts `17.11.7-ee` as
//! older than 17.11.7, and has no type for a version without its patch, which required upgrade stops are.

use std::fmt;
use std::str::FromStr;

/// An exact version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}

impl Version {
    /// A version of these three numbers.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self { major, minor, patch }
    }

    /// Without its patch.
    pub const fn minor(self) -> Minor {
        Minor {
            major: self.major,
            minor: self.minor,
        }
    }
}

/// A version without its patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub struct Minor {
    pub major: u32,
    pub minor: u32,
}

/// A text that is not an exact version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not an exact version such as 17.11.7")]
pub struct NotAVersion(pub String);

impl FromStr for Version {
    type Err = NotAVersion;

    /// Three numbers, with an optional `v` in front, as in a chart's application version.
    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        let mut numbers = text.strip_prefix('v').unwrap_or(text).split('.').map(number);
        match [numbers.next(), numbers.next(), numbers.next(), numbers.next()] {
            [Some(Some(major)), Some(Some(minor)), Some(Some(patch)), None] => {
                Ok(Self { major, minor, patch })
            }
            _ => Err(NotAVersion(text.to_owned())),
        }
    }
}

/// A number in its canonical form: neither `+1` nor `01`, so that each version has one spelling.
fn number(text: &str) -> Option<u32> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    plain.then(|| text.parse().ok()).flatten()
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl fmt::Display for Minor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_three_plain_numbers_are_a_version() {
        assert_eq!("17.11.7".parse(), Ok(Version::new(17, 11, 7)));
        assert_eq!("v18.0.0".parse(), Ok(Version::new(18, 0, 0)));
        for text in [
            "",
            "v",
            "17",
            "17.11",
            "17.11.7.1",
            "17.11.x",
            "17.11.7-ee",
            "17..7",
            "17.11.",
            "17.011.7",
            "+17.11.7",
            " 17.11.7",
            "vv17.11.7",
            "17.11.99999999999",
        ] {
            assert_eq!(text.parse::<Version>(), Err(NotAVersion(text.into())));
        }
    }

    proptest! {
        #[test]
        fn order_is_that_of_the_numbers_and_a_version_reads_back(
            a in (0..30_u32, 0..30_u32, 0..30_u32), b in (0..30_u32, 0..30_u32, 0..30_u32),
        ) {
            let version = |(major, minor, patch)| Version::new(major, minor, patch);
            prop_assert_eq!(version(a).cmp(&version(b)), a.cmp(&b));
            prop_assert_eq!(version(a).to_string().parse(), Ok(version(a)));
        }
    }
}
