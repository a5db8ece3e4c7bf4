//! The interface of a controller: two paths, one for an object that lives and one for an object that is being deleted.
//!
//! ```text
//! validate   object → a valid target, or a Problem              pure
//! observe    read the current state                             I/O, reads only
//! plan       (target, observed, inputs) → what to do            pure
//! apply      do it, in order, each step idempotent              I/O, writes only
//! report     (object, outcome) → status, events, requeue time   pure
//! ```
//!
//! [`Reconciler`] is the path of an object that lives, [`Cleanup`] the path of an object that is being deleted. Each
//! has types of its own, so no step has to ask which path it is on. The kernel owns `suspend`: a suspended object goes
//! through none of the steps.
//!
//! `validate`, `plan` and `report` are associated functions without `self` and without a client: they cannot do I/O, so
//! tests call them with plain values. The clock and random numbers come in as arguments.

use std::fmt::Debug;
use std::marker::PhantomData;
use std::time::Duration;

use jiff::Timestamp;
use kube::Resource;
use kube::core::NamespaceResourceScope;
use kube::core::object::HasStatus;
use rand::CryptoRng;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::children::ChildKinds;
use crate::context::{Reader, Writer};
use crate::events::{EventRecord, TransitionEvent};
use crate::external::ExternalKind;
use crate::problem::Problem;
use crate::rbac::Rule;
use crate::status::Status;
use crate::watch::Watch;
use crate::watch::dependencies::Key;

/// The traits of our custom resources; implemented for all of them at once.
pub trait Object:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + HasStatus<Status: Status>
    + Clone
    + Debug
    + DeserializeOwned
    + Serialize
    + Send
    + Sync
    + 'static
{
}

impl<T> Object for T where
    T: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + HasStatus<Status: Status>
        + Clone
        + Debug
        + DeserializeOwned
        + Serialize
        + Send
        + Sync
        + 'static
{
}

/// The status type of a controller's objects.
pub type StatusOf<R> = <<R as Reconciler>::Object as HasStatus>::Status;

