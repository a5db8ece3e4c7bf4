//! The sandbox's directory: temporary, or the user's own and kept.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use secrecy::SecretString;
use stanchion_local::scratch::Scratch;

use super::error::SandboxError;

/// A directory, locked against other sandboxes.
pub(super) struct Home {
    path: PathBuf,
    kept: bool,
    // Released on drop.
    _lock: Option<File>,
    _scratch: Option<Scratch>,
}

impl Home {
    /// The user's directory, or a temporary one that is removed when this process ends, however it ends.
    pub(super) fn open(chosen: Option<&Path>) -> Result<Self, SandboxError> {
        let home = match chosen {
            None => {
                let scratch = Scratch::new("stanchion-demo-")?;
                Self {
                    path: scratch.path().to_owned(),
                    kept: false,
                    _lock: None,
                    _scratch: Some(scratch),
                }
            }
            Some(folder) => {
                let unusable = |source| SandboxError::File {
                    path: folder.to_owned(),
                    source,
                };
                fs::create_dir_all(folder).map_err(unusable)?;
                // PostgreSQL does not run in our working directory.
                let path = folder.canonicalize().map_err(unusable)?;
                let lock = File::create(path.join("lock")).map_err(unusable)?;
                match lock.try_lock() {
                    Ok(()) => {}
                    Err(TryLockError::WouldBlock) => return Err(SandboxError::InUse(path)),
                    Err(TryLockError::Error(source)) => return Err(unusable(source)),
                }
                Self {
                    path,
                    kept: true,
                    _lock: Some(lock),
                    _scratch: None,
                }
            }
        };
        // As root we run PostgreSQL under another account, which must reach its own directory in here but need not see
        // anything else.
        fs::set_permissions(&home.path, Permissions::from_mode(0o711)).map_err(|source| {
            SandboxError::File {
                path: home.path.clone(),
                source,
            }
        })?;
        Ok(home)
    }

    /// The file that keeps the API server's objects between runs, if they are kept.
    pub(super) fn state(&self) -> Option<PathBuf> {
        self.kept.then(|| self.path.join("objects"))
    }

    /// Whether it is kept for the next run.
    pub(super) fn is_kept(&self) -> bool {
        self.kept
    }

    /// The log of the operator and the API server.
    pub(super) fn log(&self) -> PathBuf {
        self.path.join("log")
    }

    /// The default path of the kubeconfig.
    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.path.join("kubeconfig")
    }

    /// The directory of a server, created if it does not exist.
    pub(super) fn folder(&self, name: &str) -> Result<PathBuf, SandboxError> {
        let path = self.path.join(name);
        fs::create_dir_all(&path).map_err(|source| SandboxError::File {
            path: path.clone(),
            source,
        })?;
        Ok(path)
    }

    /// The password of a server: that of the last run if there is one, else a new one.
    pub(super) fn secret(&self, name: &str) -> Result<SecretString, SandboxError> {
        let file = self.private(name);
        if let Ok(known) = fs::read_to_string(&file) {
            return Ok(known.into());
        }
        let secret = format!("{:032x}", rand::random::<u128>());
        write_private(&file, &secret)?;
        Ok(secret.into())
    }

    /// The path of a private file, for [`write_private`].
    pub(super) fn private(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

/// Writes a file that only this user can read.
pub(super) fn write_private(path: &Path, content: &str) -> Result<(), SandboxError> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options
        .open(path)
        .and_then(|mut file| file.write_all(content.as_bytes()))
        .map_err(|source| SandboxError::File {
            path: path.to_owned(),
            source,
        })
}

/// Fails if another account could not access the directory: PostgreSQL would only report "Permission denied".
pub(super) fn open_to_others(path: &Path) -> Result<(), SandboxError> {
    let closed = path
        .ancestors()
        .skip(1)
        .find(|folder| fs::metadata(folder).is_ok_and(|metadata| metadata.permissions().mode() & 0o001 == 0));
    match closed {
        None => Ok(()),
        Some(folder) => Err(SandboxError::Closed(folder.to_owned())),
    }
}
