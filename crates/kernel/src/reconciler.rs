//! What a controller is: five steps, two of them pure by their signatures.
//!
//! ```text
//! validate   object → a target that cannot be invalid, or a Problem        pure
//! observe    read what is there                                            I/O, reads only
//! plan       (target, observed) → what to do                               pure
//! apply      do it, in order, each step idempotent                         I/O, writes only
//! report     (object, outcome) → status, events, when to look again        pure
//! ```
//!
//! `validate`, `plan` and `report` are associated functions without `self` and without a client:
//! they cannot do I/O, so they are tested with plain values.

use std::fmt::Debug;
use std::time::Duration;

use jiff::Timestamp;
use kube::Resource;
use kube::core::NamespaceResourceScope;
use kube::core::object::HasStatus;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::{Reader, Writer};
use crate::events::{Announcement, Notice};
use crate::family::Kinds;
use crate::foreign::Foreign;
use crate::problem::Problem;
use crate::rbac::Rule;
use crate::status::Status;
use crate::watch::Watch;

/// What every custom resource of ours is; implemented for all of them at once.
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
    /// A validated target: what shall be there, or that nothing shall be there any more.
    type Target: Send + Sync;
    /// What was read.
    type Observed: Send + Sync;
    /// What is to be done.
    type Plan: Send + Sync;
    /// What was done, filled in as it is done, so that a failure half-way reports the first half.
    type Applied: Default + Send + Sync;

    /// The controller's short name: log field, metrics label, suffix of the field manager.
    const NAME: &'static str;
    /// Set by a controller that makes things outside Kubernetes, which nobody else would clean up.
    const FINALIZER: Option<&'static str>;
    /// Annotations of the object whose change wakes it; every other one is the user's own business.
    const ANNOTATIONS: &'static [&'static str] = &[];
    /// The names of the fields that say what is kept when an object is deleted. An object in which one of them cannot be
    /// read is not cleaned up before it is corrected.
    const DECIDES_DELETION: &'static [&'static str] = &["deletionPolicy", "onDelete"];
    /// The condition types that this controller writes: others in the list belong to others.
    const CONDITIONS: &'static [&'static str];
    /// Which changes of conditions are worth an event.
    const ANNOUNCEMENTS: &'static [Announcement];

    /// The kinds, beside its own, that wake its objects.
    fn watches() -> Vec<Watch>;

    /// The kinds of which its objects have many children, so that each is known without being read.
    fn families() -> Kinds {
        Kinds::default()
    }

    /// The kinds of others, which may not be there, that wake its objects.
    fn foreign() -> &'static [&'static Foreign] {
        &[]
    }

    /// What an object shares the fate of others with, such as the server that it is on. Within its namespace at most half
    /// of the passes that may run together are of one lane: a server that does not answer holds up its own objects only.
    /// It is asked often, and of objects that may be invalid: it must be cheap.
    fn lane(object: &Self::Object) -> Option<String> {
        let _ = object;
        None
    }

    /// The rights that the controller needs, beside those that every controller needs for its own kind.
    fn rules() -> Vec<Rule>;

    /// The target of a living object.
    fn validate(object: &Self::Object) -> Result<Self::Target, Problem>;

    /// The target of an object that is being deleted. It cannot fail: an invalid object must be deletable.
    fn farewell(object: &Self::Object) -> Self::Target;

    /// Whether something outside Kubernetes is, or will be, made for this target that only its finalizer cleans up.
    fn holds(target: &Self::Target) -> bool {
        let _ = target;
        true
    }

    /// Reads what is there. It must not write anything.
    fn observe(
        &self,
        read: &Reader,
        target: &Self::Target,
    ) -> impl Future<Output = Result<Self::Observed, Problem>> + Send;

    /// Decides what to do.
    fn plan(target: &Self::Target, observed: &Self::Observed) -> Result<Self::Plan, Problem>;

    /// A status to write before `apply`: that the work has begun, and whatever a later pass must know of it
    /// although this one is killed half-way. `None` for no such write.
    fn announce(
        object: &Self::Object,
        target: &Self::Target,
        observed: &Self::Observed,
        plan: &Self::Plan,
    ) -> Option<StatusOf<Self>> {
        let _ = (object, target, observed, plan);
        None
    }

    /// Does it. Each step may be repeated: the process can be killed between any two.
    fn apply(
        &self,
        write: &Writer,
        target: &Self::Target,
        observed: &Self::Observed,
        plan: Self::Plan,
        applied: &mut Self::Applied,
    ) -> impl Future<Output = Result<(), Problem>> + Send;

    /// A pass has ended, well or with a problem: for a controller's own numbers.
    fn ended(&self, problem: Option<&Problem>, elapsed: Duration) {
        let _ = (problem, elapsed);
    }

    /// Says how it went.
    fn report(object: &Self::Object, outcome: &Outcome<'_, Self>, now: Timestamp) -> Report<StatusOf<Self>>;
}

/// How far a reconcile came: each step's value, as far as it was reached, and the problem that ended it.
pub struct Outcome<'a, R: Reconciler> {
    /// After `validate`.
    pub target: Option<&'a R::Target>,
    /// After `observe`.
    pub observed: Option<&'a R::Observed>,
    /// What `apply` did; empty when it was not reached.
    pub applied: &'a R::Applied,
    /// What ended the reconcile; `None` when all steps succeeded.
    pub problem: Option<&'a Problem>,
}

/// What a reconcile has to say.
#[derive(Clone, Debug)]
pub struct Report<S> {
    /// The whole status. The driver writes it only when it differs from what is there.
    pub status: S,
    /// What happened that no condition says, for a person who runs `kubectl describe`.
    pub notices: Vec<Notice>,
    /// Why nothing is under way, where it is not simply done: the reason of `Reconciling=False`.
    pub settled: &'static str,
    /// When to look again although nothing changed; the driver adds jitter. A problem's own retry comes first.
    pub again: Option<Duration>,
}

impl<S> Report<S> {
    /// A report of a status alone.
    pub fn new(status: S) -> Self {
        Self {
            status,
            notices: Vec::new(),
            settled: "Settled",
            again: None,
        }
    }
}
