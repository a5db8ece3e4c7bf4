//! Builds the status. A condition is True only if it was observed in this reconcile.

mod components;
mod dependencies;
mod failure;
mod rotation;
#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::Timestamp;
use stanchion_api::SupabaseProject;
use stanchion_api::supabase::{ComponentPhase, Phase, SupabaseProjectStatus, condition};
use stanchion_kernel::condition::{Conditions, Truth, find};
use stanchion_kernel::events::{EventRecord, Severity, TransitionEvent};
use stanchion_kernel::{Outcome, Report};

use super::ProjectController;
use super::apply::{Applied, Stage};
use super::observe::{ChildrenView, Observed};
use super::plan::{DatabasePlan, Plan};
use super::reasons::{NetworkReason, ReadyReason};
use super::render_inputs::RenderInputs;
use super::target::Wanted;
use crate::components::ALL;

pub(super) type ProjectOutcome<'a> = Outcome<'a, ProjectController>;

/// Every condition of this kind: these, and one for each component.
#[allow(clippy::indexing_slicing, reason = "it is checked by the compiler")]
pub(crate) const CONDITIONS: &[&str] = &{
    let mut all = [condition::READY; WHOLE.len() + ALL.len()];
    let mut index = 0;
    while index < all.len() {
        all[index] = if index < WHOLE.len() {
            WHOLE[index]
        } else {
            ALL[index - WHOLE.len()].condition
        };
        index += 1;
    }
    all
};

/// The conditions of the whole project.
const WHOLE: &[&str] = &[
    condition::READY,
    condition::PROGRESSING,
    condition::AVAILABLE,
    condition::DEGRADED,
    condition::POSTGRESQL_CONNECTED,
    condition::S3_CONNECTED,
    condition::NETWORK_READY,
    condition::SECRETS_READY,
];

/// Events on transitions of conditions.
pub(crate) const TRANSITION_EVENTS: &[TransitionEvent] = &[TransitionEvent {
    condition: condition::DEGRADED,
    status: "True",
    kind: Severity::Warning,
    action: "Reconcile",
}];

/// How long the status of a rollout stays: otherwise each pod that becomes ready would be a write.
const STANDS: Duration = Duration::from_secs(30);

/// The status after a reconcile.
pub(crate) fn report(
    project: &SupabaseProject,
    outcome: &ProjectOutcome<'_>,
    now: Timestamp,
) -> Report<SupabaseProjectStatus> {
    let mut status = project.status.clone().unwrap_or_default();
    let mut conditions = Conditions::new(&status.conditions, project.metadata.generation, now);
    if let Some(observed) = outcome.observed {
        dependencies::report(&mut status, &mut conditions, observed, outcome, now);
    }
    let mut report = match (outcome.problem, outcome.target.zip(outcome.observed)) {
        (Some(problem), _) => failure::report(project, status, &mut conditions, outcome, problem, now),
        (None, Some((wanted, observed))) => {
            complete(project, status, &mut conditions, (wanted, observed), outcome, now)
        }
        (None, None) => Report::new(status),
    };
    report.status.conditions = conditions.finish();
    finish_transitions(project, &mut report, now);
    report
}

pub(crate) fn suspended(project: &SupabaseProject, now: Timestamp) -> Report<SupabaseProjectStatus> {
    let mut status = project.status.clone().unwrap_or_default();
    status.phase = Some(Phase::Suspended);
    let words = "suspended: the operator changes nothing until spec.suspend is false";
    status.message = Some(words.into());
    // A project that was never observed only reports that; otherwise the observed conditions stay.
    if find(&status.conditions, condition::READY).is_none() {
        let mut conditions = Conditions::new(&status.conditions, project.metadata.generation, now);
        conditions.set(condition::READY, Truth::Unknown, "Suspended", words);
        status.conditions = conditions.finish();
    }
    let mut report = Report {
        idle_reason: "Suspended",
        ..Report::new(status)
    };
    finish_transitions(project, &mut report, now);
    report
}

