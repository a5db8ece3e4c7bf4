//! Bundles: several documents, one database.

use crate::on_every_version;
use crate::support::pgroles;

const BUNDLE: &str = "
shared:
  profiles: {editor: {grants: [{privileges: [USAGE], object: {type: schema}}]}}
sources: [{file: platform.yaml}, {file: app.yaml}]";

const PLATFORM: &str = "
policy: {name: platform}
scope: {roles: [P_owner], schemas: [{name: inventory, facets: [owner]}]}
roles: [{name: P_owner}]
schemas: [{name: inventory, owner: P_owner}]";

const APP: &str = "
policy: {name: app}
scope: {roles: [P_service], schemas: [{name: inventory, facets: [bindings]}]}
roles: [{name: P_service, login: true}]
schemas: [{name: inventory, profiles: [editor], role_pattern: 'P_{schema}-{profile}'}]
memberships: [{role: P_inventory-editor, members: [{name: P_service}]}]";

on_every_version! {
    async fn documents_are_one_plan_and_each_keeps_to_its_own(lab) {
        lab.sql("CREATE ROLE P_service LOGIN; CREATE SCHEMA other; GRANT USAGE ON SCHEMA other TO P_service;
            GRANT CREATE ON DATABASE DATABASE_NAME TO P_service").await;
        let files = [("bundle.yaml", BUNDLE), ("platform.yaml", PLATFORM), ("app.yaml", APP)];
        let run = lab.run_bundle("diff", &files, &["--format", "json"]).await.exits(2);
        let plan: serde_json::Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!(plan["schema_version"], "pgroles.bundle_plan.v2");
        let owner = |kind: &str| {
            let changes = plan["changes"].as_array().unwrap();
            changes.iter().find(|change| change["change"].get(kind).is_some()).unwrap()["owner"]["document"].clone()
        };
        assert_eq!(owner("CreateSchema"), "platform");
        assert_eq!(owner("AddMember"), "app");
        lab.run_bundle("apply", &files, &[]).await.exits(0).says("1 grant(s) to revoke");
        lab.run_bundle("diff", &files, &[]).await.exits(0).says("No changes needed");
        assert_eq!(lab.value("SELECT has_schema_privilege('P_service', 'other', 'USAGE') AND NOT has_database_privilege('P_service', current_database(), 'CREATE')").await, "t");
    }
}

#[tokio::test]
async fn composing_without_a_database() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("bundle.yaml", BUNDLE);
    write("platform.yaml", PLATFORM);
    write("app.yaml", APP);
    let bundle = folder.path().join("bundle.yaml");
    let bundle = bundle.to_str().unwrap();
    let run = pgroles(&["validate", "--bundle", bundle], &[]).await.exits(0);
    run.says("Policy bundle is valid")
        .says("2 source document(s) loaded")
        .says("3 role(s) defined");
    let rendered = pgroles(&["render-bundle", "--bundle", bundle], &[])
        .await
        .exits(0);
    assert!(
        rendered.out.contains("# Source bundle: bundle.yaml\n"),
        "{rendered:#?}"
    );
    write("rendered.yaml", &rendered.out);
    let file = folder.path().join("rendered.yaml");
    let file = file.to_str().unwrap();
    pgroles(&["validate", "--strict", "-f", file], &[]).await.exits(0);
    pgroles(&["render-bundle", "--bundle", bundle, "--check", file], &[])
        .await
        .exits(0);
    write("rendered.yaml", "roles: []\n");
    pgroles(&["render-bundle", "--bundle", bundle, "--check", file], &[])
        .await
        .exits(2)
        .says("rendered bundle differs");

    write("app.yaml", &APP.replace("roles: [P_service]", "roles: []"));
    let unreachable = [
        "apply",
        "--bundle",
        bundle,
        "--database-url",
        "postgres://u@unreachable.invalid/d",
    ];
    pgroles(&unreachable, &[])
        .await
        .exits(1)
        .says("outside its declared scope");
    write(
        "app.yaml",
        &APP.replace("roles: [P_service]", "roles: [P_service, P_owner]"),
    );
    pgroles(&["validate", "--bundle", bundle], &[])
        .await
        .exits(1)
        .says("both manage role \"P_owner\"");
}
