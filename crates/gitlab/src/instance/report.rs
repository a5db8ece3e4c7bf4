//! How it went, as a status. True is only what was seen in this pass.

use std::time::Duration;

use jiff::Timestamp;
use stanchion_api::GitlabInstance;
use stanchion_api::gitlab::{Edition, GitlabInstanceStatus, Phase, condition};
use stanchion_kernel::condition::{Conditions, Truth};
use stanchion_kernel::events::{Announcement, Notice, Severity};
use stanchion_kernel::{Class, Outcome, Problem, Report};

use super::InstanceController;
use super::findings::{Finding, Findings, Obstacle};
use super::observe::{Observed, Seen};
use super::secrets;
use super::target::{Target, Wanted};
use crate::flux::{Progress, Release};
use crate::values;

/// Every condition that is written here.
pub const CONDITIONS: &[&str] = &[
    condition::READY,
    condition::POSTGRES_READY,
    condition::REDIS_READY,
    condition::ELASTICSEARCH_READY,
    condition::OBJECT_STORAGE_READY,
    condition::RELEASED,
];

/// What is told when it flips.
pub const ANNOUNCEMENTS: &[Announcement] = &[Announcement {
    condition: condition::READY,
    status: "True",
    kind: Severity::Normal,
    action: "Reconcile",
}];

/// When the database is asked again whether an upgrade may go on: nothing tells when its migrations are done.
const ASK_AGAIN: Duration = Duration::from_secs(60);

type Ended<'a> = Outcome<'a, InstanceController>;

/// The status after a pass.
pub fn report(
    instance: &GitlabInstance,
    outcome: &Ended<'_>,
    now: Timestamp,
) -> Report<GitlabInstanceStatus> {
    let mut status = instance.status.clone().unwrap_or_default();
    match (outcome.target, outcome.observed) {
        (Some(Target::Leaving(_)), _) => leaving(status, outcome.problem),
        (Some(Target::Suspended), _) => {
            status.phase = Some(Phase::Suspended);
            status.message = Some("suspended: nothing is touched until spec.suspend is false".into());
            Report {
                settled: "Suspended",
                ..Report::new(status)
            }
        }
        (Some(Target::Instance(wanted)), Some(Observed::Instance(seen))) => {
            let mut conditions = Conditions::new(&status.conditions, instance.metadata.generation, now);
            let mut report = present(status, &mut conditions, wanted, seen, outcome);
            report.status.conditions = conditions.finish();
            report
        }
        _ => {
            let mut conditions = Conditions::new(&status.conditions, instance.metadata.generation, now);
            let mut report = Report::new(status);
            if let Some(problem) = outcome.problem {
                unseen(instance, &mut report, &mut conditions, problem);
            }
            report.status.conditions = conditions.finish();
            report
        }
    }
}

/// What holds the end of an instance up.
fn leaving(mut status: GitlabInstanceStatus, problem: Option<&Problem>) -> Report<GitlabInstanceStatus> {
    if let Some(problem) = problem {
        status.phase = Some(Phase::Terminating);
        status.message = Some(problem.message.clone());
    }
    Report::new(status)
}

/// A pass that saw nothing. A hiccup says nothing about an instance that runs.
fn unseen(
    instance: &GitlabInstance,
    report: &mut Report<GitlabInstanceStatus>,
    conditions: &mut Conditions,
    problem: &Problem,
) {
    let same_spec = report.status.observed_generation == instance.metadata.generation;
    if problem.class == Class::Transient && same_spec && report.status.phase.is_some() {
        return;
    }
    let phase = if problem.reaction().failed {
        Phase::Failed
    } else {
        Phase::Pending
    };
    conclude(
        report,
        conditions,
        phase,
        (Truth::False, problem.reason, &problem.message),
    );
}

/// A pass that saw the instance, whatever came after.
fn present(
    mut status: GitlabInstanceStatus,
    conditions: &mut Conditions,
    wanted: &Wanted,
    seen: &Seen,
    outcome: &Ended<'_>,
) -> Report<GitlabInstanceStatus> {
    let findings = Findings::of(wanted, seen);
    let release = outcome
        .applied
        .release
        .as_ref()
        .map(Release::of)
        .or(findings.release.clone());
    tell(&mut status, wanted, seen, &findings, release.as_ref());
    backends(conditions, wanted, &findings);
    released(conditions, release.as_ref());
    let is_up = release.as_ref().is_some_and(|release| release.running.is_some());
    let held = findings
        .course
        .as_ref()
        .ok()
        .and_then(|course| course.held.as_ref());
    let (phase, ready) = match (outcome.problem, &release) {
        (Some(problem), _) if held.is_none_or(|held| held.reason != problem.reason) => {
            let phase = blocked(&findings, problem, is_up);
            (
                phase,
                (Truth::False, problem.reason.to_owned(), problem.message.clone()),
            )
        }
        (_, Some(release)) => progress(release, held, is_up),
        (problem, None) => {
            let reason = problem.map_or("ReleaseMissing", |problem| problem.reason);
            let message = problem.map_or("there is no release yet", |problem| problem.message.as_str());
            (
                Phase::Deploying,
                (Truth::False, reason.to_owned(), message.to_owned()),
            )
        }
    };
    let mut report = Report::new(status);
    report.again = held.map(|_| ASK_AGAIN);
    let (truth, reason, message) = &ready;
    conclude(&mut report, conditions, phase, (*truth, reason, message));
    report
}

