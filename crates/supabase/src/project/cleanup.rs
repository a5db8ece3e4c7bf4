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
        /// How long the cleanup has been tried.
        waited: Duration,
    },
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
        let waited = controller.waiting.waited(uid);
        Ok(match secrets::administrator(&fetched, administrator) {
            Ok((_, connection)) => Found::Connection {
                connection: Box::new(connection),
                waited,
            },
            Err(problem) => Found::NoAdministrator {
                problem,
                namespace_ends: ends(read, &administrator.namespace).await?,
                waited,
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
                controller.waiting.begin(uid);
                return Ok(Done::Blocked(problem));
            }
            CleanupPlan::Leave(why) => {
                tracing::warn!(why, "what the project created in the database is left in place");
                removed.untouched = Some(why);
            }
            CleanupPlan::Remove { database, project } => {
                write.may_write()?;
                controller.waiting.begin(uid);
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

    /// Nothing is removed unless the spec requests it. A spec that is invalid by now does not keep anything: only an
    /// object that was valid once has the finalizer.
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
            match ProjectCleanup::target(&serde_json::from_value(object).unwrap()) {
                CleanupTarget::NotRequested => "keeps",
                CleanupTarget::NoDatabase => "cannot",
                CleanupTarget::Requested(requested) if requested.project == "ns/it" => "removes",
                CleanupTarget::Requested(_) => "removes another's",
            }
        };
        assert_eq!(leaves(json!({})), "keeps");
        assert_eq!(leaves(json!({"deletionPolicy": "Delete"})), "removes");
        let invalid =
            json!({"deletionPolicy": "Delete", "kong": {"image": "kong"}, "jwt": {"expiry": "soon"}});
        assert_eq!(leaves(invalid), "removes");
        let elsewhere = json!({"secretRef": {"name": "db", "namespace": "other"}});
        assert_eq!(
            leaves(json!({"deletionPolicy": "Delete", "database": elsewhere})),
            "cannot"
        );
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

    #[test]
    fn a_secret_that_is_gone_blocks_for_a_while_and_not_the_end_of_a_namespace() {
        let target = ProjectCleanup::target(&project("Delete"));
        let plan = |namespace_ends: bool, minutes: u64| {
            let found = Found::NoAdministrator {
                problem: Problem::dependency("DependencyValidationFailed", "database secret 'db' not found"),
                namespace_ends,
                waited: Duration::from_mins(minutes),
            };
            let mut inputs = Inputs {
                now: Timestamp::UNIX_EPOCH,
                random: &mut StdRng::seed_from_u64(1),
            };
            ProjectCleanup::plan(&target, &found, &mut inputs).unwrap()
        };
        assert!(matches!(plan(false, 4), CleanupPlan::Wait(_)));
        assert!(matches!(plan(false, 6), CleanupPlan::Leave(_)));
        assert!(matches!(plan(true, 0), CleanupPlan::Leave(_)));
    }

    #[test]
    fn what_could_not_be_removed_is_named() {
        let project = project("Delete");
        let target = ProjectCleanup::target(&project);
        let applied = Removed {
            left: Vec::new(),
            untouched: Some("database secret 'db' not found".into()),
        };
        let outcome = CleanupOutcome {
            target: &target,
            observed: None,
            applied: &applied,
            problem: None,
            blocked: false,
        };
        let events = ProjectCleanup::report(&project, &outcome, Timestamp::UNIX_EPOCH).events;
        let [event] = events.as_slice() else {
            panic!("one event: {events:?}")
        };
        assert_eq!(event.reason, "CleanupIncomplete");
        for words in [
            "database secret 'db' not found",
            "_stanchion",
            "authenticator",
            "supabase_auth_admin",
        ] {
            assert!(event.note.contains(words), "{words}: {}", event.note);
        }
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
                untouched: None,
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
