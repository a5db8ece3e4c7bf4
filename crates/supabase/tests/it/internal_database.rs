//! The mark of the internal database, which another administrator may own, and which may stay.

use stanchion_supabase::database::{self, Outcome};
use stanchion_testkit::postgres::extremes;

use crate::database_env::{self, DatabaseEnv, KEY, full_request, pools, target};

const COMMENT: &str =
    "SELECT coalesce(shobj_description(oid, 'pg_database'), '') FROM pg_database WHERE datname = '_supabase'";
const MARK: &str = "[stanchion SupabaseProject default/shop uid adopted v";

/// Only an owner may comment on a database. The project works without the mark, and says how to get it.
#[tokio::test]
async fn an_internal_database_of_a_former_administrator_is_used_unmarked() {
    for version in extremes() {
        let db_env = DatabaseEnv::new(version).await;
        db_env
            .execute(
                "CREATE ROLE boss LOGIN PASSWORD 'boss' CREATEROLE CREATEDB; ALTER DATABASE shop OWNER TO boss; \
                 CREATE ROLE earlier SUPERUSER",
            )
            .await;
        let target = target(&db_env.server.url_of("boss", "boss", "shop"));
        let initialise = async || {
            database_env::initialise(&pools(), &target, &full_request())
                .await
                .unwrap()
        };
        let remedy = r#"ALTER DATABASE "_supabase" OWNER TO "boss""#;
        let says = |outcome: &Outcome| outcome.notes.iter().any(|note| note.message.contains(remedy));
        initialise().await;
        assert!(db_env.scalar(COMMENT).await.starts_with(MARK), "{version}");
        db_env
            .execute("ALTER DATABASE _supabase OWNER TO earlier; COMMENT ON DATABASE _supabase IS NULL")
            .await;
        let outcome = initialise().await;
        assert_eq!(db_env.scalar(COMMENT).await, "", "{version}");
        assert!(says(&outcome), "{version}: {:?}", outcome.notes);
        db_env.execute(remedy).await;
        let outcome = initialise().await;
        assert!(db_env.scalar(COMMENT).await.starts_with(MARK), "{version}");
        assert!(!says(&outcome), "{version}: {:?}", outcome.notes);
    }
}

/// An internal database in which somebody else has tables stays, and is nobody's.
#[tokio::test]
async fn an_internal_database_that_stays_loses_its_mark() {
    for version in extremes() {
        let db_env = DatabaseEnv::new(version).await;
        db_env.initialise(&full_request()).await.unwrap();
        assert!(db_env.scalar(COMMENT).await.starts_with(MARK), "{version}");
        db_env
            .server
            .execute("_supabase", "CREATE TABLE public.theirs ()")
            .await;
        let left = database::remove(&pools(), &db_env.target(), "default/shop", &KEY).await;
        let left = left.unwrap().join("; ");
        assert!(
            left.contains("database _supabase: somebody else has tables there"),
            "{version}: {left}"
        );
        assert_eq!(db_env.scalar(COMMENT).await, "", "{version}");
    }
}
