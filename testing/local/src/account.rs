//! The account that servers run under.
//!
//! PostgreSQL refuses to run as root, and users and tests in a container often are root. Then an unprivileged account
//! owns its files and runs its processes.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, chown},
        process::CommandExt,
    },
    path::Path,
    process::Command,
};

use crate::error::{Attempt, Error};

/// A user of this machine, by uid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    uid: u32,
    gid: u32,
}

impl Account {
    /// The account to change to: `None` for an ordinary user; `postgres`, or else `nobody`, for root.
    pub fn unprivileged() -> Result<Option<Self>, Error> {
        let me = fs::metadata("/proc/self")
            .attempting(|| "read /proc/self".to_owned())?
            .uid();
        if me != 0 {
            return Ok(None);
        }
        let accounts = fs::read_to_string("/etc/passwd").attempting(|| "read /etc/passwd".to_owned())?;
        ["postgres", "nobody"]
            .into_iter()
            .find_map(|name| Self::named(&accounts, name))
            .map(Some)
            .ok_or(Error::Missing {
                what: "an account `postgres` or `nobody` in /etc/passwd".to_owned(),
                remedy: "add one, or run this as an ordinary user".to_owned(),
            })
    }

    fn named(passwd: &str, name: &str) -> Option<Self> {
        passwd.lines().find_map(|line| {
            let mut fields = line.split(':');
            (fields.next()? == name).then_some(())?;
            Some(Self {
                uid: fields.nth(1)?.parse().ok()?,
                gid: fields.next()?.parse().ok()?,
            })
        })
    }

    /// Makes `command` run as this account.
    pub fn run(self, command: &mut Command) {
        command.uid(self.uid).gid(self.gid);
    }

    /// Makes this account the owner of `path`, but not of its contents.
    pub fn own(self, path: &Path) -> Result<(), Error> {
        chown(path, Some(self.uid), Some(self.gid)).attempting(|| format!("chown {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::Account;

    #[test]
    fn an_account_is_found_by_its_exact_name() {
        let passwd =
            "root:x:0:0:root:/root:/bin/sh\npostgresql:x:7:7::/:/bin/sh\npostgres:x:101:104::/:/bin/sh\n";
        assert_eq!(
            Account::named(passwd, "postgres"),
            Some(Account { uid: 101, gid: 104 })
        );
        assert_eq!(Account::named(passwd, "nobody"), None);
    }
}
