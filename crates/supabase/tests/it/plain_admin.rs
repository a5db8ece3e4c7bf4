//! An administrator without superuser, as on managed services.

use stanchion_kernel::{Class, Problem};
use stanchion_supabase::database::{Login, Outcome};
use stanchion_testkit::postgres::{Version, extremes, versions};

use crate::database_env::{self, DatabaseEnv, full_request, pools, request, target};

/// The administrator, with these attributes, owns the database.
async fn db_env(version: Version, attributes: &str) -> DatabaseEnv {
    let db_env = DatabaseEnv::new(version).await;
    db_env
        .execute(&format!(
            "CREATE ROLE boss LOGIN PASSWORD 'boss' {attributes}; ALTER DATABASE shop OWNER TO boss"
        ))
        .await;
    db_env
}

async fn initialise(db_env: &DatabaseEnv) -> Result<Outcome, Problem> {
    let target = target(&db_env.server.url_of("boss", "boss", "shop"));
    database_env::initialise(&pools(), &target, &full_request()).await
}

fn mentions(outcome: &Outcome, about: &str) -> bool {
    outcome.notes.iter().any(|note| note.about == about)
}

#[tokio::test]
async fn a_plain_administrator_initialises_what_the_server_allows() {
    for version in versions() {
        let db_env = db_env(version, "CREATEROLE CREATEDB").await;
        let outcome = initialise(&db_env).await.unwrap();
        assert!(outcome.ran.contains(&"schemas"));
        for about in [
            "role service_role",
            "role supabase_realtime_login",
            "schema reload",
            "extension pg_stat_statements",
            "server log",
        ] {
            assert!(
                mentions(&outcome, about),
                "{version}: {about} is not among {:#?}",
                outcome.notes
            );
        }
        // Nothing is retried before something changes.
        let again = initialise(&db_env).await.unwrap();
        assert_eq!((again.ran.len(), &again.notes), (0, &outcome.notes));

        // The services work.
        let rest = db_env.connect(Login::Rest).await;
        rest.batch_execute("SET ROLE anon; SELECT auth.uid()")
            .await
            .unwrap();
        db_env
            .connect(Login::Auth)
            .await
            .batch_execute("CREATE TABLE users (id int)")
            .await
            .unwrap();
        db_env
            .connect(Login::Storage)
            .await
            .batch_execute("CREATE TABLE buckets (id int)")
            .await
            .unwrap();
        db_env
            .connect(Login::Realtime)
            .await
            .batch_execute("CREATE TABLE _realtime.tenants (id int)")
            .await
            .unwrap();
        let boss = db_env.server.connect("boss", "boss", "shop").await.unwrap();
        boss.batch_execute("CREATE TABLE public.todo ()").await.unwrap();
        rest.batch_execute("SET ROLE anon; SELECT FROM public.todo")
            .await
            .unwrap();

        // A superuser fixes what the notes say, and becomes the administrator: the rest follows.
        db_env.execute("ALTER ROLE boss SUPERUSER").await;
        let outcome = initialise(&db_env).await.unwrap();
        assert!(outcome.ran.contains(&"schema reload"), "{:?}", outcome.ran);
        assert!(!outcome.ran.contains(&"schemas"));
        for about in [
            "role service_role",
            "schema reload",
            "extension pg_stat_statements",
        ] {
            assert!(!mentions(&outcome, about), "{version}: {:#?}", outcome.notes);
        }
    }
}

/// From 16 on, a role that has an attribute can grant it.
#[tokio::test]
async fn attributes_are_given_by_those_who_have_them() {
    let db_env = db_env(Version::V18, "CREATEROLE CREATEDB REPLICATION BYPASSRLS").await;
    let outcome = initialise(&db_env).await.unwrap();
    assert!(!mentions(&outcome, "role service_role") && !mentions(&outcome, "role supabase_realtime_login"));
    let has = db_env
        .scalar("SELECT rolbypassrls FROM pg_roles WHERE rolname = 'service_role'")
        .await;
    assert_eq!(has, "t");
}

#[tokio::test]
async fn a_new_password_is_noticed_without_reading_the_old_one() {
    let db_env = db_env(Version::V18, "CREATEROLE CREATEDB").await;
    initialise(&db_env).await.unwrap();
    let target = target(&db_env.server.url_of("boss", "boss", "shop"));
    let mut changed = full_request();
    changed.passwords.insert(Login::Auth, "another".to_owned().into());
    database_env::initialise(&pools(), &target, &changed)
        .await
        .unwrap();
    db_env
        .server
        .connect("supabase_auth_admin", "another", "shop")
        .await
        .unwrap();
}

