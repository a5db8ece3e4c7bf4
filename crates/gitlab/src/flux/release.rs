//! Reads the status of a `HelmRelease`, and decides whether it is current.

use jiff::{SignedDuration, Timestamp};
use kube::core::DynamicObject;
use serde_json::Value;

use crate::versions::Version;

/// A release as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// The object's name.
    pub object: String,
    /// The release's name, if it is not that of the object.
    pub name: Option<String>,
    /// The requested version of the chart.
    pub chart: String,
    /// The `ServiceAccount` that Flux installs with, if the object names one.
    pub account: Option<String>,
    /// Flux's progress with the current generation.
    pub progress: Progress,
    /// The last successful release.
    pub running: Option<Running>,
    /// Since when Flux is working, if it reports that.
    pub working_since: Option<Timestamp>,
    /// The timeout of Flux.
    pub timeout: Option<SignedDuration>,
    pub suspended: bool,
    /// It is being uninstalled.
    pub terminating: bool,
}

/// Flux's progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It is working, or has not begun; its message.
    Working(String),
    /// It cannot begin: something is missing, such as the chart.
    Waiting {
        /// Flux's reason.
        reason: String,
        /// Flux's message.
        message: String,
        /// Since when, if it reports that.
        since: Option<Timestamp>,
    },
    /// It has applied the current generation.
    Done,
    /// It has failed; it may retry by itself.
    Failed {
        /// What has failed.
        what: Failure,
        /// Flux's reason.
        reason: String,
        /// Flux's message.
        message: String,
    },
}

/// What Flux has failed to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// To begin: the chart or something else was never there, so that nothing is changed.
    Begin,
    /// To install or upgrade, or what follows from that: the database may be migrated.
    Install,
    Uninstall,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// The chart's version.
    pub chart: String,
    /// GitLab's version, if Flux reports it.
    pub version: Option<Version>,
}

/// How long Flux may wait before that counts as a failure. It waits for a moment after each change, until the chart is
/// fetched; and forever for a chart that does not exist.
const WAIT_TIMEOUT: SignedDuration = SignedDuration::from_mins(1);

/// The failure of this reason, if Flux does not retry for now. With any other reason, Flux waits for something.
fn failure(reason: &str) -> Option<Failure> {
    match reason {
        // The chart cannot be loaded.
        "ArtifactFailed" => Some(Failure::Begin),
        "UninstallFailed" => Some(Failure::Uninstall),
        "InstallFailed"
        | "UpgradeFailed"
        | "TestFailed"
        | "RollbackSucceeded"
        | "RollbackFailed"
        | "UninstallSucceeded"
        | "RetriesExceeded"
        | "MissingRollbackTarget" => Some(Failure::Install),
        _ => None,
    }
}

impl Release {
    /// Reads the object.
    pub fn of(object: &DynamicObject) -> Self {
        let data = &object.data;
        let text = |path: &str| data.pointer(path).and_then(Value::as_str).map(str::to_owned);
        let suspended = data.pointer("/spec/suspend") == Some(&Value::Bool(true));
        let terminating = object.metadata.deletion_timestamp.is_some();
        let name = object.metadata.name.clone().unwrap_or_default();
        // Flux's default: the name must stay when the field goes.
        let target = text("/spec/targetNamespace").filter(|target| !target.is_empty());
        let in_target = target.map(|target| format!("{target}-{name}"));
        Self {
            name: text("/spec/releaseName").or(in_target),
            object: name,
            chart: text("/spec/chart/spec/version").unwrap_or_default(),
            account: text("/spec/serviceAccountName"),
            progress: progress(data, object.metadata.generation, suspended, terminating),
            running: running(data),
            working_since: working_since(data),
            timeout: text("/spec/timeout").and_then(|text| text.parse().ok()),
            suspended,
            terminating,
        }
    }

    /// Whether Flux has applied the current generation.
    pub(crate) fn is_done(&self) -> bool {
        self.progress == Progress::Done
    }

    /// Whether Flux has begun to install the requested chart, which may have migrated the database.
    pub(crate) fn has_begun(&self) -> bool {
        match &self.progress {
            Progress::Failed { what, .. } => *what != Failure::Begin,
            Progress::Working(_) | Progress::Done | Progress::Waiting { .. } => self.working_since.is_some(),
        }
    }

