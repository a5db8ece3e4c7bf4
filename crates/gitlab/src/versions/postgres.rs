//! Supported PostgreSQL versions.
//!
//! GitLab refuses to start on an older server only after its migrations have begun, so the version is checked before.

use std::ops::RangeInclusive;

use super::Version;

/// For each major version of GitLab: the oldest supported and the newest tested major version of PostgreSQL, as in
/// [GitLab's requirements](https://docs.gitlab.com/install/requirements/#postgresql). They no longer list 15.
const KNOWN: [(u32, RangeInclusive<u32>); 5] = [
    // https://gitlab.com/gitlab-org/gitlab/-/merge_requests/88595 and, for 15.11,
    // https://gitlab.com/gitlab-org/gitlab/-/merge_requests/114624
    (15, 12..=14),
    // https://gitlab.com/gitlab-org/gitlab/-/merge_requests/120551 and
    // https://gitlab.com/gitlab-org/gitlab/-/merge_requests/119344
    (16, 13..=15),
    // https://gitlab.com/gitlab-org/omnibus-gitlab/-/issues/8341 and
    // https://gitlab.com/gitlab-org/gitlab/-/merge_requests/145298
    (17, 14..=16),
    // https://gitlab.com/gitlab-org/gitlab/-/merge_requests/190814 and
    // https://gitlab.com/gitlab-org/gitlab/-/issues/521159
    (18, 16..=17),
    // https://gitlab.com/gitlab-org/omnibus-gitlab/-/work_items/9757
    (19, 17..=17),
];

/// The major versions of PostgreSQL for a version of GitLab: below the start it fails, beyond the end it is untested.
/// An unknown version counts as the nearest known one.
pub(crate) fn postgres(version: &Version) -> RangeInclusive<u32> {
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
