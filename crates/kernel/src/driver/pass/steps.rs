//! The steps of a path: observe, plan, the status before apply, apply. Both paths of a controller take them.

use std::marker::PhantomData;
use std::sync::Arc;

use kube::{Api, Resource};
use tracing::info;

use super::conclude::write_status;
use crate::ambient;
use crate::context::{Reader, ReconcileContext, Writer};
use crate::driver::controller::{Read, Shared};
use crate::finalizer;
use crate::problem::Problem;
use crate::reconciler::{self, Cleanup, Done, Inactive, Inputs, Reconciler, StatusOf};

/// The step that writes.
pub(super) const APPLY: &str = "apply";

/// One of the two paths of a controller.
pub(super) trait Path {
    type Controller: Reconciler;
    type Target: Send + Sync;
    type Observed: Send + Sync;
    type Plan: Send + Sync;
    type Applied: Default + Send + Sync;

    fn observe(
        controller: &Self::Controller,
        read: &Reader,
        target: &Self::Target,
    ) -> impl Future<Output = Result<Self::Observed, Problem>> + Send;

    fn plan(
        target: &Self::Target,
        observed: &Self::Observed,
        inputs: &mut Inputs<'_>,
    ) -> Result<Self::Plan, Problem>;

    fn pre_apply_status(
        object: &<Self::Controller as Reconciler>::Object,
        target: &Self::Target,
        observed: &Self::Observed,
        plan: &Self::Plan,
    ) -> Option<StatusOf<Self::Controller>>;

    fn apply(
        controller: &Self::Controller,
        write: &Writer,
        target: &Self::Target,
        observed: &Self::Observed,
        plan: Self::Plan,
        applied: &mut Self::Applied,
    ) -> impl Future<Output = Result<Done, Problem>> + Send;
}

/// The path of an object that is not being deleted.
pub(super) struct EnsurePath<R>(PhantomData<R>);

impl<R: Reconciler> Path for EnsurePath<R> {
    type Controller = R;
    type Target = R::Target;
    type Observed = R::Observed;
    type Plan = R::Plan;
    type Applied = R::Applied;

    async fn observe(controller: &R, read: &Reader, target: &R::Target) -> Result<R::Observed, Problem> {
        controller.observe(read, target).await
    }

    fn plan(target: &R::Target, observed: &R::Observed, inputs: &mut Inputs<'_>) -> Result<R::Plan, Problem> {
        R::plan(target, observed, inputs)
    }

    fn pre_apply_status(
        object: &R::Object,
        target: &R::Target,
        observed: &R::Observed,
        plan: &R::Plan,
    ) -> Option<StatusOf<R>> {
        R::pre_apply_status(object, target, observed, plan)
    }

    async fn apply(
        controller: &R,
        write: &Writer,
        target: &R::Target,
        observed: &R::Observed,
        plan: R::Plan,
        applied: &mut R::Applied,
    ) -> Result<Done, Problem> {
        controller.apply(write, target, observed, plan, applied).await
    }
}

/// The path of an object that is being deleted.
pub(super) struct CleanupPath<C>(PhantomData<C>);

impl<C: Cleanup> Path for CleanupPath<C> {
    type Controller = C::Controller;
    type Target = C::Target;
    type Observed = C::Observed;
    type Plan = C::Plan;
    type Applied = C::Applied;

    async fn observe(
        controller: &C::Controller,
        read: &Reader,
        target: &C::Target,
    ) -> Result<C::Observed, Problem> {
        C::observe(controller, read, target).await
    }

    fn plan(target: &C::Target, observed: &C::Observed, inputs: &mut Inputs<'_>) -> Result<C::Plan, Problem> {
        C::plan(target, observed, inputs)
    }

    fn pre_apply_status(
        object: &reconciler::ObjectOf<C>,
        target: &C::Target,
        observed: &C::Observed,
        plan: &C::Plan,
    ) -> Option<StatusOf<C::Controller>> {
        C::pre_apply_status(object, target, observed, plan)
    }

