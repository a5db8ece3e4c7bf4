//! What a version of the chart knows.

/// The chart's version, as far as it can be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub struct ChartVersion {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}

impl ChartVersion {
    /// Newer than any: a version that says nothing is taken for one of tomorrow rather than of yesterday.
    pub const NEWEST: Self = Self {
        major: u32::MAX,
        minor: u32::MAX,
        patch: u32::MAX,
    };

    /// Reads a version. What a range such as `9.x` or `~9.2` leaves open is taken for the newest.
    pub fn of(text: &str) -> Self {
        let mut numbers = text
            .trim_start_matches(['v', '~', '^', '=', ' '])
            .splitn(3, '.')
            .map(leading_number);
        let Some(major) = numbers.next().flatten() else {
            return Self::NEWEST;
        };
        let mut next = || numbers.next().flatten().unwrap_or(u32::MAX);
        Self {
            major,
            minor: next(),
            patch: next(),
        }
    }

    /// Whether things can be stored without buckets, in a `MinIO` that the chart brings along.
    pub const fn bundles_minio(&self) -> bool {
        self.bundles_backends()
    }

    /// Whether the certificate manager is left out with a value of its own (9.0). Since 9.3, the value that it was
    /// before stops the chart: the manager's own chart checks what it is told.
    pub(super) const fn has_flag_for_cert_manager(&self) -> bool {
        self.major >= 9
    }

    /// Whether it brings a PostgreSQL, a Redis and a `MinIO` along (until 10.0). From then on it stops when one of
    /// them is wanted, so it is told nothing about them.
    pub(super) const fn bundles_backends(&self) -> bool {
        self.major < 10
    }

    /// Whether it prefers the Gateway API, with an Envoy of its own, to Ingresses (10.0).
    pub(super) const fn prefers_gateways(&self) -> bool {
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
    fn exact_versions_ranges_and_nonsense() {
        const ANY: u32 = u32::MAX;
        for (text, (major, minor, patch)) in [
            ("8.11.8", (8, 11, 8)),
            ("v9.2.8", (9, 2, 8)),
            ("10.0.0-rc1", (10, 0, 0)),
            ("9.2.8+build.1", (9, 2, 8)),
            ("9.x", (9, ANY, ANY)),
            ("9", (9, ANY, ANY)),
            ("~9.2", (9, 2, ANY)),
            ("^8.1.0", (8, 1, 0)),
            ("*", (ANY, ANY, ANY)),
            (">= 8.0.0", (ANY, ANY, ANY)),
            ("", (ANY, ANY, ANY)),
        ] {
            assert_eq!(
                ChartVersion::of(text),
                ChartVersion { major, minor, patch },
                "{text}"
            );
        }
    }
}
