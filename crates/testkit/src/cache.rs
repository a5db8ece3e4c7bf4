//! Where downloads and prepared data directories are kept between runs.
//!
//! Whatever is in the cache is complete: it is made beside its place, under a lock against other test
//! binaries, and then renamed into it.

use std::{
    env,
    fs::{self, File, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use crate::{
    account::Account,
    error::{Attempt, Error},
};

/// `$STANCHION_CACHE`, or for root a place that the unprivileged account can read, or the user's cache.
pub(crate) fn directory() -> Result<PathBuf, Error> {
    let home = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let chosen = if let Some(chosen) = env::var_os("STANCHION_CACHE") {
        PathBuf::from(chosen)
    } else if Account::unprivileged()?.is_some() {
        PathBuf::from("/var/cache/stanchion")
    } else {
        env::var_os("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .or_else(home)
            .map(|base| base.join("stanchion"))
            .ok_or(Error::Missing {
                what: "a cache directory".to_owned(),
                remedy: "set STANCHION_CACHE, XDG_CACHE_HOME or HOME".to_owned(),
            })?
    };
    fs::create_dir_all(&chosen).attempting(|| format!("create {}", chosen.display()))?;
    Ok(chosen)
}

/// The entry `name`, made by `make` into an empty directory if it is not there. Blocks.
pub(crate) fn entry(name: &str, make: impl FnOnce(&Path) -> Result<(), Error>) -> Result<PathBuf, Error> {
    let cache = directory()?;
    let place = cache.join(name);
    if place.exists() {
        return Ok(place);
    }
    let lock_path = cache.join(format!("{name}.lock"));
    let lock = File::create(&lock_path).attempting(|| format!("create {}", lock_path.display()))?;
    lock.lock()
        .attempting(|| format!("lock {}", lock_path.display()))?;
    if !place.exists() {
        let making = tempfile::Builder::new()
            .prefix(".making-")
            .permissions(Permissions::from_mode(0o755))
            .tempdir_in(&cache)
            .attempting(|| format!("make a directory in {}", cache.display()))?;
        let content = making.path().join("content");
        fs::create_dir(&content).attempting(|| format!("create {}", content.display()))?;
        make(&content)?;
        fs::rename(&content, &place).attempting(|| format!("rename to {}", place.display()))?;
    }
    Ok(place)
}
