//! `--run`: an image that stands for a command of this machine.

use std::fs;
use std::path::Path;

use stanchion_testkit::process::Signal;
use stanchion_testkit::wait;

use super::place::{Place, processes_of};
use super::{ask, has};
use crate::DEADLINE;
use crate::operator::failure;

#[tokio::test]
async fn an_image_can_be_a_command_of_this_machine() {
    if !has(&["kubectl"]) {
        return;
    }
    let place = Place::new();
    let (kubeconfig, words) = (place.file("kubeconfig"), place.temporary().join("words"));
    fs::write(&words, "said by a process\n").unwrap();
    let words = words.display().to_string();
    let sandbox = place.start(&[
        "--api-only",
        "--kubeconfig",
        &kubeconfig,
        "--run",
        "local/tail=tail -f",
    ]);
    wait::eventually(DEADLINE, "the kubeconfig", async || {
        Path::new(&kubeconfig).exists()
    })
    .await;
    ask(
        &kubeconfig,
        &format!("run teller --image=local/tail:1 -- {words}"),
    );
    ask(
        &kubeconfig,
        "wait pod/teller --for=condition=Ready --timeout=120s",
    );
    wait::eventually(DEADLINE, "what it says", async || {
        let said = ask(&kubeconfig, "logs teller");
        if said == "said by a process\n" {
            Ok(())
        } else {
            Err(said)
        }
    })
    .await;
    assert_ne!(processes_of(&place.temporary()), Vec::<String>::new());
    // Not even asked to end, it takes its processes with it.
    sandbox.end(Signal::Kill).await;
    fs::remove_file(words).unwrap();
    place.is_clean().await;
}

#[tokio::test]
async fn a_command_that_is_none_is_refused() {
    let place = Place::new();
    for wrong in ["local/tail", "=tail", "local/tail= "] {
        let (line, code) = failure(&place.run(&["--api-only", "--run", wrong]).await);
        assert!(line.contains("IMAGE=COMMAND"), "{line}");
        assert_eq!(code, Some(2));
    }
    place.is_clean().await;
}
