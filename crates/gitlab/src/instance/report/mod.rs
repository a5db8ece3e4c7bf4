//! Builds the status. A condition is True only if it was observed in this reconcile.

mod conditions;

use std::time::Duration;

use jiff::Timestamp;
use stanchion_api::GitlabInstance;
use stanchion_api::gitlab::{GitlabInstanceStatus, Phase, condition};
use stanchion_kernel::apply::is_owned;
use stanchion_kernel::condition::{Conditions, Truth, find};
use stanchion_kernel::events::{EventRecord, Severity, TransitionEvent};
use stanchion_kernel::text::shorten;
use stanchion_kernel::{Class, Outcome, Problem, Report};

use super::GitlabController;
use super::observe::{Current, Observed};
use super::prerequisites::{Blocker, Prerequisites};
use super::target::Wanted;
use crate::flux::{Progress, Release};
use crate::storage::Derived;

/// Every condition of this kind.
pub(crate) const CONDITIONS: &[&str] = &[
    condition::READY,
    condition::POSTGRES_READY,
    condition::REDIS_READY,
    condition::ELASTICSEARCH_READY,
    condition::OBJECT_STORAGE_READY,
    condition::RELEASED,
];

/// The most bytes of Flux's message that are repeated.
const LONGEST_QUOTE: usize = 1024;

/// Events on transitions of conditions.
pub(crate) const TRANSITION_EVENTS: &[TransitionEvent] = &[TransitionEvent {
    condition: condition::READY,
    status: "True",
    kind: Severity::Normal,
    action: "Reconcile",
}];

type InstanceOutcome<'a> = Outcome<'a, GitlabController>;

/// The status after a pass.
pub(crate) fn report(
    instance: &GitlabInstance,
    outcome: &InstanceOutcome<'_>,
    now: Timestamp,
) -> Report<GitlabInstanceStatus> {
    let status = instance.status.clone().unwrap_or_default();
    let mut conditions = Conditions::new(&status.conditions, instance.metadata.generation, now);
    let mut report = match (outcome.target.zip(outcome.observed), outcome.problem) {
        (Some((wanted, observed)), _) => present(status, &mut conditions, wanted, observed, outcome, now),
        (None, Some(problem)) => unseen(instance, status, &mut conditions, problem),
        (None, None) => Report::new(status),
    };
    report.status.conditions = conditions.finish();
    report
}

pub(crate) fn report_suspended(instance: &GitlabInstance, now: Timestamp) -> Report<GitlabInstanceStatus> {
    let mut status = instance.status.clone().unwrap_or_default();
    status.phase = Some(Phase::Suspended);
    let words = "suspended: the operator changes nothing until spec.suspend is false";
    status.message = Some(words.into());
    // An instance that was never observed only reports that; otherwise the observed conditions stay.
    if find(&status.conditions, condition::READY).is_none() {
        let mut conditions = Conditions::new(&status.conditions, instance.metadata.generation, now);
        conditions.set(condition::READY, Truth::Unknown, "Suspended", words);
        status.conditions = conditions.finish();
    }
    Report {
        idle_reason: "Suspended",
        ..Report::new(status)
    }
}

/// A reconcile that observed nothing. A transient error does not change the state of a running instance.
fn unseen(
    instance: &GitlabInstance,
    status: GitlabInstanceStatus,
    conditions: &mut Conditions,
    problem: &Problem,
) -> Report<GitlabInstanceStatus> {
    let mut report = Report::new(status);
    let same_spec = report.status.observed_generation == instance.metadata.generation;
    if problem.class == Class::Transient && same_spec && report.status.phase.is_some() {
        return report;
    }
    let phase = if problem.reaction().failed {
        Phase::Failed
    } else {
        Phase::Pending
    };
    conclude(
        &mut report,
        conditions,
        phase,
        (Truth::False, problem.reason, &problem.message),
    );
    report
}

/// A reconcile that observed the instance, with any later result.
fn present(
    mut status: GitlabInstanceStatus,
    said: &mut Conditions,
    wanted: &Wanted,
    observed: &Observed,
    outcome: &InstanceOutcome<'_>,
    now: Timestamp,
) -> Report<GitlabInstanceStatus> {
    let Observed {
        current,
        prerequisites,
    } = observed;
    let release = outcome
        .applied
        .release()
        .map(Release::of)
        .or(prerequisites.release.clone())
        .map(|release| release.judged(now));
    set_fields(&mut status, wanted, current, prerequisites, release.as_ref());
    conditions::backends(said, wanted, current, prerequisites);
    conditions::released(said, release.as_ref());
    let is_up = release.as_ref().is_some_and(|release| release.running.is_some());
    let failure = outcome.problem.filter(|_| !outcome.blocked);
    let (phase, ready) = match (failure, prerequisites.unmet(), &release) {
        (Some(problem), _, _) => {
            let phase = if problem.reaction().failed {
                Phase::Failed
            } else {
                Phase::Deploying
            };
            (
                phase,
                (Truth::False, problem.reason.to_owned(), problem.message.clone()),
            )
        }
        (None, Some(blocker), _) => (
            blocked(blocker, is_up),
            (Truth::False, blocker.reason.to_owned(), blocker.message.clone()),
        ),
        (None, None, Some(release)) => progress(release, prerequisites.held(), is_up, &wanted.namespace),
        // Nothing blocked it and nothing was written: there is nothing to report yet.
        (None, None, None) => {
            let words = "there is no release yet";
            (
                Phase::Deploying,
                (Truth::False, "ReleaseMissing".to_owned(), words.to_owned()),
            )
        }
    };
    let mut report = Report::new(status);
    let time_left = release.as_ref().and_then(|release| release.time_left(now));
    report.requeue_after = time_left.and_then(|left| Duration::try_from(left).ok());
    let (truth, reason, message) = &ready;
    conclude(&mut report, said, phase, (*truth, reason, message));
    report
}

