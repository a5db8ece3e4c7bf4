//! SIGKILL: nothing is left behind, and the next run is not disturbed.

use std::path::Path;

use kube::{Api, ResourceExt as _};
use stanchion_api::PostgresUser;
use stanchion_testkit::process::Signal;
use stanchion_testkit::wait;

use super::client;
use super::directory::{Place, processes_of};
use crate::DEADLINE;

#[tokio::test]
async fn killed_it_leaves_nothing_behind_either() {
    let place = Place::new();
    let kubeconfig = place.file("kubeconfig");
    let sandbox = place.start(&["--kubeconfig", &kubeconfig]);
    sandbox.says("PostgreSQL   127.0.0.1").await;
    assert!(Path::new(&kubeconfig).exists());
    assert_ne!(processes_of(&place.temporary()), Vec::<String>::new());
    sandbox.end(Signal::Kill).await;
    place.is_clean().await;
    wait::eventually(DEADLINE, "the kubeconfig to be gone", async || {
        !Path::new(&kubeconfig).exists()
    })
    .await;
}

/// The next run uses the same file, the same port and the same folder, does not wait until the servers of the last run
/// have ended, and finds all objects that the database's roles belong to.
#[tokio::test]
async fn killed_it_can_be_started_again_at_once() {
    let place = Place::new();
    let (data, kubeconfig) = (place.file("data"), place.file("kubeconfig"));
    let port = place.port().await;
    let arguments = [
        "--controllers=user",
        "--data",
        &data,
        "--port",
        &port,
        "--kubeconfig",
        &kubeconfig,
    ];
    let mut before = None;
    for _ in 0..3 {
        let sandbox = place.start(&arguments);
        sandbox.says("Ctrl-C ends everything").await;
        let users: Api<PostgresUser> = Api::default_namespaced(client(&kubeconfig).await);
        let uid = users.get("orders").await.unwrap().uid();
        assert_eq!(before.get_or_insert_with(|| uid.clone()), &uid);
        sandbox.end(Signal::Kill).await;
    }
    let sandbox = place.start(&arguments);
    sandbox.says("Ctrl-C ends everything").await;
    // The guardians of the killed runs have not removed our files.
    let users: Api<PostgresUser> = Api::default_namespaced(client(&kubeconfig).await);
    assert!(users.get_opt("orders").await.unwrap().is_some());
    assert_eq!(sandbox.end(Signal::Term).await, Some(0));
    assert!(!Path::new(&kubeconfig).exists());
    place.is_clean().await;
    assert_eq!(processes_of(Path::new(&data)), Vec::<String>::new());
}
