//! Packages from npm, pinned by their checksum.

use std::{fs, path::Path, process::Command};

use crate::error::{Attempt as _, Error, checked};

/// Downloads a package and unpacks it into a directory. Without npm, the error is `missing`.
pub fn unpack(
    package: &str,
    sha512: Option<&str>,
    place: &Path,
    missing: impl FnOnce() -> Error,
) -> Result<(), Error> {
    let output = Command::new("npm")
        .args(["pack", "--silent", package])
        .current_dir(place)
        .output()
        .map_err(|_| missing())?;
    let archive = checked(&format!("npm pack {package}"), &output)?;
    let archive = place.join(archive.trim());
    check(&archive, package, sha512)?;
    let output = Command::new("tar")
        .args(["--extract", "--strip-components=1", "--no-same-owner", "--file"])
        .arg(&archive)
        .current_dir(place)
        .output()
        .attempting(|| "run tar".to_owned())?;
    checked("tar", &output)?;
    fs::remove_file(&archive).attempting(|| format!("remove {}", archive.display()))
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
        remedy: "find out who changed the package".to_owned(),
    })
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
