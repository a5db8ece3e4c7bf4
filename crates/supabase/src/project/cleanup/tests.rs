//! What a deleted project removes, waits for and reports.

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

/// The events of a cleanup that ended with this.
fn events(project: &SupabaseProject, applied: &Removed) -> Vec<EventRecord> {
    let target = ProjectCleanup::target(project);
    let outcome = CleanupOutcome {
        target: &target,
        observed: None,
        applied,
        problem: None,
        blocked: false,
    };
    ProjectCleanup::report(project, &outcome, Timestamp::UNIX_EPOCH).events
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
    let invalid = json!({"deletionPolicy": "Delete", "kong": {"image": "kong"}, "jwt": {"expiry": "soon"}});
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
    let applied = Removed {
        left: Vec::new(),
        untouched: Some("database secret 'db' not found".into()),
    };
    let events = events(&project, &applied);
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
    use WaitsFor::{Administrator, Database};

    let waiting = Waiting::default();
    let waited = |uid, waits_for| waiting.waited(uid, waits_for).as_secs() / 60;
    assert_eq!(waited("one", Database), 0);
    waiting.begin("one", Database);
    tokio::time::advance(Duration::from_mins(3)).await;
    waiting.begin("one", Database);
    tokio::time::advance(Duration::from_mins(3)).await;
    assert_eq!((waited("one", Database), waited("two", Database)), (6, 0));
    // The time in which the Secret was missing is not the database's.
    waiting.begin("two", Administrator);
    tokio::time::advance(Duration::from_mins(4)).await;
    waiting.begin("two", Database);
    tokio::time::advance(Duration::from_mins(2)).await;
    assert_eq!((waited("two", Administrator), waited("two", Database)), (6, 2));
    waiting.end("two");
    assert_eq!((waited("two", Administrator), waited("two", Database)), (0, 0));
    assert_eq!(waited("one", Database), 12, "another project is not touched");
}

#[test]
fn what_is_left_is_reported_although_nothing_failed() {
    let project = project("Delete");
    let report = |left: &[&str]| {
        let applied = Removed {
            left: left.iter().map(ToString::to_string).collect(),
            untouched: None,
        };
        events(&project, &applied)
    };
    assert_eq!(report(&[]), []);
    let events = report(&["schema storage", "role anon"]);
    let notes: Vec<_> = events.iter().map(|event| event.note.as_str()).collect();
    assert_eq!(
        notes,
        ["Terminating resources: left in the database, because others use it: schema storage; role anon"]
    );
}