/// The phase of an instance with something in its way. What runs goes on running without a backend's operator.
fn blocked(findings: &Findings, problem: &Problem, is_up: bool) -> Phase {
    let obstacle = findings
        .before_ready()
        .filter(|obstacle| obstacle.reason == problem.reason);
    match obstacle.map(|obstacle| obstacle.phase) {
        Some(Phase::Provisioning) if is_up => Phase::Degraded,
        Some(phase) => phase,
        None if problem.reaction().failed => Phase::Failed,
        None => Phase::Deploying,
    }
}

/// The phase of an instance that was told to Flux.
fn progress(release: &Release, held: Option<&Obstacle>, is_up: bool) -> (Phase, (Truth, String, String)) {
    match (&release.progress, held) {
        (Progress::Failed { reason, message }, _) => {
            let phase = if is_up { Phase::Degraded } else { Phase::Failed };
            (phase, (Truth::False, reason.clone(), message.clone()))
        }
        (Progress::Working(words), _) => (
            Phase::Deploying,
            (Truth::False, "ReleaseAtWork".into(), words.clone()),
        ),
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

/// The fields that say what is where.
fn tell(
    status: &mut GitlabInstanceStatus,
    wanted: &Wanted,
    seen: &Seen,
    findings: &Findings,
    release: Option<&Release>,
) {
    status.host = Some(format!("https://{}", wanted.spec.domains.gitlab));
    if let Ok(course) = &findings.course {
        let running = course
            .running
            .or(release.and_then(|release| release.running.as_ref()?.version));
        status.observed_version = Some(running.unwrap_or(course.now.version).to_string());
        status.installed_version = running
            .map(|version| version.to_string())
            .or(status.installed_version.take());
        status.target_version = Some(course.target.to_string());
        status.upgrade_path = course.path.iter().map(ToString::to_string).collect();
    }
    if let Some(release) = release {
        status.chart_version = Some(release.chart.clone());
    }
    status.elasticsearch = findings.elasticsearch.as_ref().ok().cloned().flatten();
    let stored = findings.storage.as_ref().is_ok_and(Option::is_some);
    let made = secrets::names(&wanted.name).into_iter();
    status.secrets = made
        .filter(|name| stored || seen.secrets.contains_key(name))
        .collect();
}

/// What the instance stands on.
fn backends(conditions: &mut Conditions, wanted: &Wanted, findings: &Findings) {
    let spec = &wanted.spec;
    let how = |managed: bool, secret: bool| match (managed, secret) {
        (true, _) => "Provisioned",
        (_, true) => "Provided",
        _ => "InValues",
    };
    let known = findings.before_backends().is_none();
    if known || !spec.postgres.managed {
        let how = how(spec.postgres.managed, spec.postgres.credentials_secret.is_some());
        state(conditions, condition::POSTGRES_READY, &findings.postgres, how);
    }
    if known || !spec.redis.managed {
        let how = how(spec.redis.managed, spec.redis.credentials_secret.is_some());
        state(conditions, condition::REDIS_READY, &findings.redis, how);
    }
    match (spec.elasticsearch.managed, spec.edition) {
        (false, _) => conditions.clear(condition::ELASTICSEARCH_READY),
        (true, Edition::Ce) => conditions.set(
            condition::ELASTICSEARCH_READY,
            Truth::False,
            "EnterpriseOnly",
            "only the Enterprise Edition can use Elasticsearch, so none was made",
        ),
        (true, Edition::Ee) if known => {
            state(
                conditions,
                condition::ELASTICSEARCH_READY,
                &findings.elasticsearch,
                "Provisioned",
            );
        }
        (true, Edition::Ee) => {}
    }
    let given = spec.object_storage.credentials_secret.is_some();
    if given {
        state(
            conditions,
            condition::OBJECT_STORAGE_READY,
            &findings.storage,
            "Provided",
        );
    } else if values::names_object_storage(&spec.helm.values) {
        conditions.set(
            condition::OBJECT_STORAGE_READY,
            Truth::Unknown,
            "InValues",
            "the chart's values say where it is",
        );
    } else {
        conditions.set(
            condition::OBJECT_STORAGE_READY,
            Truth::False,
            "Bundled",
            "no objectStorage.credentialsSecret: the chart's own MinIO is used, which is not for production",
        );
    }
}

fn state<T>(conditions: &mut Conditions, kind: &str, finding: &Finding<Option<T>>, how: &str) {
    match finding {
        Ok(Some(_)) => conditions.set(kind, Truth::True, how, ""),
        Ok(None) => conditions.set(kind, Truth::Unknown, how, "the chart's values say where it is"),
        Err(obstacle) => conditions.set(kind, Truth::False, obstacle.reason, &obstacle.message),
    }
}

/// What Flux says.
fn released(conditions: &mut Conditions, release: Option<&Release>) {
    let Some(release) = release else {
        conditions.clear(condition::RELEASED);
        return;
    };
    match &release.progress {
        Progress::Done => conditions.set(condition::RELEASED, Truth::True, "Released", ""),
        Progress::Working(words) => conditions.set(condition::RELEASED, Truth::Unknown, "Working", words),
        Progress::Failed { reason, message } => {
            conditions.set(condition::RELEASED, Truth::False, reason, message);
        }
    }
}

fn conclude(
    report: &mut Report<GitlabInstanceStatus>,
    conditions: &mut Conditions,
    phase: Phase,
    (truth, reason, message): (Truth, &str, &str),
) {
    conditions.set(condition::READY, truth, reason, message);
    let is_bad = matches!(phase, Phase::Failed | Phase::Degraded);
    let is_news = report.status.message.as_deref() != Some(message);
    if is_bad && is_news {
        report.notices = vec![Notice::warning(reason, "Reconcile", message)];
    }
    report.status.phase = Some(phase);
    report.status.message = Some(message.to_owned());
}
