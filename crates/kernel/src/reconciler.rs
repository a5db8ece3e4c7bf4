//! The interface of a controller: five steps, three of them pure by their signatures.
//!
//! ```text
//! validate   object → a valid target, or a Problem              pure
//! observe    read the current state                             I/O, reads only
//! plan       (target, observed) → what to do                    pure
//! apply      do it, in order, each step idempotent              I/O, writes only
//! report     (object, outcome) → status, events, requeue time   pure
//! ```
//!
//! `validate`, `plan` and `report` are associated functions without `self` and without a client: they cannot do I/O, so
//! tests call them with plain values.

use std::fmt::Debug;
use std::time::Duration;

use jiff::Timestamp;
use kube::Resource;
use kube::core::NamespaceResourceScope;
use kube::core::object::HasStatus;
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

/// A controller of one kind.
pub trait Reconciler: Send + Sync + Sized + 'static {
    /// The kind that it reconciles.
    type Object: Object;
    /// A validated target: the desired state, or that everything has to be removed.
    type Target: Send + Sync;
    /// The observed state.
    type Observed: Send + Sync;
    /// The changes to make.
    type Plan: Send + Sync;
    /// The changes that were made, recorded one by one, so that after a failure the first part can be reported.
    type Applied: Default + Send + Sync;

    /// The controller's short name: log field, metrics label, suffix of the field manager.
    const NAME: &'static str;
    /// Set by a controller that creates something outside of Kubernetes, which nothing else would clean up.
    const FINALIZER: Option<&'static str>;
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

    /// The target of an object that is not being deleted.
    fn validate(object: &Self::Object) -> Result<Self::Target, Problem>;

    /// The target of an object that is being deleted. It cannot fail: an invalid object must be deletable.
    fn cleanup_target(object: &Self::Object) -> Self::Target;

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
    fn plan(target: &Self::Target, observed: &Self::Observed) -> Result<Self::Plan, Problem>;

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
    ) -> impl Future<Output = Result<(), Problem>> + Send;

    /// Waits for something that no watch tells of, such as a server that is lost, and names the objects to look at. It is
    /// asked again and again, and dropped when the controller ends.
    fn external_events(&self) -> impl Future<Output = Vec<Key>> + Send {
        std::future::pending()
    }

    /// Called at the end of a pass, with its problem if there is one: for a controller's own metrics.
    fn on_finished(&self, problem: Option<&Problem>, elapsed: Duration) {
        let _ = (problem, elapsed);
    }

    /// Returns the status and the events of the pass.
    fn report(object: &Self::Object, outcome: &Outcome<'_, Self>, now: Timestamp) -> Report<StatusOf<Self>>;
}

/// The progress of a reconcile: the value of each completed step, and the problem that ended it.
pub struct Outcome<'a, R: Reconciler> {
    /// After `validate`.
    pub target: Option<&'a R::Target>,
    /// After `observe`.
    pub observed: Option<&'a R::Observed>,
    /// What `apply` did; empty if it was not reached.
    pub applied: &'a R::Applied,
    /// The problem that ended the reconcile; `None` if all steps succeeded.
    pub problem: Option<&'a Problem>,
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
