//! Deletion of a project whose database somebody has dropped.

use stanchion_supabase::database;
use stanchion_testkit::postgres::{Rows, Version};

use crate::database_env::{DatabaseEnv, KEY, full_request, pools};

/// What a project has on the server besides its database.
const ON_SERVER: &str = "SELECT rolname FROM pg_roles WHERE rolcanlogin AND rolname <> 'postgres' UNION ALL \
                         SELECT datname FROM pg_database WHERE datname = '_supabase'";

/// The record of what was created is lost with a database, and the marks of the logins are not: they are removed with the
/// project whether the database comes back or not.
#[tokio::test]
async fn logins_of_a_database_that_somebody_dropped_are_removed() {
    for version in [Version::V15, Version::V18] {
        let db_env = DatabaseEnv::new(version).await;
        let drop = "DROP DATABASE shop WITH (FORCE)";
        db_env
            .server
            .execute("postgres", "CREATE ROLE supabase_auth_admin LOGIN")
            .await;
        db_env.initialise(&full_request()).await.unwrap();
        db_env.server.execute("postgres", drop).await;
        db_env.server.execute("postgres", "CREATE DATABASE shop").await;
        db_env.initialise(&full_request()).await.unwrap();
        assert_eq!(
            database::remove(&pools(), &db_env.target(), "default/shop", &KEY)
                .await
                .unwrap(),
            [""; 0],
            "{version}"
        );
        assert_eq!(
            db_env.column(ON_SERVER).await,
            ["supabase_auth_admin"],
            "{version}"
        );

        db_env.initialise(&full_request()).await.unwrap();
        db_env.server.execute("postgres", drop).await;
        let orphans = async |project| {
            let (pools, target) = (pools(), db_env.target());
            database::remove_orphans(&pools, &target, project, &KEY)
                .await
                .unwrap()
        };
        assert_eq!(orphans("default/other").await, [""; 0]);
        assert_eq!(orphans("default/shop").await, [""; 0], "{version}");
        let left = db_env.server.query("postgres", ON_SERVER).await;
        assert_eq!(left, [[Some("supabase_auth_admin".to_owned())]], "{version}");
    }
}

/// A login that owns something elsewhere stays, but nobody can log in with it.
#[tokio::test]
async fn an_orphaned_login_that_others_depend_on_stays_without_its_login() {
    let db_env = DatabaseEnv::new(Version::V18).await;
    db_env.initialise(&full_request()).await.unwrap();
    let elsewhere = "CREATE TABLE theirs (); ALTER TABLE theirs OWNER TO dashboard_user";
    db_env.server.execute("postgres", elsewhere).await;
    db_env
        .server
        .execute("postgres", "DROP DATABASE shop WITH (FORCE)")
        .await;
    let left = database::remove_orphans(&pools(), &db_env.target(), "default/shop", &KEY)
        .await
        .unwrap();
    assert!(
        matches!(left.as_slice(), [one] if one.starts_with("role dashboard_user: ")),
        "{left:#?}"
    );
    assert_eq!(db_env.server.query("postgres", ON_SERVER).await, Rows::new());
}
