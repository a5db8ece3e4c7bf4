//! Black-box checks that need no database.

use stanchion_roles_cli::{OK, USAGE};

use crate::support::{Run, pgroles};

async fn validate(text: &str, args: &[&str]) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("m.yaml");
    std::fs::write(&file, text).unwrap();
    pgroles(&[&["validate", "-f", file.to_str().unwrap()], args].concat(), &[]).await
}

#[tokio::test]
async fn counts_of_a_valid_manifest() {
    let minimal = "
roles: [{name: app}]
grants: [{role: app, privileges: [USAGE], object: {type: schema, name: public}}]";
    let run = validate(minimal, &[]).await.exits(OK);
    run.says("Manifest is valid.")
        .says("1 role(s) defined")
        .says("1 grant(s) defined");
    let profiles = "
profiles:
  editor: {grants: [{privileges: [USAGE], on: {type: schema}}]}
  viewer: {grants: [{privileges: [USAGE], object: {type: schema}}]}
schemas: [{name: inventory, profiles: [editor, viewer]}, {name: catalog, profiles: [viewer]}]
roles: [{name: app}]";
    validate(profiles, &["--strict"])
        .await
        .exits(OK)
        .says("4 role(s) defined")
        .says("3 grant(s) defined");
    validate("", &["--strict"])
        .await
        .exits(OK)
        .says("0 role(s) defined");
}

#[tokio::test]
async fn a_kubernetes_object_is_its_spec() {
    let run = validate(
        "
apiVersion: pgroles.io/v1alpha1
kind: PostgresPolicy
metadata: {name: x}
spec:
  connection: {secretRef: {name: db}}
  interval: 5m
  roles: [{name: app, login: true, password: {secretRef: {name: s}, secretKey: k}}]",
        &["--strict"],
    );
    run.await.exits(OK).says("1 role(s) defined");
}

#[tokio::test]
async fn what_is_wrong_is_said_with_its_place() {
    let cases = [
        ("roles: [", "YAML parse error"),
        (
            "schemas: [{name: s, profiles: [reder]}]\nprofiles: {reader: {}}",
            "profile \"reder\" referenced by schema \"s\" is not defined; did you mean `reader`?",
        ),
        ("schemas: [{name: s}, {name: s}]", "duplicate schema name: \"s\""),
        ("roles: [{name: a}, {name: a}]", "duplicate role name: \"a\""),
        (
            "profiles: {r: {}}\nschemas: [{name: s, profiles: [r]}]\nroles: [{name: s-r}]",
            "duplicate role name: \"s-r\"",
        ),
        (
            "profiles: {r: {}}\nschemas: [{name: s, profiles: [r], role_pattern: x}]",
            "role_pattern must contain {profile} placeholder",
        ),
        (
            "roles: [{name: a, password: {from_env: X}}]",
            "role \"a\" has a password but login is not enabled",
        ),
        (
            "roles: [{name: a, password_valid_until: '2025-12-31'}]",
            "ISO 8601",
        ),
        (
            "roles: [{name: a}]\nretirements: [{role: a}]",
            "conflicts with a desired role",
        ),
        (
            "retirements: [{role: a, reassign_owned_to: a}]",
            "cannot reassign ownership to itself",
        ),
        (
            "retirements: [{role: a}, {role: a}]",
            "duplicate retirement entry",
        ),
        (
            "roles: [{name: 'this-name-is-longer-than-any-that-postgresql-would-ever-be-able-to-keep'}]",
            "PostgreSQL keeps 63",
        ),
        ("roles: [{name: pg_monitor}]", "predefined role"),
        (
            "roles: [{name: a}, {name: b}]\nmemberships: [{role: a, members: [{name: b}]}, {role: b, members: [{name: a}]}]",
            "member of itself",
        ),
        (
            "default_privileges: [{schema: s, scope: {type: global}, grant: []}]",
            "sets both `schema` and `scope`",
        ),
        (
            "roles: [{name: a}]\ngrants: [{role: a, privileges: [TEMP], object: {type: database}}]",
            "did you mean `TEMPORARY`?",
        ),
        (
            "roles: [{name: a}]\ngrants: [{role: a, privileges: [SELECT], object: {type: table, schema: s, name: t}, ensure: absent}, {role: a, privileges: [SELECT], object: {type: table, schema: s, name: '*'}}]",
            "both present and absent",
        ),
        (
            "roles: [{name: a}]\ngrants: [{role: a, privileges: [EXECUTE], object: {type: function, schema: s, name: 'f(int); DROP'}}]",
            "does not end with",
        ),
        ("roles: [{name: a, config: {work_mem: 64}}]", "expected a string"),
    ];
    for (manifest, message) in cases {
        let run = validate(manifest, &[]).await.exits(1).says(message);
        assert!(run.err.contains("m.yaml:"), "no place in {run:#?}");
    }
}

