//! Containers that run as processes: an image that is mapped to a local command is started with the environment of the
//! pod. All other containers are simulated.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::oneshot;

use super::environment::{environment, expand};
use super::{PODS, Simulation};
use crate::error::ApiError;
use crate::store::{self, Object, text};

/// Number of output lines that are kept.
const KEPT: usize = 1_000;
/// Delay before a process is restarted.
const AGAIN: Duration = Duration::from_secs(1);

/// Runs its arguments as a command, until the command ends or the other end of its input is closed: the sandbox may be
/// killed, and then no destructor runs.
const SUPERVISOR: &str = r#"
exec 3<&0
"$@" </dev/null 3<&- &
child=$!
( read -r _ <&3; kill -s KILL "$child" ) >/dev/null 2>&1 &
listener=$!
exec 3<&-
wait "$child"; status=$?
kill "$listener" 2>/dev/null
exit "$status"
"#;

/// A part of an image's name, and the command for such images.
pub(crate) type Mapping = (String, Vec<String>);

/// The source of a log: the uid of a pod, and a container name.
type Speaker = (String, String);

/// The output of processes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Logs(Arc<Mutex<HashMap<Speaker, Vec<String>>>>);

impl Logs {
    /// The output of a container's process; `None` if it has none.
    pub(crate) fn of(&self, pod: &str, container: &str) -> Option<String> {
        let all = self.0.lock();
        all.get(&(pod.to_owned(), container.to_owned()))
            .map(|lines| lines.concat())
    }

    fn begin(&self, speaker: &Speaker) {
        let mut all = self.0.lock();
        all.entry(speaker.clone()).or_default();
    }

    fn add(&self, speaker: &Speaker, line: &str) {
        let mut all = self.0.lock();
        let lines = all.entry(speaker.clone()).or_default();
        if lines.len() == KEPT {
            lines.remove(0);
        }
        lines.push(format!("{line}\n"));
    }
}

/// The command for a container, if its image is mapped to one.
fn command<'m>(commands: &'m [Mapping], container: &Value) -> Option<&'m [String]> {
    let image = text(container, "/image");
    let mapping = commands.iter().find(|(part, _)| image.contains(part))?;
    Some(&mapping.1)
}

/// The processes of one pod. Dropping the value ends them.
#[derive(Debug)]
pub(super) struct Running {
    code: Arc<OnceLock<i32>>,
    /// Dropping it ends the tasks that own the processes.
    _stop: Vec<oneshot::Sender<()>>,
}

impl Simulation {
    /// Reconciles a pod whose containers are processes. Returns false if it has none.
    pub(super) async fn run_processes(&mut self, pod: &Arc<Object>) -> Result<bool, ApiError> {
        let containers = pod.value().pointer("/spec/containers").and_then(Value::as_array);
        let is_mapped = |container: &&Value| command(&self.commands, container).is_some();
        if !containers
            .into_iter()
            .flatten()
            .any(|container| is_mapped(&container))
        {
            return Ok(false);
        }
        let phase = pod.text("/status/phase");
        let code = self
            .processes
            .get(pod.uid())
            .map(|running| running.code.get().copied());
        match code {
            _ if !matches!(phase, "Pending" | "Running") => {}
            Some(None) => {}
            Some(Some(code)) => {
                self.processes.remove(pod.uid());
                self.ended(pod, code).await?;
            }
            None => match self.start_all(pod) {
                Ok(running) => {
                    self.processes.insert(pod.uid().to_owned(), running);
                    if phase == "Pending" {
                        self.begin(pod).await?;
                    } else {
                        self.set_alive(pod, true).await?;
                    }
                }
                Err(why) => {
                    self.set_status(pod, |status| status["message"] = json!(why))
                        .await?;
                    self.return_to(PODS, pod, AGAIN);
                }
            },
        }
        Ok(true)
    }

