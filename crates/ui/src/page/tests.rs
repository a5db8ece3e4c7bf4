//! Every page, from values.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use jiff::Timestamp;
use serde_json::{Value, json};
use stanchion_fleet::assess;
use stanchion_fleet::cluster::Unreadable;
use stanchion_fleet::kinds::Subject;
use stanchion_fleet::read::{Gathered, Unread};

use super::object::Shown;
use super::{Frame, access, fleet, object, plan};
use crate::access::tests::stock;
use crate::act::Sql;
use crate::live::Fleet;
use crate::query::Query;
use crate::server::Place;

const HOSTILE: &str = "<script>alert(1)</script>\"'&";

fn now() -> Timestamp {
    "2026-01-10T12:00:00Z".parse().unwrap()
}

fn frame<'a>() -> Frame<'a> {
    Frame {
        title: "Test",
        path: "/",
        is_live: true,
        cluster: "https://127.0.0.1:6443/",
        namespace: None,
    }
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({ "type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": "2026-01-10T11:30:00Z", "observedGeneration": 1 })
}

fn thing(kind: &str, name: &str, status: &Value) -> Value {
    json!({
        "kind": kind,
        "metadata": { "name": name, "namespace": "shop", "uid": "u-1", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": {}, "status": status,
    })
}

fn some_fleet() -> Fleet {
    let ready = json!({ "phase": "Ready", "conditions": [condition("Ready", "True", "Ready", "fine")] });
    let failed = json!({ "phase": "Failed", "conditions": [
        condition("Ready", "False", "RoleConflict", "no"),
        condition("Stalled", "True", "RoleConflict", HOSTILE),
    ] });
    let mut fleet = Fleet::default();
    for (kind, name, status) in [
        ("PostgresUser", "alice", &ready),
        ("PostgresUser", "bob", &failed),
        ("SupabaseProject", "shop", &ready),
    ] {
        let of = Subject::parse(kind).unwrap().kind;
        fleet
            .rows
            .extend(assess::row(&of, &thing(kind, name, status), now(), false));
    }
    assess::sort(&mut fleet.rows);
    fleet
}

fn rows(query: &str) -> Vec<String> {
    let html = fleet::page(&frame(), &some_fleet(), &Query::parse(query)).0;
    html.split("<li data-key=\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap().to_owned())
        .collect()
}

#[test]
fn the_fleet_is_filtered_by_its_address() {
    let all = [
        "postgresusers/shop/bob",
        "postgresusers/shop/alice",
        "supabaseprojects/shop/shop",
    ];
    assert_eq!(rows(""), all, "the worst first");
    assert_eq!(rows("kind=postgresusers"), all[..2]);
    assert_eq!(rows("state=Failed"), all[..1]);
    assert_eq!(rows("q=ALI"), [all[1]]);
    assert_eq!(rows("q=roleconflict+failed"), all[..1]);
    assert_eq!(rows("ns=other"), [""; 0]);
    assert_eq!(rows("kind=postgresusers&state=Ready&q=alice&ns=shop"), [all[1]]);
}

#[test]
fn filters_keep_each_other_in_the_address() {
    let html = fleet::page(&frame(), &some_fleet(), &Query::parse("q=a%26b&state=Failed")).0;
    assert!(html.contains(r#"value="a&amp;b""#), "{html}");
    let html = fleet::page(&frame(), &some_fleet(), &Query::parse("state=Failed")).0;
    assert!(html.contains("/?state=Failed&amp;kind=postgresusers"), "{html}");
    assert!(html.contains("Something needs attention"), "{html}");
}

#[test]
fn nothing_from_the_cluster_is_markup() {
    let html = fleet::page(
        &frame(),
        &some_fleet(),
        &Query::parse(&format!("q={HOSTILE}&ns={HOSTILE}")),
    )
    .0;
    assert!(!html.contains("<script>alert"), "{html}");
    let html = fleet::page(&frame(), &some_fleet(), &Query::default()).0;
    assert!(
        html.contains("&lt;script&gt;alert(1)"),
        "the message is shown: {html}"
    );
    assert!(!html.contains("<script>alert"), "{html}");
    assert!(!html.contains(" style=") && !html.contains(" onclick="), "{html}");
}

#[test]
fn what_may_not_be_read_is_said() {
    let mut fleet = some_fleet();
    fleet.unreadable.push(Unread {
        kind: "gitlabinstances".into(),
        why: Unreadable::Forbidden,
    });
    fleet.reading.push("postgresinstances".into());
    let html = fleet::page(&frame(), &fleet, &Query::default()).0;
    assert!(
        html.contains("gitlabinstances") && html.contains("you may not list them"),
        "{html}"
    );
    assert!(html.contains("stanchion ui -n NAMESPACE"), "{html}");
    assert!(html.contains("Still reading: postgresinstances"), "{html}");
}

fn gathered(kind: &str, name: &str, status: &Value) -> Gathered {
    Gathered {
        kind: Subject::parse(kind).unwrap().kind,
        object: thing(kind, name, status),
        children: Vec::new(),
        events: Vec::new(),
        unreadable: Vec::new(),
    }
}

#[test]
fn an_object_shows_its_tree_and_what_it_waits_for() {
    let status = json!({
        "phase": "Updating",
        "components": {
            "auth": { "phase": "Updating", "ready": false, "replicas": 2, "readyReplicas": 1, "message": "CrashLoopBackOff" },
            "rest": { "phase": "Running", "ready": true, "replicas": 1, "readyReplicas": 1 },
        },
        "dependencies": { "postgresql": { "connected": true, "latencyMs": 50 }, "s3": { "connected": false, "error": HOSTILE } },
        "keys": { "rotatedAt": "2026-01-01T00:00:00Z" },
        "conditions": [
            condition("Ready", "False", "ComponentsNotReady", "auth is not ready"),
            condition("Reconciling", "True", "ComponentsNotReady", "auth is not ready"),
        ],
    });
    let mut project = gathered("SupabaseProject", "demo", &status);
    project.children = vec![
        (
            "Deployment".into(),
            json!({ "name": "demo-auth", "creationTimestamp": "2026-01-01T00:00:00Z" }),
        ),
        (
            "Secret".into(),
            json!({ "name": "demo-keys", "creationTimestamp": "2026-01-01T00:00:00Z" }),
        ),
    ];
    project.events = vec![
        json!({ "type": "Warning", "reason": "Unready", "note": "password=hunter2", "eventTime": "2026-01-10T11:00:00Z" }),
    ];
    let html = object::page(&frame(), &Shown::of(project, now())).0;
    for words in [
        "Waits for",
        "auth is not ready",
        "CrashLoopBackOff",
        "connected, 50 ms",
        "Secret demo-keys",
        "names and ages, never values",
        "1 of 2 ready",
        "Unready",
        r#"<rect width="25""#,
    ] {
        assert!(html.contains(words), "no {words:?} in {html}");
    }
    let (component, child) = (html.find("<b>auth</b>").unwrap(), html.find("demo-auth").unwrap());
    assert!(
        component < child && child < html.find("<b>rest</b>").unwrap(),
        "below its component: {html}"
    );
    assert!(
        !html.contains("hunter2") && !html.contains("<script>alert"),
        "{html}"
    );
}

#[test]
fn a_gitlab_shows_its_way_over_the_stops() {
    let status = json!({
        "phase": "Deploying", "observedVersion": "17.3.7", "targetVersion": "18.2.0",
        "upgradePath": ["17.5.5", "17.8.7", "18.2.0"], "conditions": [condition("Ready", "False", "Upgrading", "to 17.5.5")],
    });
    let html = object::page(
        &frame(),
        &Shown::of(gathered("GitlabInstance", "code", &status), now()),
    )
    .0;
    assert!(html.contains(r#"<li class="done"><b>17.3.7</b>"#), "{html}");
    assert!(
        html.contains(r#"<li class="now"><b>17.5.5</b><span>required stop, next"#),
        "{html}"
    );
    assert!(html.contains("<b>17.8.7</b><span>required stop</span>"), "{html}");
    assert!(html.contains("<b>18.2.0</b><span>target</span>"), "{html}");
}

fn a_plan(annotations: &Value, phase: &str) -> Shown {
    let status =
        json!({ "phase": phase, "changeSummary": { "total": 2, "grants_added": 1, "roles_dropped": 0 } });
    let mut gathered = gathered("PostgresPolicyPlan", "stock-1", &status);
    gathered.object["metadata"]["annotations"] = annotations.clone();
    gathered.object["spec"] = json!({ "policyRef": { "name": "stock" } });
    Shown::of(gathered, now())
}

#[test]
fn a_plan_is_shown_and_waits_for_a_decision() {
    let sql = Sql::Whole(
        "GRANT SELECT ON TABLE \"s\".\"<b>\" TO \"app\";\nREVOKE ALL ON SCHEMA s FROM PUBLIC;\n".into(),
    );
    let html = plan::page(&frame(), &a_plan(&json!({}), "Pending"), &sql, "f0rm", None).0;
    assert!(html.contains(r#"<span class="k">GRANT</span>"#), "{html}");
    assert!(html.contains("&lt;b&gt;") && !html.contains("\"<b>\""), "{html}");
    assert!(html.contains(r#"<li class="add" data-sign="+">"#), "{html}");
    assert!(html.contains(r#"<li class="remove""#), "{html}");
    assert!(
        html.contains("2</b> total") && !html.contains("roles dropped"),
        "{html}"
    );
    assert!(html.contains(r#"name="form" value="f0rm""#), "{html}");
    assert!(html.contains(r#"name="uid" value="u-1""#), "{html}");
    assert!(html.contains(r#"value="approve""#), "{html}");
    assert!(
        html.contains("/o/postgrespolicyplans/shop/stock-1/decide"),
        "{html}"
    );
    assert!(html.contains("/o/postgrespolicies/shop/stock"), "{html}");
}

fn some_sql() -> Sql {
    Sql::Whole("DROP ROLE \"app\";".to_owned())
}

/// The author of the policy must not choose what the person who approves it gets to see.
#[test]
fn a_comment_hides_none_of_the_sql_and_moves_none_of_it() {
    let script = "COMMENT ON ROLE \"app\" IS '-----BEGIN PRIVATE KEY-----';\nGRANT \"pg_write_all_data\" TO \"app\";\n\
                  COMMENT ON ROLE \"re\u{200b}ader\" IS 'a\u{202e}b\tc\r';\n";
    let html = plan::page(
        &frame(),
        &a_plan(&json!({}), "Pending"),
        &Sql::Whole(script.into()),
        "f",
        None,
    )
    .0;
    // Once among the differences, and once in the SQL.
    assert_eq!(html.matches("pg_write_all_data").count(), 2, "{html}");
    assert!(!html.contains("[REDACTED]"), "{html}");
    for hidden in ['\u{202e}', '\u{200b}', '\r'] {
        assert!(!html.contains(hidden), "{hidden:?} in {html}");
    }
    for shown in [
        ">U+202E</mark>b\tc",
        ">U+000D</mark>",
        "re<mark",
        ">U+200B</mark>ader",
    ] {
        assert!(html.contains(shown), "no {shown:?} in {html}");
    }
}

/// Without its SQL, a plan looks like one that changes nothing.
#[test]
fn a_plan_without_readable_sql_can_only_be_rejected() {
    for sql in [
        Sql::Missing("The SQL is in the ConfigMap shop/x: you may not get it.".into()),
        Sql::Altered,
    ] {
        let html = plan::page(&frame(), &a_plan(&json!({}), "Pending"), &sql, "f", None).0;
        assert!(html.contains("cannot be approved here"), "{html}");
        assert!(
            html.contains(r#"value="reject""#) && !html.contains(r#"value="approve""#),
            "{html}"
        );
        assert!(
            !html.contains("changes nothing") && !html.contains("Difference"),
            "{html}"
        );
    }
    let cut = Sql::Cut {
        text: "GRANT a TO b;".into(),
        why: "Only the beginning.",
    };
    let html = plan::page(&frame(), &a_plan(&json!({}), "Pending"), &cut, "f", None).0;
    assert!(
        html.contains("Only the beginning.") && html.contains(r#"value="approve""#),
        "{html}"
    );
}

#[test]
fn a_decided_plan_has_no_buttons() {
    let of = |annotations: &Value, phase: &str| {
        plan::page(&frame(), &a_plan(annotations, phase), &some_sql(), "f", None).0
    };
    let approved = of(&json!({ "pgroles.io/approved": "true" }), "Pending");
    assert!(
        approved.contains("Approved.") && !approved.contains("<button class=\"primary\""),
        "{approved}"
    );
    let both = of(
        &json!({ "pgroles.io/approved": "true", "pgroles.io/rejected": "true" }),
        "Pending",
    );
    assert!(both.contains("Rejected."), "a rejection wins: {both}");
    let applied = of(&json!({}), "Applied");
    assert!(
        applied.contains("This plan is applied") && !applied.contains("/decide"),
        "{applied}"
    );
}

#[test]
fn a_refusal_is_on_the_page() {
    let html = plan::page(
        &frame(),
        &a_plan(&json!({}), "Pending"),
        &some_sql(),
        "f",
        Some(HOSTILE),
    )
    .0;
    assert!(
        html.contains(r#"role="alert""#) && html.contains("&lt;script&gt;"),
        "{html}"
    );
    assert!(
        html.contains(r#"<a href="/o/postgrespolicyplans/shop/stock-1">Back to the plan</a>"#),
        "{html}"
    );
}

#[test]
fn the_access_of_a_policy_is_a_graph_and_an_answer() {
    let place = Place::of("postgrespolicies", "shop", "stock").unwrap();
    let query = Query::parse("schema=stock&table=items");
    let html = access::page(&frame(), &place, &stock(), &query).0;
    assert!(html.contains("<svg") && html.contains("data-graph="), "{html}");
    assert!(html.contains("5 roles read <code>stock.items</code>"), "{html}");
    assert!(
        html.contains(">alice</a></b>") && html.contains("SELECT on every table in stock"),
        "{html}"
    );
    // A graph that is too large for the page is entered by the answer.
    let alice = "<a href=\"/?schema=stock&amp;table=items&amp;role=alice\">alice</a>";
    assert!(html.contains(alice), "{html}");
    let html = access::page(
        &frame(),
        &place,
        &stock(),
        &Query::parse(&format!("role={HOSTILE}&schema={HOSTILE}&table=x")),
    )
    .0;
    assert!(!html.contains("<script>alert"), "{html}");
}
