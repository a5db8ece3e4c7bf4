//! How a role goes.

use serde_json::json;
use stanchion_testkit::postgres::versions;
use stanchion_testkit::unique;

use super::bed::{Bed, role_name};

/// A6: what the role owns and was given in other databases does not hold it up, and nothing is lost.
#[tokio::test]
async fn a_role_with_belongings_goes_and_they_stay() {
    for version in versions() {
        let bed = Bed::new(version).await;
        let role = role_name();
        let _operator = bed.operator().await;
        bed.password("erin", "secret").await;
        bed.user("erin", &role, json!({ "privileges": ["CONNECT", "CREATE"] }))
            .await;
        bed.ready("erin").await;
        let other = unique::name("other").replace('-', "_");
        let server = bed.database.server();
        server
            .execute("postgres", &format!("CREATE DATABASE {other}"))
            .await;
        bed.database
            .execute(&format!("CREATE SCHEMA s AUTHORIZATION {role}"))
            .await;
        bed.database
            .execute(&format!(
                "SET ROLE {role}; CREATE TABLE s.kept (n int); INSERT INTO s.kept VALUES (7)"
            ))
            .await;
        server
            .execute(&other, &format!("GRANT CREATE ON SCHEMA public TO {role}"))
            .await;
        server
            .execute(
                &other,
                &format!("ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO {role}"),
            )
            .await;
        bed.delete("erin").await;
        bed.gone("erin").await;
        assert!(!bed.has_role(&role).await);
        assert_eq!(
            bed.database.scalar("SELECT n FROM s.kept").await.as_deref(),
            Some("7")
        );
    }
}

/// C7: a role that was dropped by hand.
#[tokio::test]
async fn a_role_that_is_gone_already_is_no_problem() {
    let bed = Bed::new(stanchion_testkit::postgres::Version::V15).await;
    let role = role_name();
    let _operator = bed.operator().await;
    bed.password("frank", "secret").await;
    bed.user("frank", &role, json!({})).await;
    bed.ready("frank").await;
    bed.database
        .execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}"))
        .await;
    bed.delete("frank").await;
    bed.gone("frank").await;
}
