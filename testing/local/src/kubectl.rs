//! Finds kubectl on this machine.
//!
//! Nothing installs it: the package of Debian 12 is five years older than the servers that the tests run, and no other
//! package manager of a fresh machine has it (docs/testing.md). Without kubectl, the tests about kubectl are skipped
//! and listed.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use crate::cache;

/// The oldest version that the tests pass with. Older ones lack options, such as `--validate=strict`, or behave
/// differently.
const OLDEST: (u32, u32) = (1, 32);

/// A usable kubectl: from `$KUBEBUILDER_ASSETS`, from the output of `make control-plane`, or from `$PATH`, in this
/// order. The error says in a few words why there is none.
pub fn find() -> Result<&'static Path, &'static str> {
    static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let path = env::var_os("PATH").unwrap_or_default();
        let folders = control_planes()
            .into_iter()
            .chain(env::split_paths(&path))
            .map(|folder| folder.join("kubectl"));
        choose(folders.filter(|file| file.is_file()), version)
    });
    found.as_deref().map_err(String::as_str)
}

/// The folders that may contain the programs of a control plane, the preferred one first.
pub fn control_planes() -> Vec<PathBuf> {
    if let Some(given) = env::var_os("KUBEBUILDER_ASSETS").filter(|given| !given.is_empty()) {
        return vec![PathBuf::from(given)];
    }
    let base = cache::of_user().unwrap_or_default().join("control-plane");
    let entries = fs::read_dir(base).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    folders.sort();
    folders.reverse();
    folders
}

/// The first one that is new enough.
fn choose(
    programs: impl Iterator<Item = PathBuf>,
    version: impl Fn(&Path) -> Option<(u32, u32)>,
) -> Result<PathBuf, String> {
    let mut why = "kubectl is missing".to_owned();
    for program in programs {
        match version(&program) {
            Some(found) if found >= OLDEST => return Ok(program),
            Some((major, minor)) => {
                let (oldest, least) = OLDEST;
                let program = program.display();
                why = format!("{program} is {major}.{minor}, older than {oldest}.{least}");
            }
            None => why = format!("{} does not say its version", program.display()),
        }
    }
    Err(why)
}

/// The version that `kubectl version` prints; `None` if it does not run.
fn version(program: &Path) -> Option<(u32, u32)> {
    let output = Command::new(program)
        .args(["version", "--client", "--output=json"])
        .env("KUBECONFIG", "/dev/null")
        .output()
        .ok()?;
    parse(&output.stdout)
}

fn parse(said: &[u8]) -> Option<(u32, u32)> {
    let said: serde_json::Value = serde_json::from_slice(said).ok()?;
    // From the git version, because builds of other vendors omit the numbers or write `32+`.
    let version = said.pointer("/clientVersion/gitVersion")?.as_str()?;
    let mut numbers = version.strip_prefix('v')?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{choose, parse};

    fn chosen(programs: &[(&str, Option<(u32, u32)>)]) -> Result<PathBuf, String> {
        let version = |path: &Path| programs.iter().find(|(name, _)| Path::new(name) == path)?.1;
        choose(programs.iter().map(|(name, _)| PathBuf::from(name)), version)
    }

    #[test]
    fn the_first_that_is_new_enough_is_taken() {
        let old = ("/usr/bin/kubectl", Some((1, 20)));
        let new = ("/opt/kubectl", Some((1, 36)));
        assert_eq!(chosen(&[old, new]), Ok("/opt/kubectl".into()));
        let newer = ("/srv/kubectl", Some((1, 37)));
        assert_eq!(chosen(&[new, newer]), Ok("/opt/kubectl".into()));
    }

    #[test]
    fn the_reason_names_what_was_found() {
        assert_eq!(chosen(&[]), Err("kubectl is missing".to_owned()));
        let said = chosen(&[("/usr/bin/kubectl", Some((1, 20)))]).unwrap_err();
        assert_eq!(said, "/usr/bin/kubectl is 1.20, older than 1.32");
        let said = chosen(&[("/usr/bin/kubectl", None)]).unwrap_err();
        assert_eq!(said, "/usr/bin/kubectl does not say its version");
    }

    #[test]
    fn versions_of_vendors_are_read() {
        let said = |version: &str| format!(r#"{{"clientVersion": {{"gitVersion": "{version}"}}}}"#);
        assert_eq!(parse(said("v1.36.3").as_bytes()), Some((1, 36)));
        assert_eq!(parse(said("v1.32.4-dispatcher").as_bytes()), Some((1, 32)));
        assert_eq!(parse(b"error: unknown flag"), None);
    }
}
