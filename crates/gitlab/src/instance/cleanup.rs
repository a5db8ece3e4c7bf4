//! Cleans up after a deleted instance, in order. GitLab is uninstalled before what it reads is deleted, because its
//! pods would fail while they stop. Databases and users' Secrets stay.

#[cfg(test)]
mod tests;

use futures::future::try_join_all;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use kube::core::{ApiResource, DynamicObject};
use stanchion_api::GitlabInstance;
use stanchion_api::gitlab::{FINALIZER, GitlabInstanceSpec, GitlabInstanceStatus, Phase, condition};
use stanchion_kernel::apply::{ObjectChange, Written, is_owned};
use stanchion_kernel::condition::{Conditions, Truth, find};
use stanchion_kernel::context::Parent;
use stanchion_kernel::events::EventRecord;
use stanchion_kernel::external::ServedKind;
use stanchion_kernel::text::shorten;
use stanchion_kernel::{Cleanup, CleanupOutcome, Done, Inputs, Problem, Reader, Report, Writer};

use super::GitlabController;
use super::observe::{History, history, own_account, release, retained};
use super::plan::{keep_record, make_account, remove_account};
use super::prerequisites::Blocker;
use crate::account;
use crate::flux::{self, Failure, HELM_RELEASE, Progress, Release};
use crate::record::{self, Versions};
use crate::storage::Derived;
use crate::versions::version_of;

/// A deleted instance.
pub struct CleanupTarget {
    pub name: String,
    pub spec: GitlabInstanceSpec,
    /// The derived Secrets in the status.
    pub secrets: Vec<String>,
}

/// The state of a deleted instance.
pub struct CleanupState {
    /// The release and its served version.
    pub release: Option<(ServedKind, DynamicObject)>,
    /// The derived Secrets.
    pub secrets: Vec<Secret>,
    /// The `ServiceAccount` that the operator created.
    pub account: account::Found,
    /// What the record of the versions is made from. Filled only while there is a release.
    pub history: History,
    /// Objects of other operators, which stay: each with its kind and name. Filled only once the release is gone.
    pub retained: Vec<String>,
    /// The instance as the owner of writes.
    pub parent: Parent,
}

pub struct CleanupPlan {
    /// The writes, in this order.
    pub changes: Vec<ObjectChange>,
    /// What the cleanup waits for after these writes.
    pub blocker: Option<Blocker>,
}

/// Cleans up after `GitlabInstance` objects.
pub struct GitlabCleanup;

impl Cleanup for GitlabCleanup {
    type Controller = GitlabController;
    type Target = CleanupTarget;
    type Observed = Box<CleanupState>;
    type Plan = CleanupPlan;
    type Applied = Written;

    const FINALIZER: Option<&'static str> = Some(FINALIZER);

    fn target(instance: &GitlabInstance) -> CleanupTarget {
        let status = instance.status.clone().unwrap_or_default();
        CleanupTarget {
            name: instance.name_any(),
            spec: instance.spec.clone(),
            secrets: status.secrets,
        }
    }

    async fn observe(
        _: &GitlabController,
        read: &Reader,
        cleanup: &CleanupTarget,
    ) -> Result<Self::Observed, Problem> {
        Box::pin(observe(read, cleanup)).await.map(Box::new)
    }

    fn plan(
        cleanup: &CleanupTarget,
        state: &Self::Observed,
        _: &mut Inputs<'_>,
    ) -> Result<CleanupPlan, Problem> {
        plan(cleanup, state)
    }

    async fn apply(
        controller: &GitlabController,
        write: &Writer,
        _: &CleanupTarget,
        _: &Self::Observed,
        plan: CleanupPlan,
        written: &mut Written,
    ) -> Result<Done, Problem> {
        controller.cache.forget(&write.parent().uid);
        write.apply_all(plan.changes, written).await?;
        Ok(Blocker::done(plan.blocker.as_ref()))
    }