    /// Handles the exit of a process.
    async fn ended(&mut self, pod: &Object, code: i32) -> Result<(), ApiError> {
        if pod.text("/spec/restartPolicy") == "Always" {
            self.set_alive(pod, false).await?;
            self.return_to(PODS, pod, AGAIN);
            return Ok(());
        }
        if code == 0 {
            self.finish(pod).await
        } else {
            let now = self.actor.server.clock.seconds();
            self.crash_once(pod, &now).await
        }
    }

    async fn set_alive(&self, pod: &Object, alive: bool) -> Result<(), ApiError> {
        let now = self.actor.server.clock.seconds();
        self.set_status(pod, |status| {
            for container in status["containerStatuses"].as_array_mut().into_iter().flatten() {
                let restarts = container["restartCount"].as_i64().unwrap_or_default();
                container["ready"] = json!(alive);
                container["started"] = json!(alive);
                if alive {
                    container["restartCount"] = json!(restarts + 1);
                    container["state"] = json!({"running": {"startedAt": now}});
                } else {
                    container["state"] = json!({"waiting": {"reason": "CrashLoopBackOff"}});
                }
            }
            for condition in status["conditions"].as_array_mut().into_iter().flatten() {
                if matches!(text(condition, "/type"), "Ready" | "ContainersReady") {
                    condition["status"] = json!(if alive { "True" } else { "False" });
                    condition["lastTransitionTime"] = json!(now);
                }
            }
        })
        .await
    }

    fn start_all(&self, pod: &Object) -> Result<Running, String> {
        let code = Arc::new(OnceLock::new());
        let mut stop = Vec::new();
        let containers = pod.value().pointer("/spec/containers").and_then(Value::as_array);
        for container in containers.into_iter().flatten() {
            let Some(command) = command(&self.commands, container) else {
                continue;
            };
            let environment = environment(self.actor.store(), pod, container)?;
            let arguments = container.get("args").unwrap_or(&Value::Null);
            let logs = &self.actor.server.logs;
            let speaker = (pod.uid().to_owned(), text(container, "/name").to_owned());
            let mut child = start(logs, &speaker, command, arguments, &environment)
                .map_err(|error| format!("cannot start {command:?}: {error}"))?;
            let lifeline = child.stdin.take();
            let (sender, stopped) = oneshot::channel();
            stop.push(sender);
            let (code, later) = (code.clone(), self.later.clone());
            let key = store::key(pod.namespace(), pod.name());
            tokio::spawn(async move {
                tokio::select! {
                    status = child.wait() => {
                        let ended = status.ok().and_then(|status| status.code()).unwrap_or(-1);
                        let _ = code.set(ended);
                        let _ = later.send((PODS, key));
                    }
                    _ = stopped => {
                        drop(lifeline);
                        let _ = child.wait().await;
                    }
                }
            });
        }
        Ok(Running { code, _stop: stop })
    }
}

/// Starts a process.
fn start(
    logs: &Logs,
    speaker: &Speaker,
    command: &[String],
    arguments: &Value,
    environment: &[(String, String)],
) -> std::io::Result<Child> {
    let own = arguments
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(|argument| expand(argument, environment));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut child = Command::new("/bin/sh")
        .args(["-c", SUPERVISOR, "supervisor"])
        .args(command)
        .args(own)
        .env_clear()
        .env("PATH", path)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let output = child
        .stdout
        .take()
        .map(|pipe| Box::new(pipe) as Box<dyn AsyncRead + Send + Unpin>);
    let errors = child
        .stderr
        .take()
        .map(|pipe| Box::new(pipe) as Box<dyn AsyncRead + Send + Unpin>);
    logs.begin(speaker);
    for pipe in [output, errors].into_iter().flatten() {
        let (logs, speaker) = (logs.clone(), speaker.clone());
        tokio::spawn(async move {
            let mut lines = BufReader::new(pipe).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                logs.add(&speaker, &line);
            }
        });
    }
    Ok(child)
}
