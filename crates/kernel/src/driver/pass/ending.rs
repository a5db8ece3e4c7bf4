//! The end of a pass: counts it, logs it if it is new, and decides when to requeue the object.

use std::time::Duration;

use tracing::{debug, info, warn};

use crate::driver::backoff::jitter;
use crate::driver::controller::Shared;
use crate::driver::memory::LastProblem;
use crate::problem::{Cause, Class, Problem};
use crate::reconciler::Reconciler;
use crate::telemetry::metrics::Finish;

impl<R: Reconciler> Shared<R> {
    /// Counts, logs what is new, and decides when to requeue.
    pub(super) fn end(
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
