//! One pass over one object: the five steps, and what follows from how they end.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::core::object::HasStatus;
use kube::runtime::controller::Action;
use kube::{Api, Resource, ResourceExt};
use tokio::time::{Instant, sleep};
use tracing::{Instrument, debug, error, info, warn};

use super::backoff::jitter;
use super::controller::{Guarded, Shared};
use super::memory::Ended;
use crate::condition::Conditions;
use crate::context::{Reader, Writer};
use crate::events::{Notice, transitions};
use crate::problem::{Class, Problem, Retry};
use crate::reconciler::{Outcome, Reconciler, Report, StatusOf};
use crate::status::Status;
use crate::telemetry::logs::reconcile_span;
use crate::telemetry::metrics::Finish;
use crate::watch::primary::key;
use crate::{finalizer, status};

/// The step that changes things.
const APPLY: &str = "apply";

/// The reason of a problem that is a defect of ours.
const PANICKED: &str = "Panicked";

/// Reconciles one object and says when to look again.
pub(super) async fn run<R: Reconciler>(shared: Arc<Shared<R>>, guarded: Arc<Guarded<R>>) -> Action {
    let meta = guarded.meta();
    let span = reconcile_span(
        R::NAME,
        meta.namespace.as_deref(),
        meta.name.as_deref().unwrap_or_default(),
        meta.generation,
    );
    async move {
        let key = key(guarded.meta());
        let running = shared.queue.started(&key);
        let (action, finish) = match &guarded.0 {
            Ok(_) => match shared.newest(&key) {
                Some(object) => Pass::new(&shared, object).run().await,
                None => (Action::await_change(), Finish::Success),
            },
            Err(invalid) => {
                // The schema keeps such objects out; an older schema may have let one in. It stops nothing else.
                let notice = Notice::warning("Malformed", "Read", &invalid.error);
                warn!(
                    error = invalid.error,
                    "the object cannot be read as {}",
                    R::Object::kind(&())
                );
                shared.recorder.publish(&guarded.object_ref(&()), &notice).await;
                (Action::await_change(), Finish::Terminal)
            }
        };
        running.finish(finish);
        shared.forget_if_gone(&key);
        action
    }
    .instrument(span)
    .await
}

/// How far the pass has come.
struct Pass<'a, R: Reconciler> {
    shared: &'a Shared<R>,
    api: Api<R::Object>,
    object: Arc<R::Object>,
    step: &'static str,
    /// The object is gone: there is no status to write.
    gone: bool,
    target: Option<R::Target>,
    observed: Option<R::Observed>,
    applied: R::Applied,
}

impl<'a, R: Reconciler> Pass<'a, R> {
    fn new(shared: &'a Shared<R>, object: Arc<R::Object>) -> Self {
        Self {
            shared,
            api: Api::namespaced(shared.client.clone(), &object.namespace().unwrap_or_default()),
            object,
            step: "validate",
            gone: false,
            target: None,
            observed: None,
            applied: R::Applied::default(),
        }
    }

    async fn run(mut self) -> (Action, Finish) {
        if self.is_deleting() && (!self.has_finalizer() || self.shared.memory.is_released(&self.object)) {
            // Our part is done, or was never begun; others may still hold the object, or the watch may lag.
            return (Action::await_change(), Finish::Success);
        }
        // As it was when the steps were chosen. One that is deleted while they run is cleaned up by the next pass: this
        // one has not, and may just have made what is to be cleaned up.
        let leaving = self.is_deleting();
        let began = Instant::now();
        let mut problem = self.guarded_steps().await.err();
        self.shared.reconciler.ended(problem.as_ref(), began.elapsed());
        if leaving && problem.is_none() {
            match self.release().await {
                Ok(()) => return (Action::await_change(), Finish::Success),
                Err(failed) => problem = Some(failed),
            }
        }
        self.conclude(problem).await
    }

