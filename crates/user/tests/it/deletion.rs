//! Cleanup of a role, and what happens to its objects.

use serde_json::json;
use stanchion_api::user::Phase;
use stanchion_postgres::handover::Keeper;
use stanchion_testkit::proxy::Cut;
use stanchion_testkit::{unique, wait};

use super::bed::{Bed, PATIENCE, any, condition, role_name};

/// A database of the administrator.
async fn database(bed: &Bed, owner: &str) -> String {
    let name = unique::name("other");
    bed.database
        .execute(&format!("CREATE DATABASE {name} OWNER {owner}"))
        .await;
    name
}

/// The keeper of the namespace in a database.
async fn keeper(bed: &Bed, database: &str) -> String {
    let oid = format!("SELECT oid FROM pg_database WHERE datname = '{database}'");
    let oid = bed.server_one(&oid).await.parse().unwrap();
    Keeper::of(oid, &bed.namespace).name().to_owned()
}

/// A6, A7: neither what the role owns nor its grants, also those that it passed on, block the deletion, in any
/// database; nothing is lost, every object has the right new owner; and no session is left.
#[tokio::test]
async fn a_role_with_belongings_everywhere_goes_and_they_stay() {
    Bed::on_every_version(async |bed| {
        let (role, third) = (role_name(), role_name());
        let owner = bed.admin().user().to_owned();
        let server = bed.database.server();
        bed.database.execute(&format!("CREATE ROLE {third}")).await;
        let (other, whole) = (database(&bed, &owner).await, unique::name("whole"));
        let _operator = bed.operator().await;
        bed.password("erin", "secret").await;
        bed.user(
            "erin",
            &role,
            json!({ "privileges": ["CONNECT", "CREATE", "WRITE"] }),
        )
        .await;
        bed.ready("erin").await;

        // Objects of its own, and a grant that it passed on.
        bed.database
            .execute(&format!(
                "CREATE TABLE public.given (n int); ALTER TABLE public.given OWNER TO {owner}; \
                 GRANT SELECT ON public.given TO {role} WITH GRANT OPTION; \
                 GRANT CREATE ON SCHEMA public TO {role}; \
                 SET ROLE {role}; GRANT SELECT ON public.given TO {third}; \
                 CREATE SCHEMA s; CREATE TYPE s.mood AS ENUM ('well'); CREATE TABLE s.kept (n int, m s.mood); \
                 INSERT INTO s.kept VALUES (7, 'well'); CREATE VIEW public.seen AS SELECT * FROM s.kept; \
                 CREATE FUNCTION s.f() RETURNS int LANGUAGE sql AS 'SELECT 1'; \
                 ALTER DEFAULT PRIVILEGES IN SCHEMA s GRANT SELECT ON TABLES TO {third}"
            ))
            .await;
        // Privileges in another database, its own database, and a table in that one.
        let grants = format!(
            "GRANT CREATE ON SCHEMA public TO {role}; ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO {role}; \
             SET ROLE {role}; CREATE TABLE public.elsewhere (n int)"
        );
        server.execute(&other, &grants).await;
        server
            .execute("postgres", &format!("CREATE DATABASE {whole} OWNER {role}"))
            .await;
        server
            .execute(
                &whole,
                &format!("SET ROLE {role}; CREATE TABLE public.inside (n int)"),
            )
            .await;
        let session = bed.database.connect(&role, "secret").await.unwrap();

        bed.delete("erin").await;
        bed.gone("erin").await;
        assert!(!bed.has_role(&role).await);
        assert!(
            session.simple_query("SELECT 1").await.is_err(),
            "the session has ended"
        );
        assert_eq!(bed.one("SELECT n FROM s.kept").await, "7");
        let table_owner =
            |table: &str| format!("SELECT tableowner FROM pg_tables WHERE tablename = '{table}'");
        // Each database has a keeper for the namespace, and so does the role's own database.
        for (database, table) in [(bed.database.name(), "kept"), (&other, "elsewhere"), (&whole, "inside")] {
            let keeper = keeper(&bed, database).await;
            let found = server.scalar(database, &table_owner(table)).await;
            assert_eq!(found.as_ref(), Some(&keeper), "{table}");
        }
        let database_owner =
            format!("SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = '{whole}'");
        assert_eq!(bed.server_one(&database_owner).await, keeper(&bed, &whole).await);
        let passed_on = format!("SELECT has_table_privilege('{third}', 'public.given', 'SELECT')");
        assert_eq!(bed.one(&passed_on).await, "f", "what it passed on goes with it");
    })
    .await;
}

