//! The PostgreSQL versions that tests run against.

use std::{
    env,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Once,
    thread,
};

use stanchion_local::postgres::{Version, is_present};

use crate::report;

/// The versions for a suite.
///
/// `$STANCHION_TEST_POSTGRES` selects them (`15,18`). Without it: all versions that are installed or can be downloaded;
/// the report lists the others as skipped.
pub fn versions() -> Vec<Version> {
    if let Ok(asked) = env::var("STANCHION_TEST_POSTGRES")
        && !asked.trim().is_empty()
    {
        return asked
            .split(',')
            .map(|text| {
                Version::from_major(text)
                    .unwrap_or_else(|| panic!("STANCHION_TEST_POSTGRES={asked}: no such version {text:?}"))
            })
            .collect();
    }
    let can_download = has_npm();
    let (there, absent): (Vec<_>, Vec<_>) = Version::ALL
        .into_iter()
        .partition(|&version| can_download || is_present(version));
    if !absent.is_empty() {
        static SAID: Once = Once::new();
        SAID.call_once(|| {
            let names: Vec<_> = absent.iter().map(ToString::to_string).collect();
            report::skipped(
                &format!("PostgreSQL {}", names.join(", ")),
                "not installed, and there is no npm to download it with",
            );
        });
    }
    assert!(
        !there.is_empty(),
        "no PostgreSQL server on this machine; install postgresql or npm"
    );
    there
}

/// The version for a test that does not depend on the version: always the same one for a test, so that a run covers all
/// versions.
pub fn any() -> Version {
    let mut hasher = DefaultHasher::new();
    thread::current().name().hash(&mut hasher);
    let versions = versions();
    let hash = usize::try_from(hasher.finish() >> 32).unwrap_or_default();
    versions[hash % versions.len()]
}

/// The oldest and the newest available version: what works on both works in between.
pub fn extremes() -> Vec<Version> {
    let versions = versions();
    let mut ends: Vec<Version> = versions
        .first()
        .into_iter()
        .chain(versions.last())
        .copied()
        .collect();
    ends.dedup();
    ends
}

fn has_npm() -> bool {
    env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|folder| folder.join("npm").is_file()))
}