/// A controller of one kind: what it does for an object that is not being deleted.
pub trait Reconciler: Send + Sync + Sized + 'static {
    /// The kind that it reconciles.
    type Object: Object;
    /// The validated desired state.
    type Target: Send + Sync;
    /// The observed state.
    type Observed: Send + Sync;
    /// The changes to make.
    type Plan: Send + Sync;
    /// The changes that were made, recorded one by one, so that after a failure the first part can be reported.
    type Applied: Default + Send + Sync;
    /// What it does for an object that is being deleted; [`NoCleanup`] if it creates nothing outside of Kubernetes.
    type Cleanup: Cleanup<Controller = Self>;

    /// The controller's short name: log field, metrics label, suffix of the field manager.
    const NAME: &'static str;
    /// Annotations of the object whose change wakes it; all others are ignored.
    const ANNOTATIONS: &'static [&'static str] = &[];
    /// The names of the fields that decide what is kept when an object is deleted. An object in which one of them is
    /// malformed is not cleaned up before it is corrected.
    const DECIDES_DELETION: &'static [&'static str] = &["deletionPolicy", "onDelete"];
    /// The condition types that this controller writes: other types belong to other writers.
    const CONDITIONS: &'static [&'static str];
    /// The transitions of conditions that cause an event.
    const TRANSITION_EVENTS: &'static [TransitionEvent];

    /// The kinds, in addition to its own, whose changes wake its objects.
    fn watches() -> Vec<Watch>;

    /// The kinds with many children per object, which are cached as summaries.
    fn child_kinds() -> ChildKinds {
        ChildKinds::default()
    }

    /// The third-party kinds, which may not exist, whose changes wake its objects.
    fn external_kinds() -> &'static [&'static ExternalKind] {
        &[]
    }

    /// The group of objects that fail together, such as those on one server. Within a namespace, one lane has at most
    /// half of the concurrent passes: a server that does not answer delays its own objects only. It is called often,
    /// and also for invalid objects: it must be cheap.
    fn lane(object: &Self::Object) -> Option<String> {
        let _ = object;
        None
    }

    /// The RBAC rules that the controller needs, in addition to those that every controller needs for its own kind.
    fn rules() -> Vec<Rule>;

    /// Whether the object is suspended. The kernel then runs [`Self::inactive`] instead of the steps, and reports with
    /// [`Self::report_suspended`].
    fn is_suspended(object: &Self::Object) -> bool {
        let _ = object;
        false
    }

    /// The target of an object.
    fn validate(object: &Self::Object) -> Result<Self::Target, Problem>;

    /// Whether something outside of Kubernetes is, or will be, created for this target that only its finalizer cleans
    /// up.
    fn needs_finalizer(target: &Self::Target) -> bool {
        let _ = target;
        true
    }

    /// Reads the current state. It must not write anything.
    fn observe(
        &self,
        read: &Reader,
        target: &Self::Target,
    ) -> impl Future<Output = Result<Self::Observed, Problem>> + Send;

    /// Decides what to do.
    fn plan(
        target: &Self::Target,
        observed: &Self::Observed,
        inputs: &mut Inputs<'_>,
    ) -> Result<Self::Plan, Problem>;

    /// A status to write before `apply`: that the work has begun, and what a later pass needs if this one is killed
    /// half-way. `None` for no such write.
    fn pre_apply_status(
        object: &Self::Object,
        target: &Self::Target,
        observed: &Self::Observed,
        plan: &Self::Plan,
    ) -> Option<StatusOf<Self>> {
        let _ = (object, target, observed, plan);
        None
    }

    /// Makes the changes. Each step may be repeated: the process can be killed between any two.
    fn apply(
        &self,
        write: &Writer,
        target: &Self::Target,
        observed: &Self::Observed,
        plan: Self::Plan,
        applied: &mut Self::Applied,
    ) -> impl Future<Output = Result<Done, Problem>> + Send;

    /// Runs instead of the steps while the object is suspended or its spec is invalid: for what neither may put off,
    /// such as locking the logins on a server that withdrew its permission. A problem that it returns is reported
    /// instead of the suspension or of the invalid spec.
    fn inactive(
        &self,
        read: &Reader,
        write: &Writer,
        object: &Self::Object,
        why: Inactive<'_>,
    ) -> impl Future<Output = Result<(), Problem>> + Send {
        let _ = (read, write, object, why);
        std::future::ready(Ok(()))
    }

    /// Waits for an event that no watch reports, such as a lost server, and returns the objects to reconcile. The kernel
    /// calls it again after each event, and drops it when the controller ends.
    fn external_events(&self) -> impl Future<Output = Vec<Key>> + Send {
        std::future::pending()
    }

    /// Called at the end of a pass, with its problem if there is one: for a controller's own metrics.
    fn on_finished(&self, problem: Option<&Problem>, elapsed: Duration) {
        let _ = (problem, elapsed);
    }

    /// Returns the status and the events of the pass.
    fn report(object: &Self::Object, outcome: &Outcome<'_, Self>, now: Timestamp) -> Report<StatusOf<Self>>;

    /// Returns the status and the events of a pass over a suspended object.
    fn report_suspended(object: &Self::Object, now: Timestamp) -> Report<StatusOf<Self>> {
        let _ = now;
        Report {
            idle_reason: "Suspended",
            ..Report::new(object.status().cloned().unwrap_or_default())
        }
    }
}

/// What a controller does for an object that is being deleted. When `apply` returns [`Done::Complete`], the kernel sends
/// the events of the report and removes the finalizer.
pub trait Cleanup: Send + Sync + Sized + 'static {
    /// The controller.
    type Controller: Reconciler<Cleanup = Self>;
    /// What to remove.
    type Target: Send + Sync;
    /// What was found of it.
    type Observed: Send + Sync;
    /// The changes to make.
    type Plan: Send + Sync;
    /// The changes that were made, recorded one by one.
    type Applied: Default + Send + Sync;

    /// The finalizer that holds an object until its cleanup is complete.
    const FINALIZER: Option<&'static str>;

    /// What to remove. It cannot fail: an invalid object must be deletable.
    fn target(object: &ObjectOf<Self>) -> Self::Target;

    /// Reads the current state. It must not write anything.
    fn observe(
        controller: &Self::Controller,
        read: &Reader,
        target: &Self::Target,
    ) -> impl Future<Output = Result<Self::Observed, Problem>> + Send;

    /// Decides what to do.
    fn plan(
        target: &Self::Target,
        observed: &Self::Observed,
        inputs: &mut Inputs<'_>,
    ) -> Result<Self::Plan, Problem>;

    /// As [`Reconciler::pre_apply_status`].
    fn pre_apply_status(
        object: &ObjectOf<Self>,
        target: &Self::Target,
        observed: &Self::Observed,
        plan: &Self::Plan,
    ) -> Option<StatusOf<Self::Controller>> {
        let _ = (object, target, observed, plan);
        None
    }

    /// Makes the changes. Each step may be repeated: the process can be killed between any two.
    fn apply(
        controller: &Self::Controller,
        write: &Writer,
        target: &Self::Target,
        observed: &Self::Observed,
        plan: Self::Plan,
        applied: &mut Self::Applied,
    ) -> impl Future<Output = Result<Done, Problem>> + Send;

    /// Returns the status while the object waits for its cleanup, and the events. At the end of a cleanup without a
    /// problem only the events are used: the status goes with the object.
    fn report(
        object: &ObjectOf<Self>,
        outcome: &CleanupOutcome<'_, Self>,
        now: Timestamp,
    ) -> Report<StatusOf<Self::Controller>>;
}

