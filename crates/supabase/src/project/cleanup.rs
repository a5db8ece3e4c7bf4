//! The deletion of a project. Its children are garbage-collected; what it created in the database is removed if the spec
//! requests that.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt as _;
use parking_lot::Mutex;
use stanchion_api::SupabaseProject;
use stanchion_api::supabase::{DeletionPolicy, FINALIZER, Phase, SupabaseProjectStatus};
use stanchion_kernel::events::EventRecord;
use stanchion_kernel::problem::Cause;
use stanchion_kernel::{Cleanup, CleanupOutcome, Done, Inputs, Problem, Reader, Report, Writer};
use stanchion_postgres as pg;
use tokio::time::Instant;

use super::target::Administrator;
use super::{ProjectController, Setup, secrets};
use crate::database::{self, Login, Names};

/// How long a deleted project waits for its database.
const HOLD: Duration = Duration::from_mins(5);

/// When the first attempt to clean up after each deleted project began, by uid, and what it waits for: a person who brings
/// back the Secret has not used up the time of the database. The time of the deletion is from another clock, which may
/// differ by more than the wait. A restarted operator waits anew.
#[derive(Default)]
pub(super) struct Waiting(Mutex<HashMap<(String, WaitsFor), Instant>>);

/// What a cleanup waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum WaitsFor {
    /// The administrator's Secret.
    Administrator,
    Database,
}

impl Waiting {
    fn begin(&self, uid: &str, waits_for: WaitsFor) {
        let mut all = self.0.lock();
        all.entry((uid.to_owned(), waits_for))
            .or_insert_with(Instant::now);
    }

    fn end(&self, uid: &str) {
        self.0.lock().retain(|(other, _), _| other != uid);
    }

    fn waited(&self, uid: &str, waits_for: WaitsFor) -> Duration {
        let begun = self.0.lock().get(&(uid.to_owned(), waits_for)).copied();
        begun.map_or(Duration::ZERO, |begun| begun.elapsed())
    }
}

/// Cleans up after a `SupabaseProject`.
pub struct ProjectCleanup;

/// What a deleted project requests. It may be invalid by now: only what leads to its database matters.
pub enum CleanupTarget {
    /// The spec keeps everything.
    NotRequested,
    /// It removes what it created, but does not say where that is.
    NoDatabase,
    /// It removes what it created.
    Requested(Box<Requested>),
}

/// A deleted project that removes what it created.
pub struct Requested {
    administrator: Administrator,
    /// The project's name in its database.
    project: String,
    uid: String,
}

/// What is known about the database.
pub enum Found {
    /// Nothing was read.
    NotRequested,
    /// The Secret of the administrator is gone or incomplete.
    NoAdministrator {
        problem: Problem,
        /// Whether the namespace is being deleted, which nothing may block. The Secret does not come back there.
        namespace_ends: bool,
        /// How long the cleanup has waited for it.
        waited: Duration,
    },
    /// The administrator's connection.
    Connection {
        connection: Box<pg::ConnectionConfig>,
        /// How long the cleanup has been tried with a connection.
        waited: Duration,
    },
}

/// What to do.
pub enum CleanupPlan {
    Nothing,
    /// Wait for the administrator's Secret.
    Wait(Problem),
    /// Leave in place what is in the database, for this reason.
    Leave(String),
    /// Remove what this project created.
    Remove {
        /// The administrator's connection.
        database: Box<pg::ConnectionConfig>,
        /// The project's name in its database.
        project: String,
    },
}

/// What was done.
#[derive(Default)]
pub struct Removed {
    /// What others use, and had to be left.
    left: Vec<String>,
    /// Why nothing was removed.
    untouched: Option<String>,
}

impl Cleanup for ProjectCleanup {
    type Controller = ProjectController;
    type Target = CleanupTarget;
    type Observed = Found;
    type Plan = CleanupPlan;
    type Applied = Removed;

    const FINALIZER: Option<&'static str> = Some(FINALIZER);

    /// The rest of the spec is not validated: a project that ran and became invalid has created what it removes.
    fn target(project: &SupabaseProject) -> Self::Target {
        if project.spec.deletion_policy != DeletionPolicy::Delete {
            return CleanupTarget::NotRequested;
        }
        let Some(administrator) = Administrator::of(project) else {
            return CleanupTarget::NoDatabase;
        };
        CleanupTarget::Requested(Box::new(Requested {
            project: format!("{}/{}", administrator.namespace, project.name_any()),
            administrator,
            uid: project.metadata.uid.clone().unwrap_or_default(),
        }))
    }

    async fn observe(
        controller: &ProjectController,
        read: &Reader,
        target: &Self::Target,
    ) -> Result<Found, Problem> {
        let CleanupTarget::Requested(requested) = target else {
            return Ok(Found::NotRequested);
        };
        let Requested {
            administrator, uid, ..
        } = &**requested;
        let fetched = secrets::fetch(read, administrator.to_read()).await?;
        let waited = |waits_for| controller.waiting.waited(uid, waits_for);
        Ok(match secrets::administrator(&fetched, administrator) {
            Ok((_, connection)) => Found::Connection {
                connection: Box::new(connection),
                waited: waited(WaitsFor::Database),
            },
            Err(problem) => Found::NoAdministrator {
                problem,
                namespace_ends: ends(read, &administrator.namespace).await?,
                waited: waited(WaitsFor::Administrator),
            },
        })
    }

