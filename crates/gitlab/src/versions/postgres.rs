//! Which PostgreSQL a GitLab runs on.
//!
//! GitLab refuses to start on an older one only after the migrations have begun: it is known here, before.

use std::ops::RangeInclusive;

use super::Version;

/// For each major version of GitLab: the oldest major version of PostgreSQL that it runs on, and the newest that it is
/// tested with.
///
/// The floors of 18 and 19 are in the notes of their charts. The rows of 15 and 16, and the ends of 17 and 18, are as GitLab's
/// requirements were when this was written, and were not looked up again. That 19 runs on 18 is not said anywhere yet, so 18
/// is not offered for it.
const KNOWN: [(u32, RangeInclusive<u32>); 5] = [
    (15, 12..=14),
    (16, 13..=15),
    (17, 14..=16),
    (18, 16..=17),
    (19, 17..=17),
];

/// The major versions of PostgreSQL that a version of GitLab runs on: below the start it does not, beyond the end
/// nobody has promised it. What is older or newer than all that is known is taken for the nearest that is.
pub fn postgres(version: &Version) -> RangeInclusive<u32> {
    let [(_, oldest), ..] = &KNOWN;
    KNOWN
        .iter()
        .rev()
        .find(|(major, _)| *major <= version.major)
        .map_or(oldest, |(_, range)| range)
        .clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_major_version_has_its_range_and_strangers_the_nearest() {
        let of = |major| postgres(&Version::new(major, 5, 1));
        assert_eq!(of(17), 14..=16);
        assert_eq!(of(18), 16..=17);
        assert_eq!(of(19), 17..=17);
        assert_eq!((of(3), of(23)), (of(15), of(19)));
    }

    #[test]
    fn the_newest_database_of_a_version_survives_the_upgrade_to_the_next_one() {
        for pair in KNOWN.windows(2) {
            let (newest, next) = (pair[0].1.end(), &pair[1].1);
            assert!(next.contains(newest), "{newest} is not in {next:?}");
        }
    }
}