#[tokio::test]
async fn what_is_essential_and_impossible_is_said_before_anything_is_done() {
    for version in extremes() {
        let cases = [
            ("", "ALTER ROLE \"boss\" CREATEROLE"),
            ("CREATEROLE", "ALTER ROLE \"boss\" CREATEDB"),
        ];
        for (attributes, remedy) in cases {
            let db_env = db_env(version, attributes).await;
            let problem = initialise(&db_env).await.unwrap_err();
            assert_eq!(
                (problem.class, problem.reason),
                (Class::Human, "InsufficientPrivilege")
            );
            assert!(problem.message.contains(remedy), "{problem}");
            assert_eq!(
                db_env
                    .scalar("SELECT count(*) FROM pg_roles WHERE rolname = 'anon'")
                    .await,
                "0"
            );
        }
        let db_env = db_env(version, "CREATEROLE CREATEDB").await;
        db_env.execute("ALTER DATABASE shop OWNER TO postgres").await;
        let problem = initialise(&db_env).await.unwrap_err();
        assert!(
            problem
                .message
                .contains("ALTER DATABASE \"shop\" OWNER TO \"boss\""),
            "{problem}"
        );
        db_env
            .execute("ALTER DATABASE shop OWNER TO boss; ALTER SCHEMA public OWNER TO postgres")
            .await;
        let problem = initialise(&db_env).await.unwrap_err();
        assert!(problem.message.contains("public"), "{problem}");
    }
}

/// For PostgreSQL, a GRANT without effect is a success with a warning.
#[tokio::test]
async fn a_schema_that_is_somebody_elses_is_named() {
    for (schemas, hint) in [
        (
            "CREATE SCHEMA extensions",
            "GRANT ALL ON SCHEMA extensions TO boss",
        ),
        (
            "CREATE SCHEMA auth; CREATE ROLE supabase_auth_admin; GRANT ALL ON SCHEMA auth TO supabase_auth_admin",
            "GRANT USAGE ON SCHEMA auth TO ",
        ),
    ] {
        let db_env = db_env(Version::V15, "CREATEROLE CREATEDB").await;
        db_env.execute(schemas).await;
        let problem = initialise(&db_env).await.unwrap_err();
        assert_eq!(
            (problem.class, problem.reason),
            (Class::Human, "InsufficientPrivilege")
        );
        assert!(problem.message.contains(hint), "{problem}");
        assert_eq!(
            db_env
                .scalar("SELECT count(*) FROM pg_roles WHERE rolname = 'anon'")
                .await,
            "0"
        );
    }
}

/// From 16 on a role that somebody else created cannot be changed; before 16 it can.
#[tokio::test]
async fn a_role_that_is_somebody_elses_is_named() {
    let db_env = db_env(Version::V18, "CREATEROLE CREATEDB").await;
    db_env
        .execute("CREATE ROLE authenticator NOINHERIT LOGIN PASSWORD 'theirs'")
        .await;
    let problem = initialise(&db_env).await.unwrap_err();
    assert_eq!(
        (problem.class, problem.reason),
        (Class::Human, "RoleNotManageable")
    );
    assert!(
        problem.message.contains("authenticator") && !problem.message.contains("SCRAM"),
        "{problem}"
    );
    db_env
        .execute("GRANT authenticator TO boss WITH ADMIN OPTION")
        .await;
    initialise(&db_env).await.unwrap();
}

#[tokio::test]
async fn the_administrator_is_not_a_services_login() {
    let db_env = DatabaseEnv::new(Version::V18).await;
    db_env
        .execute("CREATE ROLE authenticator SUPERUSER LOGIN PASSWORD 'x'")
        .await;
    let problem = db_env.initialise(&request()).await.unwrap_err();
    assert_eq!((problem.class, problem.reason), (Class::Human, "RoleIsSuperuser"));
    db_env
        .execute(
            "ALTER ROLE authenticator NOSUPERUSER CREATEROLE; ALTER DATABASE shop OWNER TO authenticator",
        )
        .await;
    let target = target(&db_env.server.url_of("authenticator", "x", "shop"));
    let problem = database_env::initialise(&pools(), &target, &request())
        .await
        .unwrap_err();
    assert_eq!(
        (problem.class, problem.reason),
        (Class::Human, "RoleIsAdministrator")
    );
}
