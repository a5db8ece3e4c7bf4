//! Reports a failed reconcile.

use jiff::Timestamp;
use stanchion_api::SupabaseProject;
use stanchion_api::supabase::{Phase, SupabaseProjectStatus, condition};
use stanchion_kernel::condition::{Conditions, Truth};
use stanchion_kernel::events::EventRecord;
use stanchion_kernel::problem::Cause;
use stanchion_kernel::{Class, Problem, Report};

use super::super::apply::Stage;
use super::super::observe::Observed;
use super::super::reasons::ReadyReason;
use super::{ProjectOutcome, components};

/// For each step that can fail: the phase, the prefix of the message, the reason of `Ready`, and the event.
fn words(stage: Stage) -> (Phase, &'static str, ReadyReason, &'static str) {
    match stage {
        Stage::Dependencies => (
            Phase::ValidatingDependencies,
            "Dependency validation failed",
            ReadyReason::DependencyValidationFailed,
            "ValidationFailed",
        ),
        Stage::Secrets => (
            Phase::DeployingSecrets,
            "Secret generation failed",
            ReadyReason::SecretGenerationFailed,
            "SecretsFailed",
        ),
        Stage::Database => (
            Phase::InitializingDatabase,
            "Database initialization failed",
            ReadyReason::DatabaseInitializationFailed,
            "DatabaseInitFailed",
        ),
        Stage::Components | Stage::Done => (
            Phase::DeployingComponents,
            "Component deployment failed",
            ReadyReason::ComponentDeploymentFailed,
            "DeploymentFailed",
        ),
    }
}

/// The status of a project with a problem.
pub(super) fn report(
    project: &SupabaseProject,
    mut status: SupabaseProjectStatus,
    conditions: &mut Conditions,
    outcome: &ProjectOutcome<'_>,
    problem: &Problem,
    now: Timestamp,
) -> Report<SupabaseProjectStatus> {
    let (meanwhile, prefix, reason, event) = if problem.is(Cause::InvalidSpec) {
        (
            Phase::Failed,
            "Invalid spec",
            ReadyReason::InvalidSpec,
            "ValidationFailed",
        )
    } else {
        words(outcome.applied.stage)
    };
    // A transient error of the API server does not change the state of a running project: its pods were not read.
    let checks = outcome.observed.and_then(Observed::checks);
    let contact_lost = checks.is_some_and(|(postgres, s3)| postgres.is_lost() || s3.is_lost());
    let same_spec = status.observed_generation == project.metadata.generation;
    // The children are in the cache: their view is current, whatever else failed. A project that was never deployed has
    // none to report.
    let seen = outcome.target.zip(outcome.observed);
    let seen = seen.filter(|_| !status.components.is_empty());
    if problem.class == Class::Transient && !contact_lost && same_spec && status.phase == Some(Phase::Running)
    {
        if let Some((wanted, observed)) = seen {
            let view = (&**wanted, &observed.view);
            super::rollout(project, &mut status, conditions, view, outcome.applied, now);
        }
        return Report::new(status);
    }
    if let Some((wanted, observed)) = seen {
        let (view, applied) = (&observed.view, outcome.applied);
        components::report(&mut status, conditions, wanted, view, applied, now);
    }
    let reason = reason.as_str();
    let message = format!("{prefix}: {problem}");
    let is_news = status.message.as_deref() != Some(&message);
    status.phase = Some(if problem.reaction().failed {
        Phase::Failed
    } else {
        meanwhile
    });
    status.message = Some(message.clone());
    conditions.set(condition::READY, Truth::False, reason, &message);
    let progressing = !problem.reaction().failed;
    conditions.set(condition::PROGRESSING, progressing.into(), reason, &message);
    match outcome.applied.stage {
        Stage::Secrets => conditions.set(condition::SECRETS_READY, Truth::False, problem.reason, &message),
        Stage::Components => conditions.set(condition::NETWORK_READY, Truth::False, problem.reason, &message),
        _ => {}
    }
    if contact_lost && status.components.values().any(|component| component.ready) {
        conditions.set(condition::DEGRADED, Truth::True, reason, &message);
    }
    let mut report = Report::new(status);
    if is_news {
        report.events = vec![EventRecord::warning(event, "Reconcile", message)];
    }
    report
}
