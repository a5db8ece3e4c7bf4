//! Differences between versions of the chart.
//!
//! The crate `semver` does not replace this: `spec.helm.version` may be a range such as `9.x`, of which only the first
//! numbers count, and neither its `Version` nor its `VersionReq` says which versions a range is about.

/// The chart's version, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub(crate) struct ChartVersion {
    pub major: u32,
    pub minor: u32,
}

impl ChartVersion {
    /// Newer than any version: an unknown version counts as the newest.
    pub(crate) const NEWEST: Self = Self {
        major: u32::MAX,
        minor: u32::MAX,
    };

    /// Parses a version. Open parts of a range such as `9.x` or `~9.2` count as the newest.
    pub(crate) fn of(text: &str) -> Self {
        let mut numbers = text
            .trim_start_matches(['v', '~', '^', '=', ' '])
            .split('.')
            .map(leading_number);
        let Some(major) = numbers.next().flatten() else {
            return Self::NEWEST;
        };
        let minor = numbers.next().flatten().unwrap_or(u32::MAX);
        Self { major, minor }
    }

    /// Whether this names more than one minor version.
    pub(crate) fn is_open(text: &str) -> bool {
        let exact = text.trim_start_matches(['v', '=', ' ']);
        Self::of(text).minor == u32::MAX || exact.contains(['^', '<', '>', '|', ',', ' '])
    }

    /// Whether the certificate manager has its own switch (9.0). Since 9.3, the previous value makes the chart fail,
    /// because the subchart validates its values.
    pub(super) const fn has_flag_for_cert_manager(self) -> bool {
        self.major >= 9
    }

    /// Whether the chart bundles PostgreSQL, Redis and `MinIO` (until 10.0). Later versions fail if a value for them is
    /// set.
    pub(crate) const fn bundles_backends(self) -> bool {
        self.major < 10
    }

    /// Whether the chart prefers the Gateway API, with its own Envoy, to Ingresses (10.0).
    pub(super) const fn prefers_gateways(self) -> bool {
        self.major >= 10
    }
}

fn leading_number(text: &str) -> Option<u32> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.get(..end)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_minor_versions_is_open() {
        for text in [
            "9.x",
            "9",
            "~9",
            "*",
            "^8.1.0",
            ">= 8.0.0",
            "9.1 - 9.5",
            "9.1.0 || 9.2.0",
            "",
        ] {
            assert!(ChartVersion::is_open(text), "{text}");
        }
        for text in [
            "8.11.8",
            "v9.2.8",
            "= 9.2.8",
            "~9.2",
            "9.2",
            "9.2.x",
            "10.0.0-rc1",
            "9.2.8+build.1",
        ] {
            assert!(!ChartVersion::is_open(text), "{text}");
        }
    }

    #[test]
    fn exact_versions_ranges_and_nonsense() {
        const ANY: u32 = u32::MAX;
        for (text, (major, minor)) in [
            ("8.11.8", (8, 11)),
            ("v9.2.8", (9, 2)),
            ("10.0.0-rc1", (10, 0)),
            ("9.2.8+build.1", (9, 2)),
            ("9.x", (9, ANY)),
            ("9", (9, ANY)),
            ("~9.2", (9, 2)),
            ("^8.1.0", (8, 1)),
            ("*", (ANY, ANY)),
            (">= 8.0.0", (ANY, ANY)),
            ("", (ANY, ANY)),
        ] {
            assert_eq!(ChartVersion::of(text), ChartVersion { major, minor }, "{text}");
        }
    }
}
