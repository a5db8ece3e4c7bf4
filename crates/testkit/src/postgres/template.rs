//! One `initdb` a version, then copies of its result: a server starts in a fraction of a second.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{SystemTime, UNIX_EPOCH},
};

use super::{
    ADMIN, ADMIN_PASSWORD, identity, install,
    version::{self, Version},
};
use crate::{
    account::Account,
    cache,
    error::{Attempt, Error, checked},
    report,
};

/// Part of the cache entry's name; raise it when the way of making a template changes.
const REVISION: u32 = 1;

/// The programs of a version, and a data directory that belongs to one server.
pub(super) struct Prepared {
    pub(super) programs: PathBuf,
    pub(super) data: PathBuf,
}

/// Puts a data directory into `home`, which must belong to the account. Blocks.
pub(super) fn prepare(version: Version, home: &Path, account: Option<Account>) -> Result<Prepared, Error> {
    let programs = install::programs(version)?;
    let release = version::release(&programs.join("postgres")).unwrap_or_else(|| version.to_string());
    report::used("postgres", &release);
    let template = cache::entry(&format!("template-{release}-{REVISION}"), |place| {
        initialise(&programs, place, account)
    })?;
    let data = home.join("data");
    let output = Command::new("cp")
        .args(["--archive", "--reflink=auto"])
        .arg(template.join("data"))
        .arg(&data)
        .output()
        .attempting(|| "run cp".to_owned())?;
    checked("cp", &output)?;
    identity::set(&data, new_identifier())?;
    Ok(Prepared { programs, data })
}

fn initialise(programs: &Path, place: &Path, account: Option<Account>) -> Result<(), Error> {
    if let Some(account) = account {
        account.own(place)?;
    }
    let password = place.join("password");
    fs::write(&password, ADMIN_PASSWORD).attempting(|| format!("write {}", password.display()))?;
    let mut initdb = Command::new(programs.join("initdb"));
    initdb
        .args(["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions"])
        // Small segments: there is less to copy.
        .args(["--wal-segsize=1", "--username", ADMIN, "--pwfile"])
        .arg(&password)
        .arg("--pgdata")
        .arg(place.join("data"))
        .current_dir(place);
    if let Some(account) = account {
        account.run(&mut initdb);
    }
    let output = initdb
        .output()
        .attempting(|| format!("run initdb in {}", programs.display()))?;
    checked("initdb", &output)?;
    fs::remove_file(&password).attempting(|| format!("remove {}", password.display()))
}

/// As initdb makes it: the time, and something that tells servers of one moment apart.
fn new_identifier() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (now.as_secs() << 32) | u64::from(now.subsec_nanos() ^ (std::process::id() << 12))
}