    /// The steps under a deadline; a panic in them is this object's problem and nobody else's.
    async fn guarded_steps(&mut self) -> Result<(), Problem> {
        let deadline = self.shared.settings.deadline;
        let steps = AssertUnwindSafe(self.steps()).catch_unwind();
        match tokio::time::timeout(deadline, steps).await {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => Err(panicked(self.step, panic.as_ref())),
            Err(_) => Err(Problem::transient(
                "DeadlineExceeded",
                format!("{} took longer than {} s", self.step, deadline.as_secs()),
            )),
        }
    }

    async fn steps(&mut self) -> Result<(), Problem> {
        let target = if self.is_deleting() {
            R::farewell(&self.object)
        } else {
            R::validate(&self.object)?
        };
        let target = self.target.insert(target);
        if let Some(finalizer) = R::FINALIZER
            && R::holds(target)
            && self.object.meta().deletion_timestamp.is_none()
            && !finalizer::has(self.object.as_ref(), finalizer)
        {
            self.step = "adding the finalizer";
            // Before it is written: the watch may be faster than the answer.
            let mut expected = self.object.meta().clone();
            expected
                .finalizers
                .get_or_insert_default()
                .push(finalizer.to_owned());
            self.shared.fingerprints.expect::<R>(&expected);
            let object = finalizer::add(
                &self.api,
                self.object.as_ref(),
                finalizer,
                &self.shared.field_manager,
            )
            .await?;
            self.shared.fingerprints.expect::<R>(object.meta());
            self.shared.memory.wrote(&object);
            self.object = Arc::new(object);
        }
        let place = self.shared.place(&self.object);
        let read = Reader::new(place.clone());
        self.step = "observe";
        let observed = self.shared.reconciler.observe(&read, target).await;
        read.finish();
        let observed = self.observed.insert(observed?);
        self.step = "plan";
        let plan = R::plan(target, observed)?;
        if let Some(status) = R::announce(&self.object, target, observed, &plan).filter(|_| !self.gone) {
            self.step = "announcing";
            if let Some(object) = write_status::<R>(self.shared, &self.api, &self.object, status).await? {
                self.object = Arc::new(object);
            }
        }
        self.step = APPLY;
        let manager = self.shared.field_manager.clone();
        let write = Writer::new(place, manager, self.shared.fence.clone());
        self.shared
            .reconciler
            .apply(&write, target, observed, plan, &mut self.applied)
            .await
    }

    /// Gives the object back to Kubernetes: everything outside is cleaned up.
    async fn release(&mut self) -> Result<(), Problem> {
        let Some(finalizer) = R::FINALIZER else {
            return Ok(());
        };
        self.step = "removing the finalizer";
        finalizer::remove(
            &self.api,
            self.object.as_ref(),
            finalizer,
            &self.shared.field_manager,
        )
        .await?;
        self.shared.memory.released(self.object.as_ref());
        info!("cleaned up; the finalizer is removed");
        Ok(())
    }

    /// Reports, writes what changed, and decides when to look again.
    async fn conclude(self, problem: Option<Problem>) -> (Action, Finish) {
        let (mut problem, report) = self.report(problem);
        let again = report.again;
        match self.publish(report).await {
            Ok(()) => {}
            // Nobody is left to tell.
            Err(unwritten) if unwritten.reason == "NotFound" => {
                debug!("the object is gone");
                self.clean_up().await;
            }
            // The first problem is the one to act on; but it is not shown yet, so it cannot rest.
            Err(unwritten) => {
                let first = problem.map(|problem| problem.with_retry(Retry::Backoff));
                problem = first.or(Some(unwritten));
            }
        }
        self.shared.end(&self.object, problem.as_ref(), again)
    }

    fn report(&self, problem: Option<Problem>) -> (Option<Problem>, Report<StatusOf<R>>) {
        let now = Timestamp::now();
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
        conditions.settle(problem.as_ref(), report.settled);
        *report.status.conditions_mut() = conditions.finish();
        (problem, report)
    }