/// A9, C32: the database of the spec may change; privileges in the old one are revoked, and a later deletion is not
/// blocked.
#[tokio::test]
async fn a_user_that_moved_to_another_database_leaves_nothing_in_the_old_one() {
    Bed::on_every_version(async |bed| {
        let role = role_name();
        let other = database(&bed, bed.admin().user()).await;
        let _operator = bed.operator().await;
        bed.password("fred", "secret").await;
        bed.user(
            "fred",
            &role,
            json!({ "privileges": ["CONNECT", "TEMPORARY", "READ"] }),
        )
        .await;
        bed.ready("fred").await;
        assert_eq!(bed.words(&role, bed.database.name()).await, "CONNECT,TEMPORARY");
        bed.user(
            "fred",
            &role,
            json!({ "privileges": ["CONNECT", "READ"], "database": other }),
        )
        .await;
        let user = bed.ready("fred").await;
        assert_eq!(
            user.status.unwrap().provisioned_database.as_deref(),
            Some(other.as_str())
        );
        assert_eq!(bed.words(&role, bed.database.name()).await, "");
        assert_eq!(bed.words(&role, &other).await, "CONNECT");
        let left = format!(
            "SELECT count(*) FROM pg_shdepend s JOIN pg_roles r ON r.oid = s.refobjid JOIN pg_database d ON d.oid = s.dbid \
             WHERE r.rolname = '{role}' AND d.datname = current_database()"
        );
        assert_eq!(bed.one(&left).await, "0");
        bed.delete("fred").await;
        bed.gone("fred").await;
        assert!(!bed.has_role(&role).await);
    })
    .await;
}

/// C7, A10: a role or database that was dropped by hand does not block the deletion.
#[tokio::test]
async fn a_role_or_a_database_that_is_gone_already_is_no_problem() {
    for (dropped, bed) in ["role", "database", "both"].into_iter().zip(Bed::kinds().await) {
        let role = role_name();
        let _operator = bed.operator().await;
        bed.password("gail", "secret").await;
        bed.user("gail", &role, json!({ "privileges": ["CONNECT", "READ"] }))
            .await;
        bed.ready("gail").await;
        if dropped != "database" {
            bed.database
                .execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}"))
                .await;
        }
        if dropped != "role" {
            let drop = format!("DROP DATABASE {} WITH (FORCE)", bed.database.name());
            bed.database.server().execute("postgres", &drop).await;
        }
        bed.delete("gail").await;
        bed.gone("gail").await;
        assert!(!bed.has_role(&role).await, "{dropped}");
    }
}

/// C4, C5, A5: an unreachable server keeps the object, which goes by itself when the server is back.
#[tokio::test]
async fn an_unreachable_server_keeps_the_object() {
    Bed::on_each_kind(async |bed| {
        let role = role_name();
        let (proxy, _operator) = bed.behind_a_proxy().await;
        bed.password("hans", "secret").await;
        bed.user("hans", &role, json!({})).await;
        bed.ready("hans").await;
        proxy.cut(Cut::Close).await;
        proxy.forget();
        bed.delete("hans").await;
        wait::eventually(PATIENCE, "some attempts", async || {
            proxy.seen().attempts.len() >= 6
        })
        .await;
        let user = bed.users().get("hans").await.unwrap();
        assert!(user.metadata.deletion_timestamp.is_some());
        assert_eq!(user.metadata.finalizers.as_ref().map(Vec::len), Some(1));
        assert_eq!(user.status.as_ref().unwrap().phase, Some(Phase::Deleting));
        let found = condition(&user, "DatabaseConnected");
        assert_eq!(found, Some(("False".into(), "ConnectionFailed".into())));
        assert!(bed.has_role(&role).await);
        proxy.restore().await;
        bed.gone("hans").await;
        assert!(!bed.has_role(&role).await);
    })
    .await;
}

/// C23, A12: the password's Secret may be deleted first.
#[tokio::test]
async fn the_secret_may_go_before_the_object() {
    Bed::on_each_kind(async |bed| {
        let role = role_name();
        let operator = bed.operator().await;
        bed.password("ida", "secret").await;
        bed.user("ida", &role, json!({})).await;
        bed.ready("ida").await;
        bed.secrets()
            .delete("ida", &kube::api::DeleteParams::default())
            .await
            .unwrap();
        bed.look_again(&operator, "ida").await;
        bed.delete("ida").await;
        bed.gone("ida").await;
        assert!(!bed.has_role(&role).await);
    })
    .await;
}

/// A person may release a role. Then the object goes at once, without a connection to the server.
#[tokio::test]
async fn a_role_that_was_given_up_stays_behind() {
    let bed = Bed::new(any()).await;
    let role = role_name();
    let (proxy, _operator) = bed.behind_a_proxy().await;
    bed.password("jan", "secret").await;
    bed.user("jan", &role, json!({})).await;
    bed.ready("jan").await;
    proxy.cut(Cut::Refuse).await;
    bed.delete("jan").await;
    wait::until(
        &bed.users(),
        "jan",
        PATIENCE,
        |user: &stanchion_api::PostgresUser| {
            user.status.as_ref().and_then(|status| status.phase) == Some(Phase::Deleting)
        },
    )
    .await;
    let release = json!({ "metadata": { "annotations": { "db.example.com/force-release": "true" } } });
    bed.patch("jan", release).await;
    bed.gone("jan").await;
    assert!(bed.has_role(&role).await);
}
