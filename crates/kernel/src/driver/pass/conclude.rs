//! The end of a pass: the report, the status, the events.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::core::object::HasStatus;
use kube::{Api, Resource};
use tokio::time::{Instant, sleep};
use tracing::{debug, error, info};

use super::{APPLY, Pass, panicked};
use crate::ambient;
use crate::condition::Conditions;
use crate::driver::controller::{Read, Shared};
use crate::events::transitions;
use crate::problem::{Cause, Class, Problem, Retry};
use crate::reconciler::{Outcome, Reconciler, Report, StatusOf};
use crate::status::{self, Status};
use crate::telemetry::metrics::Finish;

impl<R: Reconciler> Pass<'_, R> {
    /// Reports, writes the changes, and decides when to requeue.
    pub(super) async fn conclude(self, problem: Option<Problem>) -> (Option<Duration>, Finish) {
        let (problem, report) = self.report(problem);
        let mut problem = problem.map(|problem| self.kept_at(problem));
        let requeue_after = report.requeue_after;
        match self.publish(report).await {
            Ok(()) => {}
            // The object is gone.
            Err(unwritten) if unwritten.is(Cause::NotFound) => {
                debug!("the object is gone");
                self.clean_up().await;
            }
            // The first problem is the one to act on; but it is not in the status yet, so the object must be retried.
            Err(unwritten) => {
                let first = problem.map(|problem| problem.with_retry(Retry::Backoff));
                problem = first.or(Some(unwritten));
            }
        }
        self.shared.end(&self.object, problem.as_ref(), requeue_after)
    }

    /// A cleanup is never given up. What stands in its way may go without a change of the object, and nobody else takes the
    /// finalizer away: a problem that a living object would rest with is looked at again as one that waits for a person.
    fn kept_at(&self, problem: Problem) -> Problem {
        if self.is_deleting() && problem.reaction().retry == Retry::Never {
            return problem.with_retry(Class::Human.reaction().retry);
        }
        problem
    }

    fn report(&self, problem: Option<Problem>) -> (Option<Problem>, Report<StatusOf<R>>) {
        let now = ambient::now();
        let report = |problem: Option<&Problem>| {
            let outcome = Outcome {
                target: self.target.as_ref(),
                observed: self.observed.as_ref(),
                applied: &self.applied,
                problem,
            };
            std::panic::catch_unwind(AssertUnwindSafe(|| R::report(&self.object, &outcome, now)))
        };
        let (problem, mut report) = match report(problem.as_ref()) {
            Ok(report) => (problem, report),
            Err(panic) => {
                let status = self.object.status().cloned().unwrap_or_default();
                (Some(panicked("report", panic.as_ref())), Report::new(status))
            }
        };
        let generation = self.object.meta().generation;
        report.status.set_observed_generation(generation);
        let mut conditions = Conditions::new(report.status.conditions(), generation, now);
        conditions.set_kstatus(problem.as_ref(), report.idle_reason);
        *report.status.conditions_mut() = conditions.finish();
        (problem, report)
    }

    /// Sends the events of a cleanup: the status is deleted with the object.
    pub(super) async fn publish_cleanup_events(&self) {
        let (_, report) = self.report(None);
        let regarding = self.object.object_ref(&());
        for event in &report.events {
            self.shared.recorder.publish(&regarding, event).await;
        }
    }

    /// Writes the status and sends events for its transitions.
    async fn publish(&self, report: Report<StatusOf<R>>) -> Result<(), Problem> {
        let before = self.object.status().cloned().unwrap_or_default();
        let transitions = transitions(
            before.conditions(),
            report.status.conditions(),
            R::TRANSITION_EVENTS,
        );
        write_status::<R>(self.shared, &self.api, &self.object, report.status).await?;
        let regarding = self.object.object_ref(&());
        for event in transitions.iter().chain(&report.events) {
            self.shared.recorder.publish(&regarding, event).await;
        }
        Ok(())
    }

    /// Cleans up after an object that is gone although it has our finalizer. The API server checks the finalizers that
    /// it read when the DELETE arrived: one that is added after that does not block the deletion. Only this pass knows
    /// what was created, so it retries the cleanup for as long as a pass may take.
    async fn clean_up(&self) {
        if R::FINALIZER.is_none() || self.is_deleting() || self.step != APPLY {
            return;
        }
        let mut object = self.object.as_ref().clone();
        object.meta_mut().deletion_timestamp = Some(Time(ambient::now()));
        let object = Arc::new(object);
        let end = Instant::now() + self.shared.settings.deadline;
        for failures in 1.. {
            let mut pass = Pass::new(self.shared, Arc::clone(&object), Vec::new());
            pass.gone = true;
            let Err(problem) = pass.guarded_steps().await else {
                info!("cleaned up after an object that was deleted while it was made");
                return;
            };
            let delay = self.shared.settings.backoff.delay(failures);
            if Instant::now() + delay > end {
                error!(problem = ?problem, "the object is gone, and what the operator created for it is left behind");
                return;
            }
            sleep(delay).await;
        }
    }
}

/// Writes a status that differs from the current one; `None` if there was nothing to write.
pub(super) async fn write_status<R: Reconciler>(
    shared: &Shared<R>,
    api: &Api<Read<R>>,
    object: &R::Object,
    status: StatusOf<R>,
) -> Result<Option<Read<R>>, Problem> {
    let ours: Vec<&str> = [crate::condition::RECONCILING, crate::condition::STALLED]
        .into_iter()
        .chain(R::CONDITIONS.iter().copied())
        .collect();
    if status::is_shown(object, &status, &ours) {
        return Ok(None);
    }
    let written = status::write(api, object, &status, &ours, &shared.field_manager).await?;
    if let Some(written) = written.clone().into_whole() {
        shared.memory.wrote(&written);
    }
    Ok(Some(written))
}
