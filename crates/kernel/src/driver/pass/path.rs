//! The two paths of a controller behind one trait, so that the steps of a pass are written once. It only forwards: to
//! `Reconciler` for an object that lives, and to `Cleanup` for one that is being deleted.

use std::marker::PhantomData;

use crate::context::{Reader, Writer};
use crate::problem::Problem;
use crate::reconciler::{Cleanup, Done, Inputs, ObjectOf, Reconciler, StatusOf};

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
        object: &ObjectOf<C>,
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