/// The phase of a new project, written before a long step begins. It is written once: not after a failure or an
/// interruption, and not for an update.
pub(crate) fn pre_apply_status(project: &SupabaseProject, plan: &Plan) -> Option<SupabaseProjectStatus> {
    let status = project.status.clone().unwrap_or_default();
    let Plan::Ensure(work) = plan else { return None };
    let (phase, message) = match (&work.database, &work.keys) {
        (DatabasePlan::Prepare(_), _) => (
            Phase::InitializingDatabase,
            "Initializing database schemas and roles",
        ),
        (DatabasePlan::Prepared(..), Some(_)) => {
            (Phase::DeployingSecrets, "Deploying secrets and credentials")
        }
        (DatabasePlan::Prepared(..), None) => return None,
    };
    let waited = match status.phase {
        None | Some(Phase::Pending | Phase::ValidatingDependencies) => true,
        Some(Phase::Failed) => matches!(
            ReadyReason::before(&status.conditions),
            Some(ReadyReason::DependencyValidationFailed | ReadyReason::InvalidSpec)
        ),
        _ => false,
    };
    (waited && status.components.is_empty()).then(|| SupabaseProjectStatus {
        phase: Some(phase),
        message: Some(message.into()),
        ..status
    })
}

/// A reconcile without a problem.
fn complete(
    project: &SupabaseProject,
    status: SupabaseProjectStatus,
    conditions: &mut Conditions,
    (wanted, observed): (&Wanted, &Observed),
    outcome: &ProjectOutcome<'_>,
    now: Timestamp,
) -> Report<SupabaseProjectStatus> {
    let view = (wanted, &observed.view);
    let is_early = outcome.applied.repaired || !observed.may_be_ready();
    match (outcome.applied.stage, &outcome.applied.render_inputs) {
        // The next reconcile checks the dependencies, and decides.
        (Stage::Dependencies, _) => Report::new(status),
        // The status would change again with the next pod, and other projects wait for their repair. The next reconcile,
        // after the first reconciles of these, reports what is true then. One that was not running waits for its check.
        _ if is_early && status.observed_generation == project.metadata.generation => Report {
            requeue_after: Some(view.1.next),
            ..Report::new(status)
        },
        (_, Some(inputs)) => present_report(project, status, conditions, view, inputs, outcome, now),
        (_, None) => rolled_out(project, status, conditions, view, outcome, now),
    }
}

/// A complete reconcile: the pods decide whether the project is ready.
fn present_report(
    project: &SupabaseProject,
    mut status: SupabaseProjectStatus,
    conditions: &mut Conditions,
    (wanted, view): (&Wanted, &ChildrenView),
    inputs: &RenderInputs,
    outcome: &ProjectOutcome<'_>,
    now: Timestamp,
) -> Report<SupabaseProjectStatus> {
    let (reason, said) = match inputs.keys.published_at {
        None => ("SecretsGenerated", String::new()),
        Some(_) => ("NewKeysPublished", rotation::published(wanted, &inputs.keys, now)),
    };
    conditions.set(condition::SECRETS_READY, Truth::True, reason, &said);
    let network = if wanted.spec.gateway.is_some() {
        NetworkReason::RouteConfigured
    } else {
        NetworkReason::ServicesConfigured
    };
    let warning = components::url_warning(wanted, inputs);
    let is_news = find(&status.conditions, condition::NETWORK_READY).map(|known| known.message.as_str())
        != Some(warning.as_str());
    conditions.set(condition::NETWORK_READY, Truth::True, network.as_str(), &warning);
    status.endpoints = Some(components::endpoints(wanted, inputs));
    status.keys = Some(inputs.keys.clone());
    let database = outcome.applied.database.as_ref();
    status.login_suffix = database
        .map(|database| database.names.suffix().to_owned())
        .or(status.login_suffix);
    let mut report = rolled_out(project, status, conditions, (wanted, view), outcome, now);
    if is_news && !warning.is_empty() {
        report
            .events
            .push(EventRecord::warning("PublicURLMissing", "Reconcile", warning));
    }
    report
}

/// The progress of the rollout.
fn rolled_out(
    project: &SupabaseProject,
    mut status: SupabaseProjectStatus,
    conditions: &mut Conditions,
    (wanted, view): (&Wanted, &ChildrenView),
    outcome: &ProjectOutcome<'_>,
    now: Timestamp,
) -> Report<SupabaseProjectStatus> {
    let previous = status.phase;
    let phase = rollout(
        project,
        &mut status,
        conditions,
        (wanted, view),
        outcome.applied,
        now,
    );
    let requeue_after = match phase {
        Phase::Running => next_look(&status, view, now),
        Phase::Failed => view.retry_delay,
        // Report then what is not reported now.
        _ => view.retry_delay.min(STANDS),
    };
    Report {
        events: events(outcome.applied, previous, phase),
        requeue_after: Some(requeue_after),
        ..Report::new(status)
    }
}

