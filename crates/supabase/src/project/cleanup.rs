//! The deletion of a project. Its children are garbage-collected; what it created in the database is removed if the spec
//! requests that.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use stanchion_api::SupabaseProject;
use stanchion_api::supabase::{DeletionPolicy, FINALIZER, Phase, SupabaseProjectStatus};
use stanchion_kernel::events::EventRecord;
use stanchion_kernel::{Cleanup, CleanupOutcome, Done, Inputs, Problem, Reader, Report, Writer};
use stanchion_postgres as pg;
use tokio::time::Instant;

use super::target::Wanted;
use super::{ProjectController, Setup, secrets, validate};
use crate::database;

/// How long a deleted project waits for its database.
const HOLD: Duration = Duration::from_mins(5);

/// When the first attempt to clean up after each deleted project began, by uid. The time of the deletion is from another
/// clock, which may differ by more than the wait. A restarted operator waits anew.
#[derive(Default)]
pub(super) struct Waiting(Mutex<HashMap<String, Instant>>);

impl Waiting {
    fn begin(&self, uid: &str) {
        self.0.lock().entry(uid.to_owned()).or_insert_with(Instant::now);
    }

    fn end(&self, uid: &str) {
        self.0.lock().remove(uid);
    }

    fn waited(&self, uid: &str) -> Duration {
        let begun = self.0.lock().get(uid).copied();
        begun.map_or(Duration::ZERO, |begun| begun.elapsed())
    }
}

/// Cleans up after a `SupabaseProject`.
pub struct ProjectCleanup;

/// A deleted project that removes what it created.
pub struct CleanupTarget {
    /// Its validated spec.
    wanted: Wanted,
    uid: String,
}

/// What is known about the database.
pub enum Found {
    /// The spec keeps everything.
    NotRequested,
    /// The Secret of the administrator is gone or incomplete. It may be deleted first, with its namespace, which nothing
    /// may block.
    NoAdministrator(Problem),
    /// The administrator's connection.
    Connection {
        connection: Box<pg::ConnectionConfig>,
        /// How long the cleanup has been tried.
        waited: Duration,
    },
}

/// What to do.
pub enum CleanupPlan {
    Nothing,
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
}

impl Cleanup for ProjectCleanup {
    type Controller = ProjectController;
    type Target = Option<Box<CleanupTarget>>;
    type Observed = Found;
    type Plan = CleanupPlan;
    type Applied = Removed;

    const FINALIZER: Option<&'static str> = Some(FINALIZER);

    /// An invalid project has created nothing.
    fn target(project: &SupabaseProject) -> Self::Target {
        let asked = project.spec.deletion_policy == DeletionPolicy::Delete;
        let wanted = asked.then(|| validate::wanted(project).ok()).flatten()?;
        let uid = project.metadata.uid.clone().unwrap_or_default();
        Some(Box::new(CleanupTarget { wanted, uid }))
    }

    async fn observe(
        controller: &ProjectController,
        read: &Reader,
        target: &Self::Target,
    ) -> Result<Found, Problem> {
        let Some(CleanupTarget { wanted, uid }) = target.as_deref() else {
            return Ok(Found::NotRequested);
        };
        let fetched = secrets::fetch(read, wanted.administrator_secrets(), BTreeSet::new()).await?;
        Ok(match secrets::administrator(&fetched, wanted) {
            Ok((_, connection)) => Found::Connection {
                connection: Box::new(connection),
                waited: controller.waiting.waited(uid),
            },
            Err(problem) => Found::NoAdministrator(problem),
        })
    }