    /// A database that does not answer, and a Secret that is gone, block only for a limited time.
    fn plan(target: &Self::Target, found: &Found, _: &mut Inputs<'_>) -> Result<CleanupPlan, Problem> {
        let requested = match target {
            CleanupTarget::NotRequested => return Ok(CleanupPlan::Nothing),
            CleanupTarget::NoDatabase => {
                let why = "spec.database.secretRef names no Secret of the namespace";
                return Ok(CleanupPlan::Leave(why.into()));
            }
            CleanupTarget::Requested(requested) => requested,
        };
        Ok(match found {
            Found::NotRequested => CleanupPlan::Nothing,
            Found::NoAdministrator {
                problem,
                namespace_ends,
                waited,
            } if *namespace_ends || *waited > HOLD => CleanupPlan::Leave(problem.to_string()),
            Found::NoAdministrator { problem, .. } => CleanupPlan::Wait(Problem::new(
                problem.class,
                problem.reason,
                problem.message.clone(),
            )),
            Found::Connection { waited, .. } if *waited > HOLD => {
                CleanupPlan::Leave("the cleanup of the database timed out".into())
            }
            Found::Connection { connection, .. } => CleanupPlan::Remove {
                database: connection.clone(),
                project: requested.project.clone(),
            },
        })
    }

    async fn apply(
        controller: &ProjectController,
        write: &Writer,
        target: &Self::Target,
        _: &Found,
        plan: CleanupPlan,
        removed: &mut Removed,
    ) -> Result<Done, Problem> {
        let uid = match target {
            CleanupTarget::Requested(requested) => requested.uid.as_str(),
            CleanupTarget::NotRequested | CleanupTarget::NoDatabase => "",
        };
        match plan {
            CleanupPlan::Nothing => {}
            CleanupPlan::Wait(problem) => {
                controller.waiting.begin(uid, WaitsFor::Administrator);
                return Ok(Done::Blocked(problem));
            }
            CleanupPlan::Leave(why) => {
                tracing::warn!(why, "what the project created in the database is left in place");
                removed.untouched = Some(why);
            }
            CleanupPlan::Remove { database, project } => {
                write.may_write()?;
                controller.waiting.begin(uid, WaitsFor::Database);
                let Setup {
                    pools, fingerprints, ..
                } = &controller.setup;
                removed.left = match database::remove(pools, &database, &project, fingerprints).await {
                    Err(problem) if is_gone(&problem) => {
                        database::remove_orphans(pools, &database, &project, fingerprints).await?
                    }
                    left => left?,
                };
            }
        }
        controller.waiting.end(uid);
        Ok(Done::Complete)
    }

    fn report(
        project: &SupabaseProject,
        outcome: &CleanupOutcome<'_, Self>,
        _: Timestamp,
    ) -> Report<SupabaseProjectStatus> {
        let mut status = project.status.clone().unwrap_or_default();
        let Removed { left, untouched } = outcome.applied;
        let what = match (outcome.problem, untouched) {
            (Some(problem), _) => problem.to_string(),
            (None, Some(why)) => format!("{why}; so this stays: {}", what_stays(project)),
            (None, None) if left.is_empty() => return Report::new(status),
            (None, None) => format!("left in the database, because others use it: {}", left.join("; ")),
        };
        let message = format!("Terminating resources: {what}");
        let is_news = status.message.as_deref() != Some(&message);
        status.phase = Some(Phase::Terminating);
        status.message = Some(message.clone());
        let mut report = Report::new(status);
        if is_news {
            report.events = vec![EventRecord::warning("CleanupIncomplete", "Delete", message)];
        }
        report
    }
}

/// Whether the namespace is being deleted. An operator that may not read namespaces does not delay their end.
async fn ends(read: &Reader, namespace: &str) -> Result<bool, Problem> {
    match read.get_cluster_wide::<Namespace>(namespace).await {
        Ok(found) => Ok(found.is_none_or(|found| found.metadata.deletion_timestamp.is_some())),
        Err(problem) if problem.is(Cause::Forbidden) => Ok(true),
        Err(problem) => Err(problem),
    }
}

/// What a project that cannot reach its database leaves there, by its names.
fn what_stays(project: &SupabaseProject) -> String {
    let owner = format!(
        "{}/{}",
        project.metadata.namespace.as_deref().unwrap_or_default(),
        project.name_any()
    );
    let suffix = project
        .status
        .as_ref()
        .and_then(|status| status.login_suffix.as_deref());
    let names = suffix.and_then(|suffix| Names::remembered(&owner, suffix));
    let names = names.unwrap_or_else(|| Names::with_suffix(""));
    let logins: BTreeSet<String> = Login::ALL.into_iter().map(|login| names.of(login)).collect();
    let logins: Vec<String> = logins.into_iter().collect();
    format!(
        "the schemas of Supabase and _stanchion in the database, the database {} if there is one, and the logins {}",
        names.internal_database(),
        logins.join(", ")
    )
}

/// Whether the database does not exist any more.
fn is_gone(problem: &Problem) -> bool {
    let cause = std::error::Error::source(problem).and_then(|cause| cause.downcast_ref::<pg::Error>());
    cause.is_some_and(|error| error.sqlstate() == Some("3D000"))
}

#[cfg(test)]
mod tests;
