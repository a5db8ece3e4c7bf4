//! Creates a data directory.

use std::{fs, path::Path, process::Command};

use crate::{
    account::Account,
    error::{Attempt, Error, checked},
};

/// The initial superuser of a server.
#[derive(Clone, Copy)]
pub struct Administrator<'a> {
    /// Name of the superuser.
    pub name: &'a str,
    /// Password of the superuser.
    pub password: &'a str,
}

/// Creates the data directory `place/data`; `place` must exist. Blocks.
pub fn initialise(
    programs: &Path,
    place: &Path,
    administrator: Administrator<'_>,
    account: Option<Account>,
) -> Result<(), Error> {
    if let Some(account) = account {
        account.own(place)?;
    }
    // Readable only by this user, and deleted when this function returns.
    let password = tempfile::NamedTempFile::new_in(place)
        .and_then(|file| fs::write(file.path(), administrator.password).map(|()| file))
        .attempting(|| format!("write a password file in {}", place.display()))?;
    if let Some(account) = account {
        account.own(password.path())?;
    }
    let mut initdb = Command::new(programs.join("initdb"));
    initdb
        .args(["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions"])
        // Small segments need less writing and copying.
        .args(["--wal-segsize=1", "--username", administrator.name, "--pwfile"])
        .arg(password.path())
        .arg("--pgdata")
        .arg(place.join("data"))
        .current_dir(place);
    if let Some(account) = account {
        account.run(&mut initdb);
    }
    let output = initdb
        .output()
        .attempting(|| format!("run initdb in {}", programs.display()))?;
    checked("initdb", &output).map(drop)
}
