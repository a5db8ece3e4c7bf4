//! The output for objects as the API server returns them.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::assess::{Row, State};
use super::kinds::Subject;
use super::read::{Gathered, Unread};
use super::{Format, Overview, View, assess, detail, table, tree};
use crate::cluster::Unreadable;

fn now() -> Timestamp {
    "2026-01-10T12:00:00Z".parse().unwrap()
}

fn object(kind: &str, name: &str, spec: &Value, status: &Value) -> Value {
    json!({
        "kind": kind,
        "metadata": {
            "name": name, "namespace": "shop", "uid": "u", "generation": 3,
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": spec,
        "status": status,
    })
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-01-10T11:30:00Z", "observedGeneration": 3,
    })
}

fn rows(objects: &[Value]) -> Vec<Row> {
    rows_of(objects, None)
}

fn rows_of(objects: &[Value], asked: Option<&str>) -> Vec<Row> {
    let kind = |object: &Value| Subject::parse(object["kind"].as_str().unwrap()).unwrap().kind;
    let kinds: Vec<_> = objects.iter().map(kind).collect();
    let listed: Vec<_> = kinds.iter().zip(objects).collect();
    assess::rows(&listed, now(), asked)
}

fn fleet() -> Vec<Value> {
    let ready = condition("Ready", "True", "Ready", "all is well");
    let mut leaving = object(
        "PostgresUser",
        "leaver",
        &json!({}),
        &json!({ "observedGeneration": 3, "phase": "Deleting", "conditions": [ready] }),
    );
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-10T11:58:30Z");
    leaving["metadata"]["finalizers"] = json!(["db.example.com/postgresuser"]);
    let mut unseen = object("PostgresUser", "unseen", &json!({}), &json!({}));
    unseen.as_object_mut().unwrap().remove("status");
    vec![
        object(
            "PostgresUser",
            "alice",
            &json!({}),
            &json!({ "observedGeneration": 3, "phase": "Ready", "conditions": [ready] }),
        ),
        object(
            "PostgresUser",
            "bob",
            &json!({}),
            &json!({ "observedGeneration": 3, "phase": "Failed", "conditions": [
                condition("Ready", "False", "RoleConflict", "no"),
                condition("Stalled", "True", "RoleConflict", "the role \"bob\" belongs to PostgresUser other/bob; choose another username"),
            ] }),
        ),
        object(
            "SupabaseProject",
            "demo",
            &json!({}),
            &json!({ "observedGeneration": 3, "phase": "Failed", "conditions": [
                condition("Ready", "False", "SecretNotFound", "Secret shop/demo-db does not exist"),
                condition("Reconciling", "True", "SecretNotFound", "Secret shop/demo-db does not exist"),
                condition("Stalled", "False", "Ready", ""),
            ] }),
        ),
        object(
            "GitlabInstance",
            "git",
            &json!({}),
            &json!({ "observedGeneration": 3, "phase": "Deploying", "conditions": [
                condition("Ready", "False", "Deploying", "the release git is being installed"),
                condition("Reconciling", "True", "Deploying", "the release git is being installed"),
            ] }),
        ),
        object(
            "PostgresPolicy",
            "paused",
            &json!({ "suspend": true }),
            &json!({ "observed_generation": 3, "conditions": [ready] }),
        ),
        object(
            "PostgresUser",
            "stale",
            &json!({}),
            &json!({ "observedGeneration": 2, "phase": "Ready", "conditions": [ready] }),
        ),
        object(
            "PostgresPolicyPlan",
            "paused-1",
            &json!({}),
            &json!({ "phase": "Pending", "computedAt": "2026-01-08T11:00:00Z" }),
        ),
        object(
            "PostgresPolicyPlan",
            "paused-0",
            &json!({}),
            &json!({ "phase": "Applied", "computedAt": "2026-01-07T11:00:00Z" }),
        ),
        leaving,
        unseen,
    ]
}

fn view(format: Format, width: Option<usize>) -> View {
    View {
        format,
        paint: false,
        width,
    }
}

fn overview() -> Overview {
    Overview {
        objects: rows(&fleet()),
        unreadable: vec![Unread {
            kind: "postgresinstances".to_owned(),
            why: Unreadable::Forbidden,
        }],
    }
}

#[test]
fn the_worst_comes_first() {
    let rows = rows(&fleet());
    let states: Vec<(&str, State)> = rows.iter().map(|row| (row.name.as_str(), row.state)).collect();
    assert_eq!(
        states,
        [
            ("bob", State::Failed),
            ("demo", State::NotReady),
            ("leaver", State::Deleting),
            ("stale", State::Unknown),
            ("unseen", State::Unknown),
            ("git", State::Reconciling),
            ("paused-1", State::Reconciling),
            ("paused", State::Suspended),
            ("alice", State::Ready),
        ]
    );
}

/// A server has no condition `Ready`.
#[test]
fn a_server_is_ready_when_it_is_connected() {
    let of = |status: &str| {
        let connected = condition("Connected", status, "ConnectionRefused", "nothing listens there");
        let status = json!({ "observedGeneration": 3, "conditions": [connected] });
        rows(&[object("PostgresInstance", "main", &json!({}), &status)]).remove(0)
    };
    assert_eq!((of("True").state, of("True").waits_for), (State::Ready, None));
    let down = of("False");
    assert_eq!(
        (down.state, down.waits_for.as_deref()),
        (State::NotReady, Some("nothing listens there"))
    );
}

