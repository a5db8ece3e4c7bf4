//! The objects in the database afterwards.

use stanchion_testkit::postgres::{Version, versions};

use crate::database_dump;
use crate::database_env::{DatabaseEnv, full_request};

/// The list to compare with upstream's images; docs/supabase/database.md lists the differences and their reasons.
#[tokio::test]
async fn every_version_gets_the_same_objects() {
    for version in versions() {
        let db_env = DatabaseEnv::new(version).await;
        db_env.initialise(&full_request()).await.unwrap();
        let mut text = database_dump::of(&db_env).await;
        if version == Version::V15 {
            // The only difference: below 16 no login gets CREATEROLE.
            let (here, elsewhere) = (
                "dashboard_user LOGIN INHERIT CREATEDB BYPASSRLS",
                "dashboard_user LOGIN INHERIT CREATEDB CREATEROLE BYPASSRLS",
            );
            assert!(text.contains(here), "{text}");
            text = text.replace(here, elsewhere);
        }
        insta::assert_snapshot!("objects", text);
    }
}