    async fn apply(
        controller: &C::Controller,
        write: &Writer,
        target: &C::Target,
        observed: &C::Observed,
        plan: C::Plan,
        applied: &mut C::Applied,
    ) -> Result<Done, Problem> {
        C::apply(controller, write, target, observed, plan, applied).await
    }
}

/// What the steps of a path have returned so far.
pub(super) struct Progress<P: Path> {
    pub(super) target: P::Target,
    pub(super) observed: Option<P::Observed>,
    pub(super) applied: P::Applied,
}

impl<P: Path> Progress<P> {
    pub(super) fn new(target: P::Target) -> Self {
        Self {
            target,
            observed: None,
            applied: P::Applied::default(),
        }
    }
}

/// The object of a pass, and the step that the pass is at.
pub(super) struct Subject<'a, R: Reconciler> {
    pub(super) shared: &'a Shared<R>,
    pub(super) api: Api<Read<R>>,
    pub(super) object: Arc<R::Object>,
    pub(super) step: &'static str,
    /// The object is gone: there is no status to write.
    pub(super) gone: bool,
}

impl<R: Reconciler> Subject<'_, R> {
    /// Runs the steps of a path and records their results.
    pub(super) async fn follow<P: Path<Controller = R>>(
        &mut self,
        progress: &mut Progress<P>,
    ) -> Result<Done, Problem> {
        let Progress {
            target,
            observed,
            applied,
        } = progress;
        let controller = &self.shared.reconciler;
        let context = self.shared.context(&self.object);
        self.step = "observe";
        let read = Reader::new(context.clone());
        let found = P::observe(controller, &read, target).await;
        read.finish();
        let observed = observed.insert(found?);
        self.step = "plan";
        let plan = {
            let mut random = ambient::random();
            let mut inputs = Inputs {
                now: ambient::now(),
                random: random.as_mut(),
            };
            P::plan(target, observed, &mut inputs)?
        };
        let status = P::pre_apply_status(&self.object, target, observed, &plan);
        if let Some(status) = status.filter(|_| !self.gone) {
            self.step = "announcing";
            if let Some(object) = write_status::<R>(self.shared, &self.api, &self.object, status).await? {
                self.object = Arc::new(as_validated(whole::<R>(object)?, self.object.as_ref()));
            }
        }
        self.step = APPLY;
        let write = self.writer(context);
        P::apply(controller, &write, target, observed, plan, applied).await
    }

    /// What the controller does for an object that goes through none of the steps.
    pub(super) async fn inactive(&mut self, why: Inactive<'_>) -> Result<(), Problem> {
        self.step = "inactive";
        let context = self.shared.context(&self.object);
        let read = Reader::new(context.clone());
        let write = self.writer(context);
        let done = self
            .shared
            .reconciler
            .inactive(&read, &write, &self.object, why)
            .await;
        read.finish();
        done
    }

    fn writer(&self, context: ReconcileContext) -> Writer {
        Writer::new(
            context,
            self.shared.field_manager.clone(),
            self.shared.fence.clone(),
        )
    }

    /// Adds our finalizer, unless the object has it or is being deleted.
    pub(super) async fn add_finalizer(&mut self) -> Result<(), Problem> {
        let Some(finalizer) = reconciler::finalizer::<R>() else {
            return Ok(());
        };
        if self.is_deleting() || self.has_finalizer() {
            return Ok(());
        }
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
        Ok(())
    }

    /// Removes our finalizer: everything outside of Kubernetes is cleaned up.
    pub(super) async fn release(&mut self) -> Result<(), Problem> {
        let Some(finalizer) = reconciler::finalizer::<R>() else {
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

    pub(super) fn is_deleting(&self) -> bool {
        self.object.meta().deletion_timestamp.is_some()
    }

    pub(super) fn has_finalizer(&self) -> bool {
        reconciler::finalizer::<R>().is_some_and(|finalizer| finalizer::has(self.object.as_ref(), finalizer))
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
