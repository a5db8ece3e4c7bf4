//! Long-running commands: their output while objects change.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout};

use super::{Kubectl, holds};

/// A command that runs until it is dropped.
struct Staying {
    _child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Staying {
    fn start(kubectl: &Kubectl, line: &str) -> Self {
        let arguments: Vec<&str> = line.split(' ').collect();
        let mut child = kubectl
            .command(&arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { _child: child, lines }
    }

    /// Waits for a line with all these words.
    async fn prints(&mut self, words: &[&str]) {
        let found = async {
            while let Some(line) = self.lines.next_line().await.unwrap() {
                if words.iter().all(|word| line.contains(word)) {
                    return;
                }
            }
            panic!("it ended before it printed {words:?}");
        };
        tokio::time::timeout(Duration::from_mins(1), found)
            .await
            .unwrap_or_else(|_| panic!("never printed {words:?}"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_print_what_changes() {
    let Some(kubectl) = Kubectl::start().await else {
        return;
    };
    kubectl.run("create configmap early").await;
    let mut table = Staying::start(&kubectl, "get configmaps -w");
    let mut kinds = Staying::start(&kubectl, "get configmaps --watch-only --output-watch-events");
    let mut events = Staying::start(&kubectl, "events --watch");
    table.prints(&["early"]).await;
    kubectl.run("create configmap late --from-literal=a=b").await;
    table.prints(&["late", "1"]).await;
    kubectl
        .run("patch configmap late -p {\"data\":{\"c\":\"d\"}}")
        .await;
    table.prints(&["late", "2"]).await;
    kubectl.run("delete configmap late").await;
    kinds.prints(&["DELETED", "late"]).await;
    kubectl.run("run one --image=one").await;
    events.prints(&["Scheduled", "Pod/one"]).await;
    kubectl
        .run("wait --for=condition=Ready pod/one --timeout=30s")
        .await;
    let mut log = Staying::start(&kubectl, "logs -f one");
    log.prints(&["no container ran"]).await;
    holds(&kubectl.run("delete pod one --now").await, &["deleted"]);
    kubectl.run("wait --for=delete pod/one --timeout=30s").await;
}