/// The kind of the objects that a cleanup is about.
pub type ObjectOf<C> = <<C as Cleanup>::Controller as Reconciler>::Object;

/// For a kind that leaves nothing outside of Kubernetes: its objects have no finalizer, and the kernel does nothing when
/// one is deleted.
pub struct NoCleanup<R>(PhantomData<fn() -> R>);

impl<R: Reconciler<Cleanup = Self>> Cleanup for NoCleanup<R> {
    type Controller = R;
    type Target = ();
    type Observed = ();
    type Plan = ();
    type Applied = ();

    const FINALIZER: Option<&'static str> = None;

    fn target(_: &R::Object) {}

    async fn observe(_: &R, _: &Reader, (): &()) -> Result<(), Problem> {
        Ok(())
    }

    fn plan((): &(), (): &(), _: &mut Inputs<'_>) -> Result<(), Problem> {
        Ok(())
    }

    async fn apply(_: &R, _: &Writer, (): &(), (): &(), (): (), (): &mut ()) -> Result<Done, Problem> {
        Ok(Done::Complete)
    }

    fn report(object: &R::Object, _: &CleanupOutcome<'_, Self>, _: Timestamp) -> Report<StatusOf<R>> {
        Report::new(object.status().cloned().unwrap_or_default())
    }
}

/// The finalizer of a controller.
pub const fn finalizer<R: Reconciler>() -> Option<&'static str> {
    <R::Cleanup as Cleanup>::FINALIZER
}

/// What `plan` uses beside the target and the observation. The kernel provides it, so that a simulation depends on its
/// seed only.
pub struct Inputs<'a> {
    /// The time.
    pub now: Timestamp,
    /// Random numbers, fit for secrets.
    pub random: &'a mut dyn CryptoRng,
}

/// How `apply` ended without a failure.
#[derive(Debug)]
#[must_use]
pub enum Done {
    /// The object is as desired.
    Complete,
    /// Everything that was planned is done, and something else has to happen first. The kernel reports and retries the
    /// problem by its class.
    Blocked(Problem),
}

/// Why an object is inactive.
#[derive(Clone, Copy, Debug)]
pub enum Inactive<'a> {
    /// It is suspended.
    Suspended,
    /// `validate` refused it.
    Invalid(&'a Problem),
}

/// The progress of a pass: the value of each completed step, and the problem that ended it.
pub struct Outcome<'a, R: Reconciler> {
    /// After `validate`.
    pub target: Option<&'a R::Target>,
    /// After `observe`.
    pub observed: Option<&'a R::Observed>,
    /// What `apply` did; empty if it was not reached.
    pub applied: &'a R::Applied,
    /// The problem that ended the pass, or that it is blocked by; `None` if all steps succeeded.
    pub problem: Option<&'a Problem>,
    /// Whether `apply` did everything and returned the problem as [`Done::Blocked`].
    pub blocked: bool,
}

/// The progress of a cleanup.
pub struct CleanupOutcome<'a, C: Cleanup> {
    /// What to remove.
    pub target: &'a C::Target,
    /// After `observe`.
    pub observed: Option<&'a C::Observed>,
    /// What `apply` did; empty if it was not reached.
    pub applied: &'a C::Applied,
    /// The problem that ended the pass, or that it is blocked by; `None` if the cleanup is complete.
    pub problem: Option<&'a Problem>,
    /// Whether `apply` did everything and returned the problem as [`Done::Blocked`].
    pub blocked: bool,
}

/// The result of a reconcile.
#[derive(Clone, Debug)]
pub struct Report<S> {
    /// The complete status. The driver writes it only if it differs from the current one.
    pub status: S,
    /// Events that no transition of a condition causes, for `kubectl describe`.
    pub events: Vec<EventRecord>,
    /// Why the object is idle, if it is not simply done: the reason of `Reconciling=False`.
    pub idle_reason: &'static str,
    /// When to requeue without a change; the driver adds jitter. The retry of a problem takes precedence.
    pub requeue_after: Option<Duration>,
}

impl<S> Report<S> {
    /// A report with only a status.
    pub fn new(status: S) -> Self {
        Self {
            status,
            events: Vec::new(),
            idle_reason: "Settled",
            requeue_after: None,
        }
    }
}
