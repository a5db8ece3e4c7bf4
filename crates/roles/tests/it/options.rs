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

on_every_version! {
    async fn additive_mode_warns_of_an_option_that_the_manifest_excludes(lab) {
        lab.sql(HELD).await;
        let manifest = MANIFEST
            .replace("columns: [x]}}", "columns: [x]}, with_grant_option: false}")
            .replace("name: t}}", "name: t}, with_grant_option: false}")
            .replace("on_type: table}", "on_type: table, with_grant_option: false}");
        let plan = lab.plan(&manifest, Mode::Additive).await;
        assert!(plan.changes.is_empty(), "{:?}", plan.changes);
        let said = |text: &str| plan.warnings.iter().filter(|line| line.contains(text)).count();
        assert_eq!(said("`with_grant_option: false`"), 3, "{:#?}", plan.warnings);
        assert_eq!(said("OPTION)"), 5, "{:#?}", plan.warnings);
        // Adopt mode revokes it, and warns only of what the manifest does not mention.
        let plan = lab.apply_as(&manifest, Mode::Adopt).await.unwrap();
        let options = plan.changes.iter().filter(|change| takes_an_option(change)).count();
        assert_eq!((options, plan.warnings.len()), (4, 1), "{plan:#?}");
    }

    async fn additive_mode_warns_of_members_and_of_their_options(lab) {
        lab.sql("CREATE ROLE P_g; CREATE ROLE P_m; CREATE ROLE P_x; GRANT P_g TO P_m; GRANT P_g TO P_x").await;
        let manifest = "roles: [{name: P_g}]\nmemberships: [{role: P_g, members: [{name: P_m, inherit: false, set: false}]}]";
        let plan = lab.plan(manifest, Mode::Additive).await;
        assert!(plan.changes.is_empty(), "{:?}", plan.changes);
        let warnings = lab.generic(&plan.warnings.join("\n"));
        assert!(warnings.contains("\"P_x\" is a member of \"P_g\", which the manifest does not say"), "{warnings}");
        let has_options = lab.database.server().version().major() >= 16;
        for text in ["(INHERIT OPTION)", "(SET OPTION)"] {
            assert_eq!(warnings.contains(text), has_options, "{warnings}");
        }
        // What is as declared is no surprise.
        let all = "roles: [{name: P_g}]\nmemberships: [{role: P_g, members: [{name: P_m}, {name: P_x}]}]";
        assert_eq!(lab.plan(all, Mode::Additive).await.warnings, Vec::<String>::new());
    }

    async fn a_revoke_on_the_table_does_not_bring_the_option_on_a_column_back(lab) {
        lab.sql("CREATE ROLE P_r; CREATE SCHEMA s; CREATE TABLE s.t (x int, y int);
            GRANT SELECT ON s.t TO P_r; GRANT SELECT (x) ON s.t TO P_r WITH GRANT OPTION").await;
        lab.converge("
            roles: [{name: P_r}]
            grants: [{role: P_r, privileges: [SELECT], object: {type: table, schema: s, name: t, columns: [x]}}]").await;
        assert_eq!(lab.value(ON_X).await, "P_r SELECT false");
    }

    async fn the_option_on_a_column_outlives_the_one_on_its_table(lab) {
        let given = "GRANT SELECT ON s.t TO P_r WITH GRANT OPTION; GRANT SELECT (x) ON s.t TO P_r WITH GRANT OPTION";
        lab.sql("CREATE ROLE P_r; CREATE SCHEMA s; CREATE TABLE s.t (x int, y int)").await;
        let on_table = "{role: P_r, privileges: [SELECT], object: {type: table, schema: s, name: t}, with_grant_option: false}";
        let on_column = ", {role: P_r, privileges: [SELECT], object: {type: table, schema: s, name: t, columns: [x]}, with_grant_option: true}";
        // Declared, or not managed.
        for column in [on_column, ""] {
            lab.sql(given).await;
            lab.converge(&format!("roles: [{{name: P_r}}]\ngrants: [{on_table}{column}]")).await;
            assert_eq!(lab.value(ON_X).await, "P_r SELECT true", "{column}");
        }
        // Of a role that the manifest does not declare.
        lab.sql(given).await;
        lab.apply(&format!("grants: [{on_table}]")).await;
        assert_eq!(lab.value(ON_X).await, "P_r SELECT true");
        assert_eq!(lab.value("SELECT has_table_privilege('P_r', 's.t', 'SELECT WITH GRANT OPTION')").await, "f");
    }

    async fn what_was_passed_on_of_a_column_is_not_lost_with_the_table(lab) {
        lab.sql("CREATE ROLE P_r; CREATE ROLE P_h; CREATE ROLE P_i; CREATE SCHEMA s; GRANT USAGE ON SCHEMA s TO PUBLIC;
            CREATE TABLE s.t (x int, y int)").await;
        let rule = |columns: &str, option: &str| format!(
            "grants: [{{role: P_r, privileges: [SELECT], object: {{type: table, schema: s, name: t{columns}}}{option}}}]"
        );
        let kept = "P_h SELECT true, P_i SELECT false, P_r SELECT true";
        for (manifest, left) in [
            // Revokes SELECT on the table, which the role does not pass on; that of P_h goes, too.
            ("roles: [{name: P_r}, {name: P_h}]\nschemas: [{name: s}]".to_owned(), kept),
            (format!("roles: [{{name: P_r}}, {{name: P_h}}]\n{}", rule("", "")), kept),
            (format!("roles: [{{name: P_r}}]\n{}", rule("", ", with_grant_option: false")), kept),
            (format!("roles: [{{name: P_r}}]\n{}", rule(", columns: [x]", "")), "P_h SELECT true, P_i SELECT false, P_r SELECT false"),
            ("roles: [{name: P_h}]\nretirements: [{role: P_r, drop_owned: true}]".to_owned(), "P_h SELECT true, P_i SELECT false"),
        ] {
            lab.sql("REVOKE ALL ON s.t FROM P_r, P_h, P_i CASCADE;
                GRANT SELECT ON s.t TO P_r WITH GRANT OPTION; GRANT SELECT ON s.t TO P_h;
                GRANT SELECT (x) ON s.t TO P_r WITH GRANT OPTION;
                SET ROLE P_r; GRANT SELECT (x) ON s.t TO P_h WITH GRANT OPTION; SET ROLE P_h; GRANT SELECT (x) ON s.t TO P_i; RESET ROLE").await;
            lab.converge(&manifest).await;
            assert_eq!(lab.value(ON_X).await, left, "{manifest}");
        }
    }

    async fn what_a_role_granted_on_a_column_can_be_revoked_when_it_may_no_longer_grant(lab) {
        lab.sql("CREATE ROLE P_r; CREATE ROLE P_h; CREATE ROLE P_i; CREATE SCHEMA s; GRANT USAGE ON SCHEMA s TO PUBLIC;
            CREATE TABLE s.t (x int, y int)").await;
        // The option is on the table: it goes before, or with the same apply.
        for before in ["REVOKE SELECT ON s.t FROM P_r CASCADE", "GRANT SELECT (x) ON s.t TO P_r"] {
            lab.sql(&format!("GRANT SELECT ON s.t TO P_r WITH GRANT OPTION;
                SET ROLE P_r; GRANT SELECT (x) ON s.t TO P_h; GRANT SELECT (x) ON s.t TO P_i; RESET ROLE; {before}")).await;
            let held = lab.value(ON_X).await;
            assert!(held.contains("P_h SELECT false, P_i SELECT false"), "{held}");
            lab.converge("
                roles: [{name: P_r}, {name: P_h}]
                schemas: [{name: s}]
                grants: [{role: P_h, privileges: [UPDATE], object: {type: table, schema: s, name: t, columns: [x]}}]").await;
            let left = held.replace("P_h SELECT false", "P_h UPDATE false");
            assert_eq!(lab.value(ON_X).await, left, "{before}");
            lab.sql("REVOKE ALL ON s.t FROM P_r, P_h, P_i CASCADE").await;
        }
    }
}

/// Who holds what on the column x, and may pass it on.
const ON_X: &str = "
SELECT string_agg(DISTINCT held, ', ' ORDER BY held) FROM (
  SELECT a.grantee::regrole || ' ' || a.privilege_type || ' ' || bool_or(a.is_grantable) AS held
  FROM pg_attribute t, aclexplode(t.attacl) a
  WHERE t.attrelid = 's.t'::regclass AND t.attname = 'x' GROUP BY a.grantee, a.privilege_type) AS all_held";
