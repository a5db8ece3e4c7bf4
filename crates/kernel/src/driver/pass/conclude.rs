//! The end of a pass: the report, the status, the events, and when to requeue the object.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::core::object::HasStatus;
use kube::{Resource, ResourceExt as _};
use tokio::time::{Instant, sleep};
use tracing::{debug, error, info, warn};

use super::{APPLY, Incomplete, Pass, Subject, panicked};
use crate::ambient;
use crate::condition::Conditions;
use crate::driver::controller::{Read, Shared};
use crate::driver::memory::LastProblem;
use crate::driver::settings::jitter;
use crate::events::transitions;
use crate::problem::{Cause, Class, Problem, Retry};
use crate::reconciler::{Cleanup as _, CleanupOutcome, Outcome, Reconciler, Report, StatusOf, finalizer};
use crate::status::Status;
use crate::telemetry::metrics::Finish;

impl<R: Reconciler> Pass<'_, R> {
    /// Reports, writes the changes, and decides when to requeue.
    pub(super) async fn conclude(self, incomplete: Option<Incomplete>) -> (Option<Duration>, Finish) {
        let (incomplete, report) = self.report(incomplete);
        let mut incomplete = incomplete.map(|incomplete| incomplete.map(|problem| self.kept_at(problem)));
        let requeue_after = report.requeue_after;
        match self.publish(report).await {
            Ok(written) => self.note_late_apply(written.as_ref()),
            // The object is gone. The API server checks the finalizers that it read when the DELETE arrived: one that is
            // added after that does not block the deletion. Only this pass knows what was created.
            Err(unwritten) if unwritten.is(Cause::NotFound) && self.is_gone().await => {
                debug!("the object is gone");
                if self.has_applied() {
                    let Subject { shared, object, .. } = &self.subject;
                    clean_up(shared, object.as_ref().clone()).await;
                }
            }
            // The first problem is the one to act on; but it is not in the status yet, so the object must be retried.
            Err(unwritten) => {
                let first = incomplete.map(|first| first.map(|problem| problem.with_retry(Retry::Backoff)));
                incomplete = first.or(Some(Incomplete::Failed(unwritten)));
            }
        }
        let problem = incomplete.as_ref().map(Incomplete::problem);
        let Subject { shared, object, .. } = &self.subject;
        shared.end(object, problem, requeue_after)
    }

    /// Whether the API server no longer has the object. It also answers a write of the status with 404 and the object's
    /// name if the CRD has lost the status, and a cleanup would then destroy what a living object needs. If the API server
    /// does not say that the object is gone, the memory keeps the cleanup for the time when the watch does.
    async fn is_gone(&self) -> bool {
        let Subject {
            shared, api, object, ..
        } = &self.subject;
        let found = api.get_metadata(&object.name_any()).await;
        match found.map_err(Problem::from) {
            Ok(found) => found.metadata.uid != object.meta().uid,
            Err(problem) if problem.is(Cause::NotFound) => true,
            Err(problem) => {
                warn!(problem = ?problem, "cannot find out whether the object is gone");
                if self.has_applied() {
                    shared.memory.applied_late(object.as_ref().clone());
                }
                false
            }
        }
    }

    /// A cleanup is retried until it succeeds: what blocks it may disappear without a change of the object, and nothing
    /// else removes the finalizer. A problem that is not retried otherwise is retried like one that waits for a person.
    fn kept_at(&self, problem: Problem) -> Problem {
        if self.subject.is_deleting() && problem.reaction().retry == Retry::Never {
            return problem.with_retry(Class::Human.reaction().retry);
        }
        problem
    }

    fn report(&self, incomplete: Option<Incomplete>) -> (Option<Incomplete>, Report<StatusOf<R>>) {
        let now = ambient::now();
        let object = &self.subject.object;
        let report = AssertUnwindSafe(|| self.report_of_path(incomplete.as_ref(), now));
        let (incomplete, mut report) = match std::panic::catch_unwind(report) {
            Ok(report) => (incomplete, report),
            Err(panic) => {
                let status = object.status().cloned().unwrap_or_default();
                let problem = panicked("report", panic.as_ref());
                (Some(Incomplete::Failed(problem)), Report::new(status))
            }
        };
        let generation = object.meta().generation;
        report.status.set_observed_generation(generation);
        let mut conditions = Conditions::new(report.status.conditions(), generation, now);
        let problem = incomplete.as_ref().map(Incomplete::problem);
        conditions.set_kstatus(problem, report.idle_reason);
        *report.status.conditions_mut() = conditions.finish();
        (incomplete, report)
    }

    fn report_of_path(&self, incomplete: Option<&Incomplete>, now: Timestamp) -> Report<StatusOf<R>> {
        let object = self.subject.object.as_ref();
        let problem = incomplete.map(Incomplete::problem);
        let blocked = matches!(incomplete, Some(Incomplete::Blocked(_)));
        if let Some(progress) = &self.cleanup {
            let outcome = CleanupOutcome {
                target: &progress.target,
                observed: progress.observed.as_ref(),
                applied: &progress.applied,
                problem,
                blocked,
            };
            return R::Cleanup::report(object, &outcome, now);
        }
        if self.suspended && problem.is_none() {
            return R::report_suspended(object, now);
        }
        let progress = self.ensure.as_ref();
        let nothing = R::Applied::default();
        let outcome = Outcome {
            target: progress.map(|progress| &progress.target),
            observed: progress.and_then(|progress| progress.observed.as_ref()),
            applied: progress.map_or(&nothing, |progress| &progress.applied),
            problem,
            blocked,
        };
        R::report(object, &outcome, now)
    }

    /// Sends the events of a cleanup: the status is deleted with the object.
    pub(super) async fn publish_cleanup_events(&self) {
        let (_, report) = self.report(None);
        let Subject { shared, object, .. } = &self.subject;
        let regarding = object.object_ref(&());
        for event in &report.events {
            shared.recorder.publish(&regarding, event).await;
        }
    }

    /// Writes the status, if it differs, and sends events for its transitions. Returns what was written.
    async fn publish(&self, report: Report<StatusOf<R>>) -> Result<Option<Read<R>>, Problem> {
        let Subject { shared, object, .. } = &self.subject;
        let before = object.status().cloned().unwrap_or_default();
        let transitions = transitions(
            before.conditions(),
            report.status.conditions(),
            R::TRANSITION_EVENTS,
        );
        let written = self.subject.write_status(report.status).await?;
        let regarding = object.object_ref(&());
        for event in transitions.iter().chain(&report.events) {
            shared.recorder.publish(&regarding, event).await;
        }
        Ok(written)
    }

    /// Whether this pass may have created what our finalizer guards.
    fn has_applied(&self) -> bool {
        finalizer::<R>().is_some() && self.ensure.is_some() && self.subject.step == APPLY
    }

    /// Remembers an object that was deleted while this pass applied. If another replica has cleaned up before this pass
    /// created something, no later pass sees our finalizer, or even the object. An object that is not being deleted needs no
    /// such cleanup, even if an earlier pass could not find out whether it is gone.
    fn note_late_apply(&self, written: Option<&Read<R>>) {
        let memory = &self.subject.shared.memory;
        let Some(written) = written else { return };
        if written.meta().deletion_timestamp.is_none() {
            memory.forget_late(written.meta());
        } else if self.has_applied()
            && let Some(written) = written.clone().into_whole()
        {
            memory.applied_late(written);
        }
    }
}