    /// Writes the status and tells of what changed in it.
    async fn publish(&self, report: Report<StatusOf<R>>) -> Result<(), Problem> {
        let before = self.object.status().cloned().unwrap_or_default();
        let told = transitions(before.conditions(), report.status.conditions(), R::ANNOUNCEMENTS);
        write_status::<R>(self.shared, &self.api, &self.object, report.status).await?;
        let regarding = self.object.object_ref(&());
        for notice in told.iter().chain(&report.notices) {
            self.shared.recorder.publish(&regarding, notice).await;
        }
        Ok(())
    }

    /// Cleans up after an object that went although it has our finalizer. The API server decides by the finalizers that
    /// it read when a DELETE came in: one that is added between that and the object's end does not hold it. Only this
    /// pass knows by now what was made, so it stays at it for as long as a pass may take.
    async fn clean_up(&self) {
        if R::FINALIZER.is_none() || self.is_deleting() || self.step != APPLY {
            return;
        }
        let mut object = self.object.as_ref().clone();
        object.meta_mut().deletion_timestamp = Some(Time(Timestamp::now()));
        let object = Arc::new(object);
        let end = Instant::now() + self.shared.settings.deadline;
        for failures in 1.. {
            let mut pass = Pass::new(self.shared, Arc::clone(&object));
            pass.gone = true;
            let Err(problem) = pass.guarded_steps().await else {
                info!("cleaned up after an object that was deleted while it was made");
                return;
            };
            let delay = self.shared.settings.backoff.delay(failures);
            if Instant::now() + delay > end {
                error!(problem = ?problem, "the object is gone, and what was made for it is left behind");
                return;
            }
            sleep(delay).await;
        }
    }

    fn is_deleting(&self) -> bool {
        self.object.meta().deletion_timestamp.is_some()
    }

    fn has_finalizer(&self) -> bool {
        R::FINALIZER.is_some_and(|finalizer| finalizer::has(self.object.as_ref(), finalizer))
    }
}

impl<R: Reconciler> Shared<R> {
    /// Counts, logs what is news, and decides when to look again.
    fn end(
        &self,
        object: &R::Object,
        problem: Option<&Problem>,
        again: Option<Duration>,
    ) -> (Action, Finish) {
        let ended = problem.map(|problem| (problem.class, problem.reason));
        let before = self.memory.ended(object, ended);
        let class = |ended: Ended| ended.map(|(class, _)| class.as_str());
        self.metrics.moved(class(before), class(ended));
        self.metrics
            .outcome(class(ended), problem.map_or("", |problem| problem.reason));
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
            (delay, finish(problem))
        } else {
            self.memory.succeeded(object);
            if before.is_some() {
                info!("recovered");
            } else {
                debug!("reconciled");
            }
            let finish = if again.is_some() {
                Finish::RequeueAfter
            } else {
                Finish::Success
            };
            (again.map(jitter), finish)
        };
        (delay.map_or_else(Action::await_change, Action::requeue), finish)
    }
}

fn finish(problem: &Problem) -> Finish {
    match problem.class {
        _ if problem.reason == PANICKED => Finish::Panic,
        Class::Transient => Finish::Error,
        Class::Dependency | Class::Human => Finish::RequeueAfter,
        Class::Permanent => Finish::Terminal,
    }
}

/// Writes a status that is not shown yet; `None` when there was nothing to write.
async fn write_status<R: Reconciler>(
    shared: &Shared<R>,
    api: &Api<R::Object>,
    object: &R::Object,
    status: StatusOf<R>,
) -> Result<Option<R::Object>, Problem> {
    let ours: Vec<&str> = [crate::condition::RECONCILING, crate::condition::STALLED]
        .into_iter()
        .chain(R::CONDITIONS.iter().copied())
        .collect();
    if status::is_shown(object, &status, &ours) {
        return Ok(None);
    }
    let written = status::write(api, object, &status, &ours, &shared.field_manager).await?;
    shared.memory.wrote(&written);
    Ok(Some(written))
}

fn panicked(step: &str, panic: &(dyn std::any::Any + Send)) -> Problem {
    let text = panic
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".into());
    // The text may quote anything, so it goes to the log and not into the status.
    tracing::error!(step, panic = text, "a reconcile panicked");
    Problem::transient(
        PANICKED,
        format!("the operator failed in {step}; its log says more"),
    )
}
