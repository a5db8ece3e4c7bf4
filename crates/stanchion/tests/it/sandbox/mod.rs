//! `stanchion sandbox`: what it promises to users without a cluster, and that nothing remains when it ends.

mod api;
mod demo;
mod directory;
mod guides;
mod hints;
mod kept_data;
mod killed;
mod page;
mod processes;
mod terminal;

use std::ffi::OsString;
use std::path::Path;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use stanchion_testkit::{kubectl, report};

/// `$PATH`, preceded by the folder of a kubectl that is new enough, if there is one.
fn path() -> OsString {
    let own = std::env::var_os("PATH").unwrap_or_default();
    let kubectl = kubectl::find().ok().and_then(Path::parent);
    let folders = kubectl.map(Path::to_owned).into_iter();
    std::env::join_paths(folders.chain(std::env::split_paths(&own))).unwrap()
}

/// Whether the machine has these programs; if not, the run's report lists the test as skipped.
fn has(programs: &[&str]) -> bool {
    let missing = programs.iter().find_map(|program| match *program {
        "kubectl" => kubectl::find().err().map(str::to_owned),
        program => {
            let found = std::env::split_paths(&path()).any(|folder| folder.join(program).is_file());
            (!found).then(|| format!("{program} is missing"))
        }
    });
    if let Some(why) = &missing {
        report::skipped(&report::this_test(), why);
    }
    missing.is_none()
}

/// A client with this kubeconfig.
async fn client(kubeconfig: &str) -> Client {
    let read = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
    Client::try_from(config.unwrap()).unwrap()
}