    /// A database that does not answer blocks only for a limited time.
    fn plan(target: &Self::Target, found: &Found, _: &mut Inputs<'_>) -> Result<CleanupPlan, Problem> {
        let Some(target) = target else {
            return Ok(CleanupPlan::Nothing);
        };
        Ok(match found {
            Found::NotRequested => CleanupPlan::Nothing,
            Found::NoAdministrator(problem) => CleanupPlan::Leave(problem.to_string()),
            Found::Connection { waited, .. } if *waited > HOLD => {
                CleanupPlan::Leave("the cleanup of the database timed out".into())
            }
            Found::Connection { connection, .. } => CleanupPlan::Remove {
                database: connection.clone(),
                project: target.wanted.project_id(),
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
        let uid = target.as_ref().map_or("", |target| target.uid.as_str());
        match plan {
            CleanupPlan::Nothing => {}
            CleanupPlan::Leave(why) => {
                tracing::warn!(why, "what the project created in the database is left in place");
            }
            CleanupPlan::Remove { database, project } => {
                write.may_write()?;
                controller.waiting.begin(uid);
                let Setup {
                    pools, fingerprints, ..
                } = &controller.setup;
                removed.left = match database::remove(pools, &database, &project).await {
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
        let left = &outcome.applied.left;
        let what = match outcome.problem {
            Some(problem) => problem.to_string(),
            None if left.is_empty() => return Report::new(status),
            None => format!("left in the database, because others use it: {}", left.join("; ")),
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

/// Whether the database does not exist any more.
fn is_gone(problem: &Problem) -> bool {
    let cause = std::error::Error::source(problem).and_then(|cause| cause.downcast_ref::<pg::Error>());
    cause.is_some_and(|error| error.sqlstate() == Some("3D000"))
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;
    use rand::rngs::StdRng;
    use serde_json::{Value, json};

    use super::*;

    fn project(policy: &str) -> SupabaseProject {
        let object = json!({
            "apiVersion": "supabase.strrl.dev/v1alpha1", "kind": "SupabaseProject",
            "metadata": { "name": "shop", "namespace": "ns", "deletionTimestamp": "2026-01-01T00:00:00Z" },
            "spec": {
                "projectId": "shop", "deletionPolicy": policy,
                "database": { "secretRef": { "name": "db" } }, "storage": { "secretRef": { "name": "s3" } },
            },
        });
        serde_json::from_value(object).unwrap()
    }

    /// What is planned after so many minutes, by a clock that is a day ahead of the API server's.
    fn plan(project: &SupabaseProject, minutes: u64) -> CleanupPlan {
        let connection = pg::ConnectionConfig::new("pg", 5432, "shop", "postgres").unwrap();
        let found = Found::Connection {
            connection: Box::new(connection),
            waited: Duration::from_mins(minutes),
        };
        let target = ProjectCleanup::target(project);
        let mut inputs = Inputs {
            now: "2026-01-02T00:00:00Z".parse().unwrap(),
            random: &mut StdRng::seed_from_u64(1),
        };
        ProjectCleanup::plan(&target, &found, &mut inputs).unwrap()
    }

    /// Nothing is removed unless the spec requests it, and an invalid project has created nothing.
    #[test]
    fn a_project_leaves_as_it_asks_to() {
        let leaves = |spec: Value| {
            let mut object = json!({
                "apiVersion": "supabase.strrl.dev/v1alpha1", "kind": "SupabaseProject",
                "metadata": {"name": "it", "namespace": "ns", "deletionTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {
                    "projectId": "it", "suspend": true,
                    "database": {"secretRef": {"name": "db"}}, "storage": {"secretRef": {"name": "s3"}},
                },
            });
            for (field, value) in spec.as_object().unwrap() {
                object["spec"][field] = value.clone();
            }
            let cleanup = ProjectCleanup::target(&serde_json::from_value(object).unwrap());
            cleanup.map(|cleanup| cleanup.wanted.project_id())
        };
        assert_eq!(leaves(json!({})), None);
        assert_eq!(
            leaves(json!({"deletionPolicy": "Delete"})),
            Some("ns/it".to_owned())
        );
        let invalid = json!({"deletionPolicy": "Delete", "kong": {"image": "kong"}});
        assert_eq!(leaves(invalid), None);
    }

    #[test]
    fn a_database_that_does_not_answer_blocks_for_a_while() {
        assert!(matches!(plan(&project("Retain"), 0), CleanupPlan::Nothing));
        let CleanupPlan::Remove { project: of, .. } = plan(&project("Delete"), 4) else {
            panic!("it waits for its database");
        };
        assert_eq!(of, "ns/shop");
        assert!(matches!(plan(&project("Delete"), 6), CleanupPlan::Leave(_)));
    }

    /// The wait begins with the first attempt, and another project does not inherit it.
    #[tokio::test(start_paused = true)]
    async fn a_project_waits_from_its_first_attempt() {
        let waiting = Waiting::default();
        assert_eq!(waiting.waited("one"), Duration::ZERO);
        waiting.begin("one");
        tokio::time::advance(Duration::from_mins(3)).await;
        waiting.begin("one");
        tokio::time::advance(Duration::from_mins(3)).await;
        assert_eq!(waiting.waited("one"), Duration::from_mins(6));
        assert_eq!(waiting.waited("two"), Duration::ZERO);
        waiting.end("one");
        assert_eq!(waiting.waited("one"), Duration::ZERO);
    }

    #[test]
    fn what_is_left_is_reported_although_nothing_failed() {
        let project = project("Delete");
        let target = ProjectCleanup::target(&project);
        let report = |left: &[&str]| {
            let applied = Removed {
                left: left.iter().map(ToString::to_string).collect(),
            };
            let outcome = CleanupOutcome {
                target: &target,
                observed: None,
                applied: &applied,
                problem: None,
                blocked: false,
            };
            ProjectCleanup::report(&project, &outcome, Timestamp::UNIX_EPOCH).events
        };
        assert_eq!(report(&[]), []);
        let events = report(&["schema storage", "role anon"]);
        let notes: Vec<_> = events.iter().map(|event| event.note.as_str()).collect();
        assert_eq!(
            notes,
            ["Terminating resources: left in the database, because others use it: schema storage; role anon"]
        );
    }
}