/// Cleans up after an object that no later pass can clean up after: it is gone, or has lost our finalizer, although a pass
/// of this process has created something for it since. Retries for as long as a pass may take.
pub(super) async fn clean_up<R: Reconciler>(shared: &Shared<R>, mut object: R::Object) {
    object.meta_mut().deletion_timestamp = Some(Time(ambient::now()));
    let object = Arc::new(object);
    let end = Instant::now() + shared.settings.deadline;
    for failures in 1.. {
        let mut pass = Pass::new(shared, Arc::clone(&object), Vec::new());
        pass.subject.gone = true;
        let Err(incomplete) = pass.guarded_steps().await else {
            info!("cleaned up after an object that was deleted during its creation");
            return;
        };
        let delay = shared.settings.backoff.delay(failures);
        if Instant::now() + delay > end {
            let problem = incomplete.problem();
            error!(problem = ?problem, "the object is gone, and what the operator created for it is left behind");
            return;
        }
        sleep(delay).await;
    }
}

impl<R: Reconciler> Subject<'_, R> {
    /// Removes our finalizer: everything outside of Kubernetes is cleaned up.
    pub(super) async fn release(&mut self) -> Result<(), Problem> {
        let Some(entry) = finalizer::<R>() else {
            return Ok(());
        };
        self.step = "removing the finalizer";
        let (api, object) = (&self.api, self.object.as_ref());
        crate::finalizer::remove(api, object, entry, &self.shared.field_manager).await?;
        self.shared.memory.released(self.object.as_ref());
        info!("cleaned up; the finalizer is removed");
        Ok(())
    }
}

impl<R: Reconciler> Shared<R> {
    /// Counts, logs what is new, and decides when to requeue.
    fn end(
        &self,
        object: &R::Object,
        problem: Option<&Problem>,
        requeue_after: Option<Duration>,
    ) -> (Option<Duration>, Finish) {
        let ended = problem.map(|problem| (problem.class, problem.reason));
        let before = self.memory.ended(object, ended);
        let class = |ended: LastProblem| ended.map(|(class, _)| class.as_str());
        self.metrics.moved(class(before), class(ended));
        self.metrics
            .outcome(class(ended), problem.map_or("", |problem| problem.reason));
        let due = |requeue_after: Duration| jitter(requeue_after.max(self.settings.shortest_interval));
        let (delay, finish) = if let Some(problem) = problem {
            let failures = self.memory.failed(object);
            let delay = self.settings.backoff.after(problem.reaction().retry, failures);
            if before == ended {
                debug!(problem = ?problem, failures, retry = ?delay, "not reconciled");
            } else {
                warn!(problem = ?problem, retry = ?delay, "not reconciled");
            }
            if delay.is_some() {
                self.metrics.retried();
            }
            // A problem that only a change of the object can end has no retry; the report's own requeue time still
            // applies.
            (delay.or_else(|| requeue_after.map(due)), finish(problem))
        } else {
            self.memory.succeeded(object);
            if before.is_some() {
                info!("recovered");
            } else {
                debug!("reconciled");
            }
            let finish = if requeue_after.is_some() {
                Finish::RequeueAfter
            } else {
                Finish::Success
            };
            (requeue_after.map(due), finish)
        };
        (delay, finish)
    }
}

fn finish(problem: &Problem) -> Finish {
    match problem.class {
        _ if problem.is(Cause::Panic) => Finish::Panic,
        Class::Transient => Finish::Error,
        Class::Dependency | Class::Human => Finish::RequeueAfter,
        Class::Permanent => Finish::Terminal,
    }
}
