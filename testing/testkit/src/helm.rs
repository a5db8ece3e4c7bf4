//! Finds and runs Helm.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use stanchion_local::kubectl;

/// The program: the one that `$STANCHION_HELM` names, or one beside the programs of a control plane, or in `$PATH`. The
/// error says in a few words why there is none.
pub fn find() -> Result<PathBuf, &'static str> {
    if let Some(named) = env::var_os("STANCHION_HELM") {
        return Ok(PathBuf::from(named));
    }
    let path = env::var_os("PATH").unwrap_or_default();
    kubectl::control_planes()
        .into_iter()
        .chain(env::split_paths(&path))
        .map(|folder| folder.join("helm"))
        .find(|program| program.is_file())
        .ok_or("helm is neither in KUBEBUILDER_ASSETS nor on the PATH")
}

/// Runs helm without leaving anything in the user's home, and returns its output.
pub fn run(helm: &Path, words: &[&str]) -> Result<String, String> {
    let home = env::temp_dir().join("stanchion-helm");
    let output = Command::new(helm)
        .args(words)
        .env("HELM_CACHE_HOME", home.join("cache"))
        .env("HELM_CONFIG_HOME", home.join("config"))
        .env("HELM_DATA_HOME", home.join("data"))
        .output()
        .map_err(|error| format!("{}: {error}", helm.display()))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(format!("helm {}: {}", words.join(" "), text(&output.stderr)))
    }
}
