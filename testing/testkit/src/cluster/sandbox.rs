//! The sandbox as a cluster. It runs in its own thread, because each test has its own runtime.

use std::{path::Path, sync::mpsc, thread};

use stanchion_sandbox::{Sandbox, StartError};
use tokio::sync::oneshot;

use super::{AUDIT_LOG, KUBECONFIG};
use crate::{certificates::write, error::Error, scratch::Scratch};

/// A running sandbox. Dropping the value ends it.
#[derive(Debug)]
pub(super) struct InProcess {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
    scratch: Scratch,
}

impl InProcess {
    /// Starts a sandbox with the files of any cluster: kubeconfig, CA certificate, audit log.
    pub(super) fn start() -> Result<Self, Error> {
        let scratch = Scratch::new("stanchion-sandbox-")?;
        let directory = scratch.path().to_owned();
        let (stop, stopped) = oneshot::channel();
        let (started, ready) = mpsc::channel();
        let thread = thread::spawn(move || {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            let runtime = match builder.worker_threads(2).enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return drop(started.send(Err(failed(&error)))),
            };
            runtime.block_on(async {
                match serve(&directory).await {
                    Ok(sandbox) => {
                        let _ = started.send(Ok(()));
                        let _ = stopped.await;
                        drop(sandbox);
                    }
                    Err(error) => drop(started.send(Err(failed(&error)))),
                }
            });
        });
        let running = Self {
            stop: Some(stop),
            thread: Some(thread),
            scratch,
        };
        let answer = ready.recv().map_err(|error| failed(&error));
        answer.and_then(|started| started).map(|()| running)
    }

    /// The directory with the kubeconfig and the audit log.
    pub(super) fn directory(&self) -> &Path {
        self.scratch.path()
    }
}

async fn serve(directory: &Path) -> Result<Sandbox, StartError> {
    let mut sandbox = Sandbox::builder().audit_log(directory.join(AUDIT_LOG)).start()?;
    sandbox.listen(0).await?;
    let path = directory.join("ca.crt");
    write(path.clone(), sandbox.authority().unwrap_or_default(), 0o644).map_err(|error| {
        StartError::File {
            path,
            source: std::io::Error::other(error.to_string()),
        }
    })?;
    // The kubeconfig is written last: if it exists, everything else exists.
    sandbox.write_kubeconfig(&directory.join(KUBECONFIG))?;
    Ok(sandbox)
}

fn failed(error: &dyn std::fmt::Display) -> Error {
    Error::Start {
        what: "the sandbox".to_owned(),
        why: error.to_string(),
        log: String::new(),
    }
}

impl Drop for InProcess {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