/// The state of the components, and what follows from it for the project.
fn rollout(
    project: &SupabaseProject,
    status: &mut SupabaseProjectStatus,
    conditions: &mut Conditions,
    (wanted, view): (&Wanted, &ChildrenView),
    applied: &Applied,
    now: Timestamp,
) -> Phase {
    let previous = status.phase;
    let overview = components::report(status, conditions, wanted, view, applied, now);
    // It is set as soon as the project runs, and stays: the phase says nothing after an outage or a suspension.
    let was_up = find(&status.conditions, condition::DEGRADED).is_some();
    let phase = match &overview {
        components::Overview::Ready => Phase::Running,
        components::Overview::Failed(_) => Phase::Failed,
        components::Overview::Rolling(_) if was_up => Phase::Updating,
        components::Overview::Rolling(_) => Phase::DeployingComponents,
    };
    let same_spec = status.observed_generation == project.metadata.generation;
    let ours = view.repaired || !applied.rolled.is_empty();
    let lost = previous == Some(Phase::Running) && same_spec && !ours;
    summary(conditions, &overview, lost);
    status.phase = Some(phase);
    status.message = Some(overview.message());
    phase
}

/// The events of a complete reconcile.
fn events(applied: &Applied, previous: Option<Phase>, phase: Phase) -> Vec<EventRecord> {
    let runs = phase == Phase::Running && previous != Some(Phase::Running);
    let rows = [
        (
            applied.keys_written,
            "SecretsCreated",
            "JWT secrets generated successfully",
        ),
        (
            !applied.initialised.is_empty(),
            "DatabaseInitialized",
            "PostgreSQL database initialized successfully",
        ),
        (runs, "PhaseChanged", "SupabaseProject is now Running"),
    ];
    let events = rows.into_iter().filter(|(happened, ..)| *happened);
    events
        .map(|(_, reason, note)| EventRecord::normal(reason, "Reconcile", note))
        .collect()
}

/// The four conditions of the whole project.
fn summary(conditions: &mut Conditions, overview: &components::Overview, lost: bool) {
    use components::Overview::{Failed, Ready, Rolling};
    let message = overview.message();
    let (ready, reason) = match overview {
        Ready => (Truth::True, ReadyReason::AllComponentsReady),
        Rolling(_) => (Truth::False, ReadyReason::ComponentsNotReady),
        Failed(_) => (Truth::False, ReadyReason::ComponentFailed),
    };
    let reason = reason.as_str();
    let said = if ready == Truth::True {
        "All components are running"
    } else {
        &message
    };
    conditions.set(condition::READY, ready, reason, said);
    match overview {
        Ready => conditions.set(
            condition::PROGRESSING,
            Truth::False,
            "ReconciliationComplete",
            "Reconciliation complete",
        ),
        Rolling(_) => conditions.set(condition::PROGRESSING, Truth::True, "Reconciling", &message),
        Failed(_) => conditions.set(condition::PROGRESSING, Truth::False, reason, &message),
    }
    match overview {
        Failed(_) => conditions.set(condition::DEGRADED, Truth::True, reason, &message),
        Rolling(_) if lost => conditions.set(condition::DEGRADED, Truth::True, reason, &message),
        Rolling(_) => {}
        Ready => conditions.set(condition::DEGRADED, Truth::False, reason, ""),
    }
}

/// When to reconcile although nothing changed: for the dependency check, or for the end of the old keys.
fn next_look(status: &SupabaseProjectStatus, view: &ChildrenView, now: Timestamp) -> Duration {
    let until = status.keys.as_ref().and_then(|keys| keys.previous_until);
    let left = until.map(|until| until.duration_since(now).unsigned_abs());
    left.map_or(view.next, |left| left.min(view.next))
        .max(Duration::from_secs(1))
}

/// Keeps values that change without being relevant, and records the time of relevant changes.
fn finish_transitions(project: &SupabaseProject, report: &mut Report<SupabaseProjectStatus>, now: Timestamp) {
    let Some(before) = &project.status else {
        report.status.last_reconcile_time = Some(now);
        return;
    };
    let status = &mut report.status;
    status.observed_generation = project.metadata.generation;
    status.last_reconcile_time = before.last_reconcile_time;
    if status == before {
        return;
    }
    let rolling = matches!(status.phase, Some(Phase::DeployingComponents | Phase::Updating));
    let same = status.phase == before.phase && status.observed_generation == before.observed_generation;
    let failed = |status: &SupabaseProjectStatus| {
        status
            .components
            .values()
            .filter(|component| component.phase == Some(ComponentPhase::Failed))
            .count()
    };
    let recent = before
        .last_reconcile_time
        .is_some_and(|said| now.duration_since(said).unsigned_abs() < STANDS);
    if rolling && same && recent && failed(status) == failed(before) {
        *status = before.clone();
        return;
    }
    status.last_reconcile_time = Some(now);
}