/// The phase of a blocked instance. A running GitLab keeps running without a backend's operator.
fn blocked(blocker: &Blocker, is_up: bool) -> Phase {
    match blocker.phase {
        Phase::Provisioning if is_up => Phase::Degraded,
        phase => phase,
    }
}

/// The phase of an instance whose release is written.
fn progress(
    release: &Release,
    held: Option<&Blocker>,
    is_up: bool,
    namespace: &str,
) -> (Phase, (Truth, String, String)) {
    let broken = if is_up { Phase::Degraded } else { Phase::Failed };
    if let Some(words) = release.forbidden(namespace) {
        return (
            broken,
            (Truth::False, "ReleaseForbidden".into(), refused(release, words)),
        );
    }
    match (&release.progress, held) {
        (Progress::Failed { reason, message, .. }, _) => {
            (broken, (Truth::False, reason.clone(), message.clone()))
        }
        (Progress::Working(words), _) => (
            Phase::Deploying,
            (Truth::False, "ReleaseAtWork".into(), words.clone()),
        ),
        (Progress::Waiting { reason, message, .. }, _) => {
            (Phase::Deploying, (Truth::False, reason.clone(), message.clone()))
        }
        (Progress::Done, Some(held)) => (
            held.phase,
            (Truth::False, held.reason.into(), held.message.clone()),
        ),
        (Progress::Done, None) => (
            Phase::Ready,
            (
                Truth::True,
                "ReleaseReady".into(),
                "GitLab is installed as the spec says".into(),
            ),
        ),
    }
}

/// What the chart may not create, and possible solutions.
fn refused(release: &Release, words: &str) -> String {
    format!(
        "the chart wants something that ServiceAccount {} may not create, which is what Flux installs as: {}. Switch it off \
         in helm.values; or let an administrator give that account the permission, or name an account that has it in \
         GitlabProfile.spec.release.serviceAccountName",
        release.account.as_deref().unwrap_or_default(),
        shorten(words.trim_end_matches('.'), LONGEST_QUOTE)
    )
}

/// Sets the fields with versions, addresses and names.
fn set_fields(
    status: &mut GitlabInstanceStatus,
    wanted: &Wanted,
    current: &Current,
    prerequisites: &Prerequisites,
    release: Option<&Release>,
) {
    status.host = Some(format!("https://{}", wanted.spec.domains.gitlab));
    if let Ok(upgrade) = &prerequisites.upgrade {
        let running = upgrade
            .running
            .or(release.and_then(|release| release.running.as_ref()?.version));
        // The last version may be known for a database on which nothing runs now.
        let by_helm = current.helm.as_ref().and_then(|helm| helm.as_ref().ok());
        let runs = release.is_some_and(|release| release.running.is_some())
            || by_helm.is_some_and(|deployed| deployed.runs);
        if runs {
            status.observed_version = running.map(|version| version.to_string());
        } else if release.is_none() {
            status.observed_version = None;
        }
        status.installed_version = running
            .map(|version| version.to_string())
            .or(status.installed_version.take());
        status.target_version = upgrade.target.map(|target| target.to_string());
        status.upgrade_path = upgrade.path.iter().map(ToString::to_string).collect();
    } else {
        // These belong to another spec.
        status.target_version = None;
        status.upgrade_path.clear();
    }
    if let Some(release) = release {
        status.chart_version = Some(release.chart.clone());
    }
    status.elasticsearch = prerequisites.elasticsearch.as_ref().ok().cloned().flatten();
    // A Secret of that name that somebody else created is not deleted with the instance.
    let is_theirs = |name: &String| {
        let live = current.secrets.get(name);
        live.is_some_and(|secret| {
            !is_owned(&secret.metadata, &current.parent) && !wanted.secrets.contains(name)
        })
    };
    let stored = prerequisites.storage.as_ref().is_ok_and(Option::is_some);
    let made = Derived::names(&wanted.name).into_iter();
    status.secrets = made
        .filter(|name| (stored || current.secrets.contains_key(name)) && !is_theirs(name))
        .collect();
}

fn conclude(
    report: &mut Report<GitlabInstanceStatus>,
    conditions: &mut Conditions,
    phase: Phase,
    (truth, reason, message): (Truth, &str, &str),
) {
    let before = find(&report.status.conditions, condition::READY).map(|ready| ready.reason.as_str());
    let is_bad = matches!(phase, Phase::Failed | Phase::Degraded);
    let is_news = report.status.message.as_deref() != Some(message) || report.status.phase != Some(phase);
    if is_bad && is_news {
        report.events = vec![EventRecord::warning(reason, "Reconcile", message)];
    } else if !is_bad && phase != Phase::Ready && before != Some(reason) {
        // The progress changes often, what the instance waits for seldom.
        report.events = vec![EventRecord::normal(reason, "Wait", message)];
    }
    conditions.set(condition::READY, truth, reason, message);
    report.status.phase = Some(phase);
    report.status.message = Some(message.to_owned());
}
