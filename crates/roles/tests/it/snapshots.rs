//! Snapshots of the output for people and machines. No database.

use stanchion_roles::diff::{Options, diff};
use stanchion_roles::expand::expand;
use stanchion_roles::facts::{Facts, ServerFacts};
use stanchion_roles::manifest::{Strictness, load};
use stanchion_roles::plan::Plan;
use stanchion_roles::render;

const MANIFEST: &str = r#"
default_owner: owner
profiles:
  editor:
    grants:
    - {privileges: [USAGE, CREATE], object: {type: schema}}
    - {privileges: [SELECT], object: {type: table, name: "*"}}
    default_privileges: [{privileges: [SELECT], on_type: table}]
    config: {search_path: "{schema}, public"}
schemas: [{name: app, profiles: [editor]}]
roles:
- {name: svc, login: true, connection_limit: 5, password_valid_until: "2030-01-01T00:00:00+02:00", comment: "it's \\ odd"}
grants:
- {role: svc, privileges: [CONNECT], object: {type: database, name: shop}}
- {role: svc, privileges: [SELECT, UPDATE], object: {type: table, schema: app, name: t, columns: [b, a]}, with_grant_option: true}
- {role: svc, privileges: [EXECUTE], object: {type: function, schema: app, name: "f(int4, app.color[])"}}
- {role: PUBLIC, privileges: [USAGE], object: {type: language, name: plpgsql}, ensure: absent}
memberships:
- {role: app-editor, members: [{name: svc, inherit: false, admin: true, set: false}]}
- {role: pg_monitor, members: [{name: svc}]}
"#;

fn plan(version: u32) -> Plan {
    let manifest = load(MANIFEST, Strictness::Strict).unwrap().value;
    let server = ServerFacts {
        version,
        database: "shop".to_owned(),
        user: "postgres".to_owned(),
        superuser: true,
        ..ServerFacts::default()
    };
    let facts = Facts {
        server,
        ..Facts::default()
    };
    diff(&expand(&manifest), &facts, &Options::default()).unwrap()
}

#[test]
fn a_plan_from_nothing() {
    insta::assert_snapshot!("plan_18", render::script(&plan(180_000)));
    insta::assert_snapshot!("plan_15", render::script(&plan(150_000)));
}

#[test]
fn what_is_run_is_merged() {
    let statements = render::statements(&plan(180_000));
    let text: Vec<_> = statements.transaction.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!("merged", text.join(";\n"));
}

#[test]
fn a_plan_as_json() {
    insta::assert_json_snapshot!("plan_json", plan(180_000).changes);
}

#[test]
fn a_plan_is_known_by_what_it_does() {
    assert_eq!(plan(180_000).digest(), plan(180_001).digest());
    assert_ne!(plan(180_000).digest(), plan(150_000).digest());
}

#[test]
fn every_finding_at_once_and_in_order() {
    let text = "
rols: []
roles:
- {name: app, conection_limit: 5, superuser: true}
- {name: app}
- {name: pg_mine}
schemas:
- {name: s, profiles: [raeder]}
profiles:
  reader:
    grants: [{privileges: [INSERT], object: {type: sequence, name: '*'}}]
grants:
- {role: ap, privileges: [USAGE], object: {type: table, schema: s, name: t}}
- {role: app, privileges: [SELECT], object: {type: table, name: t}}
memberships:
- {role: app, members: [{name: app}]}
";
    let invalid = load(text, Strictness::Strict).unwrap_err();
    insta::assert_snapshot!("findings", invalid.to_string());
}