#[test]
fn the_table() {
    insta::assert_snapshot!(
        "table",
        table::render(&overview(), true, &view(Format::Table, None))
    );
    insta::assert_snapshot!(
        "wide",
        table::render(&overview(), false, &view(Format::Wide, None))
    );
    insta::assert_snapshot!(
        "narrow",
        table::render(&overview(), true, &view(Format::Table, Some(90)))
    );
    for line in table::render(&overview(), true, &view(Format::Table, Some(90))).lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    let empty = table::render(&Overview::default(), true, &view(Format::Table, None));
    assert_eq!(empty, "no objects\n");
}

#[test]
fn as_json() {
    insta::assert_snapshot!("json", super::json(&overview()).unwrap());
}

#[test]
fn a_message_cannot_paint_the_terminal() {
    let hostile = "\u{1b}[2Jowned\nNAME   STATE";
    let status = json!({ "observedGeneration": 3, "phase": hostile, "conditions": [
        condition("Ready", "False", hostile, hostile), condition("Stalled", "True", hostile, hostile),
    ] });
    let objects = rows(&[object("PostgresUser", "x", &json!({}), &status)]);
    let shown = table::render(
        &Overview {
            objects,
            unreadable: Vec::new(),
        },
        true,
        &view(Format::Wide, None),
    );
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    assert_eq!(shown.lines().count(), 4, "{shown}");
}

/// A policy keeps plans that failed long ago.
#[test]
fn a_failed_plan_is_history_when_its_policy_is_ready() {
    let spec = json!({ "policyRef": { "name": "app" } });
    let status = json!({ "phase": "Failed", "lastError": "permission denied" });
    let plan = object("PostgresPolicyPlan", "app-1", &spec, &status);
    let policy = |ready: &str| {
        let status = json!({ "conditions": [condition("Ready", ready, "Any", "m")] });
        object("PostgresPolicy", "app", &json!({}), &status)
    };
    let shown = |ready: &str, asked: Option<&str>| {
        let rows = rows_of(&[plan.clone(), policy(ready)], asked);
        let plans = rows.into_iter().filter(|row| row.name == "app-1");
        plans.map(|row| (row.state, row.waits_for)).collect::<Vec<_>>()
    };
    let failed = (assess::State::Failed, Some("permission denied".to_owned()));
    assert_eq!(shown("False", None), [failed]);
    assert_eq!(shown("True", None), []);
    let asked = Some("postgrespolicyplans");
    assert_eq!(shown("True", asked), [(assess::State::Ready, None)]);
}

fn project() -> Gathered {
    let status = json!({
        "observedGeneration": 3, "phase": "Updating", "message": "auth is being rolled out",
        "components": {
            "auth": { "phase": "Updating", "ready": false, "replicas": 2, "readyReplicas": 1, "version": "supabase/gotrue:v2.180.0", "message": "CrashLoopBackOff" },
            "rest": { "phase": "Running", "ready": true, "replicas": 1, "readyReplicas": 1, "version": "postgrest/postgrest:v13.0.7" },
        },
        "dependencies": {
            "postgresql": { "connected": true, "latencyMs": 3 },
            "s3": { "connected": false, "error": "connection refused" },
        },
        "endpoints": { "api": "https://demo.example.com" },
        "conditions": [
            condition("Ready", "False", "ComponentsNotReady", "auth is not ready"),
            condition("Reconciling", "True", "ComponentsNotReady", "auth is not ready"),
        ],
    });
    Gathered {
        kind: Subject::parse("supabaseproject").unwrap().kind,
        object: object("SupabaseProject", "demo", &json!({}), &status),
        children: vec![
            (
                "Secret".into(),
                json!({ "name": "demo-keys", "creationTimestamp": "2026-01-01T00:00:00Z" }),
            ),
            (
                "Deployment".into(),
                json!({ "name": "demo-auth", "creationTimestamp": "2026-01-01T00:00:00Z" }),
            ),
        ],
        events: vec![
            json!({ "type": "Warning", "reason": "Unready", "note": "auth: CrashLoopBackOff", "eventTime": "2026-01-10T11:00:00Z",
                    "series": { "count": 4, "lastObservedTime": "2026-01-10T11:59:00Z" } }),
            json!({ "type": "Normal", "reason": "Updated", "note": "a new image", "eventTime": "2026-01-10T11:29:00Z" }),
        ],
        unreadable: vec![Unread {
            kind: "jobs".into(),
            why: Unreadable::Forbidden,
        }],
    }
}

#[test]
fn one_object_is_a_tree() {
    let detail = detail::of(&project(), now());
    insta::assert_snapshot!("tree", tree::render(&detail, &view(Format::Table, None)));
    insta::assert_snapshot!(
        "tree-narrow",
        tree::render(&detail, &view(Format::Table, Some(60)))
    );
    let painted = View {
        paint: true,
        ..view(Format::Table, None)
    };
    assert!(tree::render(&detail, &painted).contains("\u{1b}[33m"));
}

#[test]
fn times_are_those_of_kubectl() {
    for (seconds, expected) in [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (150, "2m30s"),
        (660, "11m"),
        (10_799, "179m"),
        (10_800, "3h"),
        (11_400, "3h10m"),
        (100_000, "27h"),
        (180_000, "2d2h"),
        (172_800, "2d"),
        (900_000, "10d"),
    ] {
        let from = Timestamp::from_second(1_000_000).unwrap();
        let to = Timestamp::from_second(1_000_000 + seconds).unwrap();
        assert_eq!(assess::duration(from, to), expected, "{seconds}");
    }
}
