//! One pass over one object: the five steps, under a deadline and a panic guard.

mod conclude;
mod ending;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use kube::runtime::controller::Action;
use kube::{Api, Resource, ResourceExt};
use tokio::time::Instant;
use tracing::{Instrument, info, warn};

use self::conclude::write_status;
use super::controller::{Guarded, Shared};
use crate::context::{Reader, Writer};
use crate::events::Notice;
use crate::finalizer;
use crate::problem::Problem;
use crate::reconciler::Reconciler;
use crate::telemetry::logs::reconcile_span;
use crate::telemetry::metrics::Finish;
use crate::watch::primary::key;

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

    fn is_deleting(&self) -> bool {
        self.object.meta().deletion_timestamp.is_some()
    }

    fn has_finalizer(&self) -> bool {
        R::FINALIZER.is_some_and(|finalizer| finalizer::has(self.object.as_ref(), finalizer))
    }
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
