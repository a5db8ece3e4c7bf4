//! One `initdb` per version, then copies of its result: a server starts in a fraction of a second.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{SystemTime, UNIX_EPOCH},
};

use stanchion_local::postgres::{self, Administrator, Version, initialise};

use super::{ADMIN, ADMIN_PASSWORD, identity};
use crate::{
    account::Account,
    cache,
    error::{Attempt, Error, checked},
    report,
};

/// Part of the cache entry's name. Increase it when the template is created differently.
const REVISION: u32 = 1;
const ADMINISTRATOR: Administrator<'_> = Administrator {
    name: ADMIN,
    password: ADMIN_PASSWORD,
};

/// The programs of a version, and a data directory for one server.
pub(super) struct Prepared {
    pub(super) programs: PathBuf,
    pub(super) data: PathBuf,
}

/// Copies a data directory into `home`, which must belong to the account. Blocks.
pub(super) fn prepare(version: Version, home: &Path, account: Option<Account>) -> Result<Prepared, Error> {
    let programs = postgres::programs(version)?;
    let release = postgres::release(&programs).unwrap_or_else(|| version.to_string());
    report::used("postgres", &release);
    let template = cache::entry(&format!("template-{release}-{REVISION}"), |place| {
        initialise(&programs, place, ADMINISTRATOR, account)
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

/// As initdb does it: the time, and a number that distinguishes servers of the same moment.
fn new_identifier() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (now.as_secs() << 32) | u64::from(now.subsec_nanos() ^ (std::process::id() << 12))
}