    /// What blocks the deletion of an instance; or what stays, reported while the instance still exists.
    fn report(
        instance: &GitlabInstance,
        outcome: &CleanupOutcome<'_, Self>,
        now: Timestamp,
    ) -> Report<GitlabInstanceStatus> {
        let mut report = Report::new(instance.status.clone().unwrap_or_default());
        if let Some(problem) = outcome.problem {
            wait(&mut report, problem, instance.metadata.generation, now);
        } else if let Some(state) = outcome.observed {
            let was_released = report.status.chart_version.is_some();
            report.events = left_behind(&outcome.target.name, state, was_released);
        }
        report
    }
}

/// What the deletion waits for: in `Ready`, because GitLab is being removed, and in an event when it changes.
fn wait(
    report: &mut Report<GitlabInstanceStatus>,
    problem: &Problem,
    generation: Option<i64>,
    now: Timestamp,
) {
    let Problem { reason, message, .. } = problem;
    let status = &mut report.status;
    let before = find(&status.conditions, condition::READY).map(|ready| ready.reason.as_str());
    if before != Some(*reason) {
        report.events = vec![EventRecord::normal(reason, "Wait", message)];
    }
    let mut conditions = Conditions::new(&status.conditions, generation, now);
    conditions.set(condition::READY, Truth::False, reason, message);
    status.conditions = conditions.finish();
    status.phase = Some(Phase::Terminating);
    status.message = Some(message.clone());
}

/// Reads what is left of the instance.
async fn observe(read: &Reader, cleanup: &CleanupTarget) -> Result<CleanupState, Problem> {
    let release = match read.served(&HELM_RELEASE).await? {
        Some(kind) => release(read, &kind, &flux::name(&cleanup.name))
            .await?
            .filter(|release| is_owned(&release.metadata, read.parent()))
            .map(|release| (kind, release)),
        None => None,
    };
    let secrets = try_join_all(
        cleanup
            .secrets
            .iter()
            .map(async |name| read.get::<Secret>(name).await),
    )
    .await?;
    let (retained, history) = if release.is_none() {
        (retained(read, &cleanup.name).await, History::default())
    } else {
        (Vec::new(), history(read, cleanup).await?)
    };
    Ok(CleanupState {
        retained,
        history,
        release,
        secrets: secrets.into_iter().flatten().collect(),
        account: own_account(read, None, &cleanup.name).await?,
        parent: read.parent().clone(),
    })
}

/// The next step of the cleanup.
fn plan(cleanup: &CleanupTarget, state: &CleanupState) -> Result<CleanupPlan, Problem> {
    let instance = cleanup.name.as_str();
    if let Some((kind, release)) = &state.release {
        let mut plan = uninstall(&kind.resource, release);
        // Flux uninstalls with the ServiceAccount of the release, and leaves everything behind without it.
        let release = Release::of(release);
        if release.account == Some(account::name(instance))
            && state.account.somebody_elses(instance).is_none()
        {
            let account = make_account(instance, &state.account, &state.parent)?;
            plan.changes.splice(0..0, account);
        }
        // Last: nobody can create it in a namespace that is being deleted, and the deletion goes on without it.
        plan.changes.extend(record(cleanup, state, &release));
        return Ok(plan);
    }
    let ours = Derived::names(instance);
    let secrets = state.secrets.iter().filter(|secret| {
        // The list comes from the status: delete only names that the operator gives.
        let name = secret.metadata.name.as_ref();
        name.is_some_and(|name| ours.contains(name))
    });
    let secrets = secrets.map(|secret| ObjectChange::delete::<Secret>(&secret.metadata, &()));
    let account = remove_account(instance, &state.account);
    Ok(CleanupPlan {
        changes: secrets.chain(account).collect(),
        blocker: None,
    })
}

