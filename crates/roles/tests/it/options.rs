//! Grant options that the manifest does not declare.

use stanchion_roles::plan::{Change, Mode};

use crate::on_every_version;

const MANIFEST: &str = "
default_owner: P_owner
roles: [{name: P_owner}, {name: P_group}, {name: P_r}]
schemas: [{name: P_s, owner: P_owner}]
grants:
  - {role: P_r, privileges: [USAGE], object: {type: schema, name: P_s}}
  - {role: P_r, privileges: [SELECT], object: {type: table, schema: P_s, name: t}}
  - {role: P_r, privileges: [UPDATE], object: {type: table, schema: P_s, name: t, columns: [x]}}
default_privileges:
  - {owner: P_owner, schema: P_s, grant: [{role: P_r, privileges: [SELECT], on_type: table}]}
memberships: [{role: P_group, members: [{name: P_r}]}]
";

const HELD: &str = "
CREATE ROLE P_owner; CREATE ROLE P_group; CREATE ROLE P_r;
CREATE SCHEMA P_s AUTHORIZATION P_owner;
CREATE TABLE P_s.t (x int); ALTER TABLE P_s.t OWNER TO P_owner;
GRANT USAGE ON SCHEMA P_s TO P_r WITH GRANT OPTION;
GRANT SELECT ON P_s.t TO P_r WITH GRANT OPTION;
GRANT UPDATE (x) ON P_s.t TO P_r WITH GRANT OPTION;
ALTER DEFAULT PRIVILEGES FOR ROLE P_owner IN SCHEMA P_s GRANT SELECT ON TABLES TO P_r WITH GRANT OPTION;
GRANT P_group TO P_r WITH ADMIN OPTION;
";

fn takes_an_option(change: &Change) -> bool {
    match change {
        Change::Revoke(revoke) => revoke.grant_option_only,
        Change::RevokeDefaultPrivilege(default) => default.grant_option_only,
        Change::UpdateMemberOptions { admin, .. } => *admin == Some(false),
        _ => false,
    }
}

on_every_version! {
    async fn what_may_be_passed_on_is_compared(lab) {
        lab.sql(HELD).await;
        // Additive mode revokes nothing, and reports what it leaves.
        let plan = lab.plan(MANIFEST, Mode::Additive).await;
        assert!(plan.changes.is_empty(), "{:?}", plan.changes);
        let warned = plan.warnings.iter().filter(|line| line.contains("OPTION")).count();
        assert_eq!(warned, 5, "{:#?}", plan.warnings);
        // Adopt mode revokes only the ADMIN option of a group, as before.
        let plan = lab.plan(MANIFEST, Mode::Adopt).await;
        assert_eq!(plan.changes.len(), 1, "{:#?}", plan.changes);
        let warned = plan.warnings.iter().filter(|line| line.contains("OPTION")).count();
        assert_eq!(warned, 4, "{:#?}", plan.warnings);
        // Authoritative mode revokes it, once.
        let plan = lab.apply_as(MANIFEST, Mode::Authoritative).await.unwrap();
        let options = plan.changes.iter().filter(|change| takes_an_option(change)).count();
        assert_eq!((options, plan.changes.len()), (5, 5), "{:#?}", plan.changes);
        assert!(lab.plan(MANIFEST, Mode::Authoritative).await.changes.is_empty());
        // The privilege itself is still there.
        let held = "SELECT has_table_privilege('P_r', 'P_s.t', 'SELECT') \
                    AND has_column_privilege('P_r', 'P_s.t', 'x', 'UPDATE') AND pg_has_role('P_r', 'P_group', 'MEMBER')";
        assert_eq!(lab.value(held).await, "t");
    }
}

on_every_version! {
    async fn default_privileges_can_be_passed_on_if_the_manifest_says_so(lab) {
        lab.sql("CREATE ROLE P_o; CREATE SCHEMA s").await;
        let manifest = |option: &str| format!("
            roles: [{{name: P_r}}]
            schemas: [{{name: s, owner: P_o}}]
            default_privileges: [{{schema: s, owner: P_o, grant: [{{role: P_r, privileges: [SELECT], on_type: table{option}}}, {{role: P_r, privileges: [INSERT], on_type: table}}]}}]");
        let acl = "SELECT defaclacl::text FROM pg_default_acl WHERE defaclrole = 'P_o'::regrole";
        for (option, held) in [
            (", with_grant_option: true", "{P_r=ar*/P_o}"),
            (", with_grant_option: false", "{P_r=ar/P_o}"),
            (", with_grant_option: true", "{P_r=ar*/P_o}"),
            ("", "{P_r=ar/P_o}"),
        ] {
            lab.converge(&manifest(option)).await;
            assert_eq!(lab.value(acl).await, held, "{option}");
        }
        let both = manifest(", with_grant_option: true}, {role: P_r, privileges: [SELECT], on_type: table, with_grant_option: false");
        lab.run("apply", &both, &[]).await.exits(1).says("both with and without the grant option");
    }
}
