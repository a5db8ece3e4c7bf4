//! One pass over one object: the five steps, with a deadline and a panic guard.

mod conclude;
mod ending;
mod malformed;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use kube::{Api, Resource, ResourceExt};
use tokio::time::Instant;
use tracing::{Instrument, info};

use self::conclude::write_status;
use super::controller::{Newest, Read, Shared};
use crate::context::{Reader, Writer};
use crate::finalizer;
use crate::lenient::Flaw;
use crate::problem::{Cause, Problem};
use crate::reconciler::Reconciler;
use crate::telemetry::logs::reconcile_span;
use crate::telemetry::metrics::{Finish, Queued};
use crate::watch::dependencies::Key;

/// The step that writes.
const APPLY: &str = "apply";

/// The reason of a problem that is a bug in the operator.
const PANICKED: &str = "Panicked";

/// Reconciles one object and returns when to requeue it.
pub(super) async fn run<R: Reconciler>(shared: Arc<Shared<R>>, key: Key, queued: Queued) -> Option<Duration> {
    // The object was deleted while it waited, or a deleted child of an owner that is gone enqueued it.
    let newest = shared.newest(&key)?;
    let generation = newest.meta().generation;
    let span = reconcile_span(R::NAME, Some(&key.namespace), &key.name, generation);
    async move {
        let running = queued.started();
        let pass = async {
            match newest {
                Newest::Object(object, flaws) => Pass::new(&shared, object, flaws).run().await,
                Newest::Unreadable(object) => shared.unreadable(&object).await,
            }
        };
        let fence = shared.fence.clone();
        let fenced = stanchion_postgres::Fence::new(move || fence.check().is_ok()).around(pass);
        // The steps have their own guard, which reports on the object. This one is for the code around them.
        let (requeue_after, finish) = match AssertUnwindSafe(fenced).catch_unwind().await {
            Ok(ended) => ended,
            Err(panic) => {
                panicked("the end of a pass", panic.as_ref());
                (Some(shared.settings.backoff.most), Finish::Panic)
            }
        };
        running.finish(finish);
        shared.forget_if_gone(&key);
        requeue_after
    }
    .instrument(span)
    .await
}

/// The progress of the pass.
struct Pass<'a, R: Reconciler> {
    shared: &'a Shared<R>,
    api: Api<Read<R>>,
    object: Arc<R::Object>,
    /// The malformed fields, which are not in `object`.
    flaws: Vec<Flaw>,
    step: &'static str,
    /// The object is gone: there is no status to write.
    gone: bool,
    target: Option<R::Target>,
    observed: Option<R::Observed>,
    applied: R::Applied,
}

impl<'a, R: Reconciler> Pass<'a, R> {
    fn new(shared: &'a Shared<R>, object: Arc<R::Object>, flaws: Vec<Flaw>) -> Self {
        Self {
            shared,
            api: Api::namespaced(shared.client.clone(), &object.namespace().unwrap_or_default()),
            object,
            flaws,
            step: "validate",
            gone: false,
            target: None,
            observed: None,
            applied: R::Applied::default(),
        }
    }

    async fn run(mut self) -> (Option<Duration>, Finish) {
        if self.is_deleting() && (!self.has_finalizer() || self.shared.memory.is_released(&self.object)) {
            // Our work is done, or never began; others may still hold the object, or the watch may lag.
            return (None, Finish::Success);
        }
        // From when the steps were chosen. If the object is deleted while they run, the next pass cleans up: this pass
        // has not, and may have just created what must be cleaned up.
        let leaving = self.is_deleting();
        let began = Instant::now();
        let mut problem = self.guarded_steps().await.err();
        self.shared
            .reconciler
            .on_finished(problem.as_ref(), began.elapsed());
        if leaving && problem.is_none() {
            self.publish_cleanup_events().await;
            match self.release().await {
                Ok(()) => return (None, Finish::Success),
                Err(failed) => problem = Some(failed),
            }
        }
        self.conclude(problem).await
    }

    /// The steps with a deadline; a panic in them becomes the problem of this object only.
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
            malformed::may_leave::<R>(&self.flaws)?;
            R::cleanup_target(&self.object)
        } else {
            malformed::may_live(&self.flaws)?;
            R::validate(&self.object)?
        };
        let target = self.target.insert(target);
        if let Some(finalizer) = R::FINALIZER
            && R::needs_finalizer(target)
            && self.object.meta().deletion_timestamp.is_none()
            && !finalizer::has(self.object.as_ref(), finalizer)
        {
            self.step = "adding the finalizer";
            // Before the write: the watch may be faster than the response.
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
            let object = whole::<R>(object)?;
            self.shared.memory.wrote(&object);
            let object = as_validated(object, self.object.as_ref());
            self.shared.fingerprints.expect::<R>(object.meta());
            self.object = Arc::new(object);
        }
        let context = self.shared.context(&self.object);
        let read = Reader::new(context.clone());
        self.step = "observe";
        let observed = self.shared.reconciler.observe(&read, target).await;
        read.finish();
        let observed = self.observed.insert(observed?);
        self.step = "plan";
        let plan = R::plan(target, observed)?;
        if let Some(status) =
            R::pre_apply_status(&self.object, target, observed, &plan).filter(|_| !self.gone)
        {
            self.step = "announcing";
            if let Some(object) = write_status::<R>(self.shared, &self.api, &self.object, status).await? {
                self.object = Arc::new(as_validated(whole::<R>(object)?, self.object.as_ref()));
            }
        }
        self.step = APPLY;
        let manager = self.shared.field_manager.clone();
        let write = Writer::new(context, manager, self.shared.fence.clone());
        self.shared
            .reconciler
            .apply(&write, target, observed, plan, &mut self.applied)
            .await
    }

    /// Removes our finalizer: everything outside of Kubernetes is cleaned up.
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

/// The object that a write returned, with the generation that this pass validated. The spec may have changed since: the
/// report must not claim to be about the new one, and the new one must still cause a reconcile.
fn as_validated<O: Resource>(mut written: O, validated: &O) -> O {
    written.meta_mut().generation = validated.meta().generation;
    written
}

/// The object that a write returned. It is malformed only if it was changed in the meantime.
fn whole<R: Reconciler>(written: Read<R>) -> Result<R::Object, Problem> {
    let changed = || Problem::transient("Conflict", "the object changed meanwhile");
    written.into_whole().ok_or_else(changed)
}

fn panicked(step: &str, panic: &(dyn std::any::Any + Send)) -> Problem {
    let text = panic
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".into());
    // The text may contain anything, so it goes to the log and not into the status.
    tracing::error!(step, panic = text, "a reconcile panicked");
    Problem::transient(
        PANICKED,
        format!("the operator failed in {step}; its log says more"),
    )
    .with_cause(Cause::Panic)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    /// A report is about the spec that its pass has read, even if a write of the pass returned a newer one.
    #[test]
    fn a_newer_spec_does_not_become_the_one_of_this_pass() {
        let of = |generation: i64, version: &str| {
            let mut object = ConfigMap::default();
            object.metadata.generation = Some(generation);
            object.metadata.resource_version = Some(version.to_owned());
            object
        };
        let object = as_validated(of(2, "9"), &of(1, "7"));
        assert_eq!(object.metadata.generation, Some(1));
        assert_eq!(object.metadata.resource_version.as_deref(), Some("9"));
    }
}