/// Each is an error by default, and a warning in pgroles' lenient mode.
#[tokio::test]
async fn what_pgroles_let_pass() {
    let cases = [
        (
            "roles:\n- name: a\n  lgoin: true",
            "m.yaml:3:3: unknown key `lgoin`; did you mean `login`?",
        ),
        (
            "grants: [{role: nope, privileges: [USAGE], object: {type: schema, name: s}}]",
            "role \"nope\" is not declared",
        ),
        (
            "roles: [{name: a}]\ngrants: [{role: a, privileges: [EXECUTE], object: {type: table, schema: s, name: t}}]",
            "EXECUTE is not a privilege on a table",
        ),
        (
            "roles: [{name: a}]\ngrants: [{role: a, privileges: [], object: {type: schema, name: s}}]",
            "no privilege is given",
        ),
    ];
    for (manifest, message) in cases {
        validate(manifest, &["--strict"]).await.exits(1).says(message);
        validate(manifest, &[])
            .await
            .exits(OK)
            .says(message)
            .says("Manifest is valid");
    }
}

#[tokio::test]
async fn misuse_is_not_drift() {
    for args in [
        &["diff"][..],
        &["--nonsense"],
        &["diff", "--mode", "reckless"],
        &["validate", "-f", "a", "--bundle", "b"],
        &[],
    ] {
        pgroles(args, &[]).await.exits(USAGE);
    }
    pgroles(&["--help"], &[]).await.exits(OK).says("validate");
    pgroles(&["plan", "--help"], &[])
        .await
        .exits(OK)
        .says("--no-exit-code");
    pgroles(&["validate", "-f", "/nonexistent.yaml"], &[])
        .await
        .exits(1)
        .says("failed to read manifest file");
}

#[tokio::test]
async fn a_refused_connection_is_reported_at_once_and_with_its_cause() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("m.yaml");
    std::fs::write(&file, "roles: [{name: a}]").unwrap();
    let args = [
        "diff",
        "-f",
        file.to_str().unwrap(),
        "--database-url",
        "postgres://u:secret@127.0.0.1:1/d",
    ];
    pgroles(&args, &[])
        .await
        .exits(1)
        .says("connection refused")
        .hides("secret");
}

#[tokio::test]
async fn the_desired_graph_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("m.yaml");
    let drawn = folder.path().join("g.json");
    let manifest = "
roles: [{name: app, login: true}, {name: team}]
grants: [{role: team, privileges: [USAGE], object: {type: schema, name: public}}]
memberships: [{role: team, members: [{name: app}]}]";
    std::fs::write(&file, manifest).unwrap();
    let file = file.to_str().unwrap();
    for (format, text) in [
        ("tree", "└── member of team (inherits)"),
        ("json", "\"schema_version\": \"pgroles.visual_graph.v1\""),
        ("dot", "\"role:app\" -> \"role:team\""),
        ("mermaid", "graph LR"),
    ] {
        pgroles(&["graph", "desired", "-f", file, "--format", format], &[])
            .await
            .exits(OK)
            .says(text);
    }
    let args = [
        "graph",
        "desired",
        "-f",
        file,
        "--format",
        "json",
        "-o",
        drawn.to_str().unwrap(),
    ];
    assert_eq!(pgroles(&args, &[]).await.exits(OK).out, "");
    assert!(std::fs::read_to_string(drawn).unwrap().contains("visual_graph"));
    pgroles(
        &["graph", "current", "--database-url", "postgres://x@127.0.0.1:1/d"],
        &[],
    )
    .await
    .exits(1)
    .says("--file");
}

#[tokio::test]
async fn schema_completions_and_canonical_form() {
    pgroles(&["schema"], &[])
        .await
        .exits(OK)
        .says("\"additionalProperties\": false");
    pgroles(&["completions", "bash"], &[])
        .await
        .exits(OK)
        .says("render-bundle");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("m.yaml");
    let path = file.to_str().unwrap();
    std::fs::write(&file, "roles: [ {login: true, name: a} ] # why\n").unwrap();
    pgroles(&["fmt", "-f", path, "--check"], &[]).await.exits(2);
    pgroles(&["fmt", "-f", path], &[]).await.exits(1).says("comments");
    pgroles(&["fmt", "-f", path, "--drop-comments"], &[])
        .await
        .exits(OK);
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        "roles:\n- name: a\n  login: true\n"
    );
    pgroles(&["fmt", "-f", path, "--check"], &[]).await.exits(OK);
}

#[tokio::test]
async fn the_specs_of_the_operator_are_manifests_too() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/postgrespolicy");
    let mut validated = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for document in text
            .split("\n---\n")
            .filter(|text| text.contains("kind: PostgresPolicy\n"))
        {
            let run = validate(document, &["--strict"]).await;
            if document.contains("profilesFrom") {
                run.exits(1).says("which this program does not read");
            } else {
                run.exits(OK);
            }
            validated += 1;
        }
    }
    assert!(validated >= 4, "{validated}");
    let spec =
        |fields: &str| format!("apiVersion: pgroles.io/v1alpha1\nkind: PostgresPolicy\nspec: {{{fields}}}\n");
    let all = "connection: {}, interval: 5m, suspend: true, mode: apply, approval: auto, reconciliation_mode: adopt, deletionPolicy: Revoke, \
               planHistoryLimit: 3, profilesFrom: [], roles: [{name: a}]";
    validate(&spec(all), &["--strict"]).await.exits(OK);
    // Elsewhere they are mistakes.
    validate(&spec("roles: [{name: a, suspend: true}]"), &["--strict"])
        .await
        .exits(1)
        .says("unknown key `suspend`");
}