/// The record of the versions: Flux may have begun with one that no pass has seen. One that is somebody else's stays as it
/// is, and does not keep the instance.
fn record(cleanup: &CleanupTarget, state: &CleanupState, release: &Release) -> Option<ObjectChange> {
    let History {
        map,
        record,
        database,
    } = &state.history;
    let database = database.as_ref()?;
    let running = release.running.as_ref();
    let running = running.and_then(|running| version_of(running, map.as_ref()));
    let versions = Versions::read(record.as_ref(), database).now(running, Some(release), map.as_ref());
    let change = keep_record(versions, &cleanup.name, database, record.as_ref(), &state.parent);
    change.ok().flatten()
}

/// What stays, reported while the instance still exists.
fn left_behind(instance: &str, state: &CleanupState, was_released: bool) -> Vec<EventRecord> {
    let retained = (!state.retained.is_empty())
        .then(|| format!("{}, with their disks and Secrets", state.retained.join(", ")));
    let installed = was_released.then(|| {
        format!(
            "the Secrets and claims that GitLab's chart has made, {instance}-rails-secret and the repositories among them, \
             and ConfigMap {}",
            record::name(instance)
        )
    });
    let parts: Vec<String> = [retained, installed].into_iter().flatten().collect();
    if parts.is_empty() {
        return Vec::new();
    }
    let words = format!(
        "{} stay: a new instance of this name finds them again",
        parts.join("; ")
    );
    vec![EventRecord::normal("Retained", "Delete", words)]
}

/// When a suspended release is deleted, Flux leaves what it installed. GitLab would then run on without the Secrets
/// that it reads, so a person has to decide.
fn uninstall(kind: &ApiResource, release: &DynamicObject) -> CleanupPlan {
    let release_of = Release::of(release);
    let Release {
        object: name,
        suspended,
        terminating,
        ..
    } = &release_of;
    if *suspended && !terminating {
        let words = format!(
            "HelmRelease {name} is suspended, so Flux does not uninstall GitLab: run flux resume; or \
             delete the HelmRelease to leave GitLab behind, without the Secrets of its buckets"
        );
        return CleanupPlan {
            changes: Vec::new(),
            blocker: Some(Blocker::pending("ReleaseSuspended", words)),
        };
    }
    let (reason, words) = waits_for(&release_of);
    let change = ObjectChange::delete::<DynamicObject>(&release.metadata, kind);
    CleanupPlan {
        changes: if *terminating { Vec::new() } else { vec![change] },
        blocker: Some(Blocker::pending(reason, words)),
    }
}

/// What an uninstall waits for, until when, and how to stop waiting.
fn waits_for(release: &Release) -> (&'static str, String) {
    let name = &release.object;
    let way_out = format!(
        "kubectl patch helmrelease {name} --type=merge -p '{{\"metadata\":{{\"finalizers\":null}}}}'"
    );
    let installed = release.name.as_deref().unwrap_or(name);
    match (&release.progress, release.working_since) {
        (
            Progress::Failed {
                what: Failure::Uninstall,
                message,
                ..
            },
            _,
        ) => (
            "UninstallFailed",
            format!(
                "Flux cannot uninstall HelmRelease {name} and tries again: {}. To leave GitLab behind: {way_out}",
                shorten(message.trim_end_matches('.'), 1024)
            ),
        ),
        (Progress::Working(words), Some(_)) => {
            let until = release.until().map_or_else(String::new, |until| {
                let until = until.round(jiff::Unit::Minute).unwrap_or(until);
                format!(", at {until} at the latest")
            });
            (
                "WaitingForFlux",
                format!(
                    "Flux is still at work on HelmRelease {name} ({}) and uninstalls it when that has ended{until}. To wait no \
                     longer: {way_out}, and then helm uninstall {installed} for what Flux has installed until then",
                    shorten(words.trim_end_matches('.'), 256)
                ),
            )
        }
        _ => (
            "Uninstalling",
            format!("Flux uninstalls HelmRelease {name}. If Flux is no longer there: {way_out}"),
        ),
    }
}
