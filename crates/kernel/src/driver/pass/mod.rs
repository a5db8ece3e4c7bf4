//! One pass over one object: the choice of its path and the steps of that path, with a deadline and a panic guard.

mod conclude;
mod steps;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use kube::{Api, Resource as _, ResourceExt};
use tokio::time::Instant;
use tracing::{Instrument, warn};

use self::steps::{CleanupPath, EnsurePath, Progress, Subject};
use super::controller::{Newest, Read, Shared};
use crate::events::EventRecord;
use crate::lenient::Flaw;
use crate::problem::{Cause, Problem};
use crate::reconciler::{Cleanup as _, Done, Inactive, Reconciler};
use crate::telemetry::logs::reconcile_span;
use crate::telemetry::metrics::{Finish, Queued};
use crate::text::{printable, shorten};
use crate::watch::dependencies::Key;

/// The reason of a problem that is a bug in the operator.
const PANICKED: &str = "Panicked";
/// The reason of a problem with an object that cannot be read.
const MALFORMED: &str = "Malformed";
/// A condition's message is for people; the API server accepts up to 32 KiB.
const MESSAGE: usize = 2048;

/// Reconciles one object and returns when to requeue it.
pub(super) async fn run<R: Reconciler>(shared: Arc<Shared<R>>, key: Key, queued: Queued) -> Option<Duration> {
    // The object was deleted while it waited, or a deleted child of an owner that is gone enqueued it.
    let newest = shared.newest(&key)?;
    let generation = newest.meta().generation;
    let span = reconcile_span(R::NAME, Some(&key.namespace), &key.name, generation);
    async move {
        let running = queued.started();
        // On the heap: every future around it would be as large as the pass itself.
        let pass = Box::pin(async {
            match newest {
                Newest::Object(object, flaws) => Pass::new(&shared, object, flaws).run().await,
                Newest::Unreadable(object) => shared.unreadable(&object).await,
            }
        });
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

/// How the steps ended short of the desired state.
enum Incomplete {
    /// A step failed.
    Failed(Problem),
    /// `apply` did everything that was planned, and something else has to happen first.
    Blocked(Problem),
}

impl Incomplete {
    fn problem(&self) -> &Problem {
        match self {
            Self::Failed(problem) | Self::Blocked(problem) => problem,
        }
    }

    fn map(self, change: impl FnOnce(Problem) -> Problem) -> Self {
        match self {
            Self::Failed(problem) => Self::Failed(change(problem)),
            Self::Blocked(problem) => Self::Blocked(change(problem)),
        }
    }
}

/// One pass: the path that it took, and how far it came.
struct Pass<'a, R: Reconciler> {
    subject: Subject<'a, R>,
    /// The malformed fields, which are not in the object.
    flaws: Vec<Flaw>,
    /// The object is suspended.
    suspended: bool,
    /// The object is valid, and is neither suspended nor being deleted.
    ensure: Option<Progress<EnsurePath<R>>>,
    /// The object is being deleted.
    cleanup: Option<Progress<CleanupPath<R::Cleanup>>>,
}

impl<'a, R: Reconciler> Pass<'a, R> {
    fn new(shared: &'a Shared<R>, object: Arc<R::Object>, flaws: Vec<Flaw>) -> Self {
        Self {
            subject: Subject {
                shared,
                api: Api::namespaced(shared.client.clone(), &object.namespace().unwrap_or_default()),
                object,
                step: "validate",
                gone: false,
            },
            flaws,
            suspended: false,
            ensure: None,
            cleanup: None,
        }
    }

    async fn run(mut self) -> (Option<Duration>, Finish) {
        let Subject { shared, object, .. } = &self.subject;
        if self.subject.is_deleting() && (!self.subject.has_finalizer() || shared.memory.is_released(object))
        {
            // Our work is done, or never began; others may still hold the object, or the watch may lag.
            return (None, Finish::Success);
        }
        // From when the path was chosen. If the object is deleted while the steps run, the next pass cleans up: this pass
        // has not, and may have just created what must be cleaned up.
        let leaving = self.subject.is_deleting();
        let began = Instant::now();
        let mut incomplete = self.guarded_steps().await.err();
        let problem = incomplete.as_ref().map(Incomplete::problem);
        self.subject
            .shared
            .reconciler
            .on_finished(problem, began.elapsed());
        if leaving && incomplete.is_none() {
            self.publish_cleanup_events().await;
            match self.subject.release().await {
                Ok(()) => return (None, Finish::Success),
                Err(problem) => incomplete = Some(Incomplete::Failed(problem)),
            }
        }
        self.conclude(incomplete).await
    }

    /// The steps with a deadline; a panic in them becomes the problem of this object only.
    async fn guarded_steps(&mut self) -> Result<(), Incomplete> {
        let deadline = self.subject.shared.settings.deadline;
        let steps = AssertUnwindSafe(self.steps()).catch_unwind();
        let failure = match tokio::time::timeout(deadline, steps).await {
            Ok(Ok(Ok(Done::Complete))) => return Ok(()),
            Ok(Ok(Ok(Done::Blocked(problem)))) => return Err(Incomplete::Blocked(problem)),
            Ok(Ok(Err(problem))) => problem,
            Ok(Err(panic)) => panicked(self.subject.step, panic.as_ref()),
            Err(_) => Problem::transient(
                "DeadlineExceeded",
                format!("{} took longer than {} s", self.subject.step, deadline.as_secs()),
            ),
        };
        Err(Incomplete::Failed(failure))
    }

    /// Chooses the path and follows it.
    async fn steps(&mut self) -> Result<Done, Problem> {
        let subject = &mut self.subject;
        if subject.is_deleting() {
            may_leave::<R>(&self.flaws)?;
            let target = R::Cleanup::target(&subject.object);
            return subject.follow(self.cleanup.insert(Progress::new(target))).await;
        }
        may_live(&self.flaws)?;
        if R::is_suspended(&subject.object) {
            self.suspended = true;
            subject.inactive(Inactive::Suspended).await?;
            return Ok(Done::Complete);
        }
        let target = match R::validate(&subject.object) {
            Ok(target) => target,
            Err(problem) => {
                subject.inactive(Inactive::Invalid(&problem)).await?;
                return Err(problem);
            }
        };
        let progress = self.ensure.insert(Progress::new(target));
        if R::needs_finalizer(&progress.target) {
            subject.add_finalizer().await?;
        }
        subject.follow(progress).await
    }
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

/// The operator reconciles an object only if all of it can be read. The schema rejects malformed objects, but an older
/// schema may have accepted one: it gets a condition that names the field, does not affect other objects, and can be
/// deleted.
fn may_live(flaws: &[Flaw]) -> Result<(), Problem> {
    if flaws.is_empty() {
        return Ok(());
    }
    let message = format!(
        "the object cannot be read: {}; correct the field",
        describe(flaws)
    );
    Err(Problem::permanent(MALFORMED, shorten(&message, MESSAGE)))
}

/// A deleted object is cleaned up with the fields that can be read, unless a field that decides what to keep cannot.
fn may_leave<R: Reconciler>(flaws: &[Flaw]) -> Result<(), Problem> {
    let flaws: Vec<Flaw> = flaws
        .iter()
        .filter(|flaw| flaw.concerns(R::DECIDES_DELETION))
        .cloned()
        .collect();
    if flaws.is_empty() {
        return Ok(());
    }
    let message = format!(
        "a field that decides what to keep on deletion is malformed: {}; correct the field",
        describe(&flaws)
    );
    Err(Problem::permanent(MALFORMED, shorten(&message, MESSAGE)))
}

fn describe(flaws: &[Flaw]) -> String {
    let each = flaws.iter().map(|flaw| format!("{}: {}", flaw.path, flaw.error));
    printable(&each.collect::<Vec<_>>().join("; "))
}

impl<R: Reconciler> Shared<R> {
    /// Only the metadata can be read, so there is no status to write: sends an event.
    async fn unreadable(&self, object: &Read<R>) -> (Option<Duration>, Finish) {
        let described = describe(object.flaws());
        warn!(
            error = described,
            "the object cannot be read as {}",
            R::Object::kind(&())
        );
        let event = EventRecord::warning(MALFORMED, "Read", &described);
        self.recorder.publish(&object.object_ref(&()), &event).await;
        (None, Finish::Terminal)
    }
}
