//! One pass over one object: the choice of its path and the steps of that path, with a deadline and a panic guard.

mod conclude;
mod inactive;
mod path;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use kube::{Api, Resource, ResourceExt};
use tokio::time::Instant;
use tracing::Instrument;

use self::inactive::{may_leave, may_live};
use self::path::{CleanupPath, EnsurePath, Path};
use super::controller::{Newest, Read, Shared};
use crate::context::{Reader, ReconcileContext, Writer};
use crate::lenient::Flaw;
use crate::problem::{Cause, Problem, log_panic};
use crate::reconciler::{self, Cleanup as _, Done, Inactive, Inputs, Reconciler, StatusOf};
use crate::telemetry::logs::reconcile_span;
use crate::telemetry::metrics::{Finish, Queued};
use crate::watch::dependencies::Key;
use crate::{ambient, finalizer, status};

/// The step that writes.
const APPLY: &str = "apply";
/// The reason of a problem that is a bug in the operator.
const PANICKED: &str = "Panicked";
/// Reconciles one object and returns when to requeue it.
pub(super) async fn run<R: Reconciler>(shared: Arc<Shared<R>>, key: Key, queued: Queued) -> Option<Duration> {
    let fence = shared.fence.clone();
    let tasks = shared.fence.tasks().clone();
    // On the heap: every future around it would be as large as the pass itself.
    let pass = Box::pin(reconcile(shared, key, queued));
    stanchion_postgres::Fence::new(move || fence.check().is_ok())
        .tracking(tasks)
        .around(pass)
        .await
}

async fn reconcile<R: Reconciler>(shared: Arc<Shared<R>>, key: Key, queued: Queued) -> Option<Duration> {
    clean_up_predecessors(&shared, &key).await;
    let Some(newest) = shared.newest(&key) else {
        // The object was deleted while it waited, or a deleted child of an owner that is gone enqueued it.
        shared.forget_if_gone(&key);
        return None;
    };
    let generation = newest.meta().generation;
    let span = reconcile_span(R::NAME, Some(&key.namespace), &key.name, generation);
    async move {
        let running = queued.started();
        let pass = Box::pin(async {
            match newest {
                Newest::Object(object, flaws) => Pass::new(&shared, object, flaws).run().await,
                Newest::Unreadable(object) => shared.unreadable(&object).await,
            }
        });
        // The steps have their own guard, which reports on the object. This one is for the code around them.
        let (requeue_after, finish) = match AssertUnwindSafe(pass).catch_unwind().await {
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

/// Cleans up after objects of this name that are gone: a pass applied while another replica had cleaned up already. This
/// comes before the pass over a new object of the name, so that it does not remove what that pass creates.
async fn clean_up_predecessors<R: Reconciler>(shared: &Shared<R>, key: &Key) {
    if shared.memory.needs_late_cleanup(key) {
        let newest = shared.newest(key);
        let uid = newest.as_ref().and_then(|newest| newest.meta().uid.as_deref());
        clean_up_late(shared, key, uid).await;
    }
}

/// Cleans up after passes that applied while another replica had cleaned up already, except for the object with this uid.
async fn clean_up_late<R: Reconciler>(shared: &Shared<R>, key: &Key, except: Option<&str>) {
    for object in shared.memory.take_late(key, except) {
        conclude::clean_up(shared, object.as_ref().clone()).await;
    }
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
            clean_up_late(shared, &crate::watch::key(object.meta()), None).await;
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
            subject.warn_of_unread(&self.flaws).await;
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

/// What the steps of a path have returned so far.
struct Progress<P: Path> {
    target: P::Target,
    observed: Option<P::Observed>,
    applied: P::Applied,
}

impl<P: Path> Progress<P> {
    fn new(target: P::Target) -> Self {
        Self {
            target,
            observed: None,
            applied: P::Applied::default(),
        }
    }
}

/// The object of a pass, and the step that the pass is at.
struct Subject<'a, R: Reconciler> {
    shared: &'a Shared<R>,
    api: Api<Read<R>>,
    object: Arc<R::Object>,
    step: &'static str,
    /// The object is gone: there is no status to write.
    gone: bool,
}

impl<R: Reconciler> Subject<'_, R> {
    /// Runs the steps of a path and records their results.
    async fn follow<P: Path<Controller = R>>(&mut self, progress: &mut Progress<P>) -> Result<Done, Problem> {
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
            self.step = "pre_apply_status";
            if let Some(object) = self.write_status(status).await? {
                self.object = Arc::new(as_validated(whole::<R>(object)?, self.object.as_ref()));
            }
        }
        self.step = APPLY;
        let write = self.writer(context);
        P::apply(controller, &write, target, observed, plan, applied).await
    }

    /// Adds our finalizer, unless the object has it or is being deleted.
    async fn add_finalizer(&mut self) -> Result<(), Problem> {
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
        // Not what the response contains: an annotation that somebody else has set meanwhile is still news.
        expected
            .resource_version
            .clone_from(&object.meta().resource_version);
        self.shared.fingerprints.expect::<R>(&expected);
        self.object = Arc::new(as_validated(object, self.object.as_ref()));
        Ok(())
    }

    /// Writes a status that differs from the current one; `None` if there was nothing to write.
    async fn write_status(&self, status: StatusOf<R>) -> Result<Option<Read<R>>, Problem> {
        let ours: Vec<&str> = [crate::condition::RECONCILING, crate::condition::STALLED]
            .into_iter()
            .chain(R::CONDITIONS.iter().copied())
            .collect();
        let (shared, object) = (self.shared, self.object.as_ref());
        if status::is_shown(object, &status, &ours) {
            return Ok(None);
        }
        let written = status::write(&self.api, object, &status, &ours, &shared.field_manager).await?;
        if let Some(written) = written.clone().into_whole() {
            shared.memory.wrote(&written);
        }
        Ok(Some(written))
    }

    fn writer(&self, context: ReconcileContext) -> Writer {
        Writer::new(
            context,
            self.shared.field_manager.clone(),
            self.shared.fence.clone(),
        )
    }

    fn is_deleting(&self) -> bool {
        self.object.meta().deletion_timestamp.is_some()
    }

    fn has_finalizer(&self) -> bool {
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

fn panicked(step: &str, panic: &(dyn std::any::Any + Send)) -> Problem {
    log_panic(step, panic);
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