    /// The latest end of what Flux is doing.
    pub fn until(&self) -> Option<Timestamp> {
        self.working_since?.checked_add(self.timeout?).ok()
    }

    /// Flux's message, if it failed because the `ServiceAccount` may not create something in the chart.
    pub fn forbidden(&self, namespace: &str) -> Option<&str> {
        let (Progress::Failed { message, .. }, Some(account)) = (&self.progress, &self.account) else {
            return None;
        };
        let account = format!("system:serviceaccount:{namespace}:{account}\"");
        let is_refused = message.contains("forbidden") && message.contains(&account);
        is_refused.then_some(message)
    }

    /// The same, with an overlong wait turned into a failure.
    #[must_use]
    pub(crate) fn judged(mut self, now: Timestamp) -> Self {
        if self.time_left(now).is_some_and(|left| !left.is_positive())
            && let Progress::Waiting { reason, message, .. } = self.progress
        {
            self.progress = Progress::Failed {
                what: Failure::Begin,
                reason,
                message,
            };
        }
        self
    }

    /// The remaining time that Flux may wait.
    pub(crate) fn time_left(&self, now: Timestamp) -> Option<SignedDuration> {
        match &self.progress {
            Progress::Waiting { since, .. } => Some(WAIT_TIMEOUT - now.duration_since((*since)?)),
            _ => None,
        }
    }
}

/// `Ready` is current only if both the condition and the status have the current generation: each survives a change of
/// the object. The deletion itself is a new generation, and does not end what Flux does for the one before.
fn progress(data: &Value, generation: Option<i64>, suspended: bool, terminating: bool) -> Progress {
    let conditions = data.pointer("/status/conditions").and_then(Value::as_array);
    let ready = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == "Ready");
    let waiting = || {
        let words = if suspended {
            "the HelmRelease is suspended: resume it with flux resume"
        } else {
            "Flux has not begun"
        };
        Progress::Working(words.into())
    };
    let Some(ready) = ready else { return waiting() };
    let speaks_of_now = ready["observedGeneration"].as_i64().is_none_or(|observed| {
        Some(observed) == generation || terminating && observed.checked_add(1) == generation
    });
    if !speaks_of_now {
        return waiting();
    }
    let said = |field: &str| ready[field].as_str().unwrap_or_default().to_owned();
    match ready["status"].as_str() {
        Some("True") => {
            let observed = data.pointer("/status/observedGeneration").and_then(Value::as_i64);
            if observed == generation {
                Progress::Done
            } else {
                Progress::Working(said("message"))
            }
        }
        Some("False") => {
            let (reason, message) = (said("reason"), said("message"));
            match failure(&reason) {
                Some(what) => Progress::Failed {
                    what,
                    reason,
                    message,
                },
                None => Progress::Waiting {
                    reason,
                    message,
                    since: said("lastTransitionTime").parse().ok(),
                },
            }
        }
        _ => Progress::Working(said("message")),
    }
}

/// Flux reports that it is working by a `Ready` that is Unknown.
fn working_since(data: &Value) -> Option<Timestamp> {
    let conditions = data.pointer("/status/conditions")?.as_array()?;
    let ready = conditions.iter().find(|condition| condition["type"] == "Ready")?;
    let since = ready["lastTransitionTime"]
        .as_str()
        .filter(|_| ready["status"] == "Unknown")?;
    since.parse().ok()
}

/// The newest deployed release: a failed upgrade leaves the previous one in the history.
fn running(data: &Value) -> Option<Running> {
    let history = data.pointer("/status/history").and_then(Value::as_array);
    let deployed = history
        .into_iter()
        .flatten()
        .find(|release| matches!(release["status"].as_str(), Some("deployed" | "superseded")));
    if let Some(release) = deployed {
        return Some(Running {
            chart: release["chartVersion"].as_str().unwrap_or_default().to_owned(),
            version: release["appVersion"]
                .as_str()
                .and_then(|version| version.parse().ok()),
        });
    }
    // The oldest Flux has no history.
    let applied = data.pointer("/status/lastAppliedRevision")?.as_str()?;
    Some(Running {
        chart: applied.to_owned(),
        version: None,
    })
}

#[cfg(test)]
mod tests;
