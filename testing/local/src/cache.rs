//! The cache of downloads and prepared data directories.
//!
//! Every entry in the cache is complete: it is created beside its final path, under a lock against other processes, and
//! then renamed.

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

/// `$STANCHION_CACHE`; for root a directory that the unprivileged account can read; else the user's cache.
pub fn directory() -> Result<PathBuf, Error> {
    let chosen = if let Some(chosen) = variable("STANCHION_CACHE") {
        chosen
    } else if Account::unprivileged()?.is_some() {
        PathBuf::from("/var/cache/stanchion")
    } else {
        of_user().ok_or(Error::Missing {
            what: "a cache directory".to_owned(),
            remedy: "set STANCHION_CACHE, XDG_CACHE_HOME or HOME".to_owned(),
        })?
    };
    fs::create_dir_all(&chosen).attempting(|| format!("create {}", chosen.display()))?;
    Ok(chosen)
}

/// Our directory in the user's own cache.
pub fn of_user() -> Option<PathBuf> {
    let base = variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")));
    base.map(|base| base.join("stanchion"))
}

/// A path from the environment; an empty one counts as unset.
fn variable(name: &str) -> Option<PathBuf> {
    env::var_os(name)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

/// The entry `name`. If it does not exist, `make` fills an empty directory for it. Blocks.
pub fn entry(name: &str, make: impl FnOnce(&Path) -> Result<(), Error>) -> Result<PathBuf, Error> {
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
