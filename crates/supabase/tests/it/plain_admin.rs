//! An administrator without superuser, as on managed services.

use stanchion_kernel::{Class, Problem};
use stanchion_supabase::database::{self, Login, Outcome};
use stanchion_testkit::postgres::{Version, extremes, versions};

use crate::bed::{Bed, full_request, pools, request, target};

/// The administrator, with these attributes, owns the database.
async fn bed(version: Version, attributes: &str) -> Bed {
    let bed = Bed::new(version).await;
    bed.execute(&format!(
        "CREATE ROLE boss LOGIN PASSWORD 'boss' {attributes}; ALTER DATABASE shop OWNER TO boss"
    ))
    .await;
    bed
}

async fn initialise(bed: &Bed) -> Result<Outcome, Problem> {
    let target = target(&bed.server.url_of("boss", "boss", "shop"));
    database::initialise(&pools(), &target, &full_request()).await
}

fn mentions(outcome: &Outcome, about: &str) -> bool {
    outcome.notes.iter().any(|note| note.about == about)
}

#[tokio::test]
async fn as_far_as_the_server_lets_and_the_rest_is_said() {
    for version in versions() {
        let bed = bed(version, "CREATEROLE CREATEDB").await;
        let outcome = initialise(&bed).await.unwrap();
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
        let again = initialise(&bed).await.unwrap();
        assert_eq!((again.ran.len(), &again.notes), (0, &outcome.notes));

        // The services work.
        let rest = bed.connect(Login::Rest).await;
        rest.batch_execute("SET ROLE anon; SELECT auth.uid()")
            .await
            .unwrap();
        bed.connect(Login::Auth)
            .await
            .batch_execute("CREATE TABLE users (id int)")
            .await
            .unwrap();
        bed.connect(Login::Storage)
            .await
            .batch_execute("CREATE TABLE buckets (id int)")
            .await
            .unwrap();
        bed.connect(Login::Realtime)
            .await
            .batch_execute("CREATE TABLE _realtime.tenants (id int)")
            .await
            .unwrap();
        let boss = bed.server.connect("boss", "boss", "shop").await.unwrap();
        boss.batch_execute("CREATE TABLE public.todo ()").await.unwrap();
        rest.batch_execute("SET ROLE anon; SELECT FROM public.todo")
            .await
            .unwrap();

        // A superuser fixes what the notes say, and becomes the administrator: the rest follows.
        bed.execute("ALTER ROLE boss SUPERUSER").await;
        let outcome = initialise(&bed).await.unwrap();
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
    let bed = bed(Version::V18, "CREATEROLE CREATEDB REPLICATION BYPASSRLS").await;
    let outcome = initialise(&bed).await.unwrap();
    assert!(!mentions(&outcome, "role service_role") && !mentions(&outcome, "role supabase_realtime_login"));
    let has = bed
        .scalar("SELECT rolbypassrls FROM pg_roles WHERE rolname = 'service_role'")
        .await;
    assert_eq!(has, "t");
}

#[tokio::test]
async fn a_new_password_is_noticed_without_reading_the_old_one() {
    let bed = bed(Version::V18, "CREATEROLE CREATEDB").await;
    initialise(&bed).await.unwrap();
    let target = target(&bed.server.url_of("boss", "boss", "shop"));
    let mut changed = full_request();
    changed.passwords.insert(Login::Auth, "another".to_owned().into());
    database::initialise(&pools(), &target, &changed).await.unwrap();
    bed.server
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
            let bed = bed(version, attributes).await;
            let problem = initialise(&bed).await.unwrap_err();
            assert_eq!(
                (problem.class, problem.reason),
                (Class::Human, "InsufficientPrivilege")
            );
            assert!(problem.message.contains(remedy), "{problem}");
            assert_eq!(
                bed.scalar("SELECT count(*) FROM pg_roles WHERE rolname = 'anon'")
                    .await,
                "0"
            );
        }
        let bed = bed(version, "CREATEROLE CREATEDB").await;
        bed.execute("ALTER DATABASE shop OWNER TO postgres").await;
        let problem = initialise(&bed).await.unwrap_err();
        assert!(
            problem
                .message
                .contains("ALTER DATABASE \"shop\" OWNER TO \"boss\""),
            "{problem}"
        );
        bed.execute("ALTER DATABASE shop OWNER TO boss; ALTER SCHEMA public OWNER TO postgres")
            .await;
        let problem = initialise(&bed).await.unwrap_err();
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
        let bed = bed(Version::V15, "CREATEROLE CREATEDB").await;
        bed.execute(schemas).await;
        let problem = initialise(&bed).await.unwrap_err();
        assert_eq!(
            (problem.class, problem.reason),
            (Class::Human, "InsufficientPrivilege")
        );
        assert!(problem.message.contains(hint), "{problem}");
        assert_eq!(
            bed.scalar("SELECT count(*) FROM pg_roles WHERE rolname = 'anon'")
                .await,
            "0"
        );
    }
}

/// From 16 on a role that somebody else created cannot be changed; before 16 it can.
#[tokio::test]
async fn a_role_that_is_somebody_elses_is_named() {
    let bed = bed(Version::V18, "CREATEROLE CREATEDB").await;
    bed.execute("CREATE ROLE authenticator NOINHERIT LOGIN PASSWORD 'theirs'")
        .await;
    let problem = initialise(&bed).await.unwrap_err();
    assert_eq!(
        (problem.class, problem.reason),
        (Class::Human, "RoleNotManageable")
    );
    assert!(
        problem.message.contains("authenticator") && !problem.message.contains("SCRAM"),
        "{problem}"
    );
    bed.execute("GRANT authenticator TO boss WITH ADMIN OPTION").await;
    initialise(&bed).await.unwrap();
}

#[tokio::test]
async fn the_administrator_is_not_a_services_login() {
    let bed = Bed::new(Version::V18).await;
    bed.execute("CREATE ROLE authenticator SUPERUSER LOGIN PASSWORD 'x'")
        .await;
    let problem = bed.initialise(&request()).await.unwrap_err();
    assert_eq!((problem.class, problem.reason), (Class::Human, "RoleIsSuperuser"));
    bed.execute(
        "ALTER ROLE authenticator NOSUPERUSER CREATEROLE; ALTER DATABASE shop OWNER TO authenticator",
    )
    .await;
    let target = target(&bed.server.url_of("authenticator", "x", "shop"));
    let problem = database::initialise(&pools(), &target, &request())
        .await
        .unwrap_err();
    assert_eq!(
        (problem.class, problem.reason),
        (Class::Human, "RoleIsAdministrator")
    );
}
