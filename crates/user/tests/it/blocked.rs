//! A cleanup that a database blocks.

use serde_json::json;
use stanchion_api::user::Phase;
use stanchion_testkit::unique;

use super::bed::{Bed, message, role_name};

/// C6, A8: a database that refuses connections keeps object and role; the condition names it and the reason; retries
/// are rare, and the object goes by itself once it can.
#[tokio::test]
async fn a_database_that_lets_nobody_in_holds_the_role_up_until_it_does() {
    Bed::on_each_kind(async |bed| {
        let role = role_name();
        let server = bed.database.server();
        let other = unique::name("other");
        server
            .execute("postgres", &format!("CREATE DATABASE {other}"))
            .await;
        let _operator = bed.operator().await;
        bed.password("pia", "secret").await;
        bed.user("pia", &role, json!({})).await;
        bed.ready("pia").await;
        let table = format!("CREATE TABLE public.t (n int); ALTER TABLE public.t OWNER TO {role}");
        server.execute(&other, &table).await;
        server
            .execute(
                "postgres",
                &format!("ALTER DATABASE {other} ALLOW_CONNECTIONS false"),
            )
            .await;

        bed.delete("pia").await;
        let user = bed.condition("pia", "Ready", "False", "CleanupBlocked").await;
        let said = message(&user, "Ready");
        for part in [role.as_str(), other.as_str(), "2BP01"] {
            assert!(said.contains(part), "{said}");
        }
        assert_eq!(user.status.unwrap().phase, Some(Phase::Deleting));
        assert_eq!(user.metadata.finalizers.map(|all| all.len()), Some(1));
        assert!(!bed.logs_in(&role, "secret").await, "it cannot be used meanwhile");

        server
            .execute(
                "postgres",
                &format!("ALTER DATABASE {other} ALLOW_CONNECTIONS true"),
            )
            .await;
        bed.gone("pia").await;
        let drops = bed
            .statements()
            .iter()
            .filter(|sql| sql.contains("DROP ROLE"))
            .count();
        assert_eq!(drops, 2, "one that failed, and one that did not");
    })
    .await;
}

/// A8: the same with the object's own database.
#[tokio::test]
async fn the_objects_own_database_may_be_the_one() {
    Bed::on_each_kind(async |bed| {
        let role = role_name();
        let operator = bed.operator().await;
        bed.password("quin", "secret").await;
        bed.user("quin", &role, json!({ "privileges": ["CONNECT", "READ"] }))
            .await;
        bed.ready("quin").await;
        let name = bed.database.name();
        let allow = |yes: bool| format!("ALTER DATABASE {name} ALLOW_CONNECTIONS {yes}");
        bed.database.server().execute("postgres", &allow(false)).await;
        bed.delete("quin").await;
        let user = bed.condition("quin", "Ready", "False", "CleanupBlocked").await;
        assert!(message(&user, "Ready").contains(name));
        bed.database.server().execute("postgres", &allow(true)).await;
        bed.look_again(&operator, "quin").await;
        bed.gone("quin").await;
        assert!(!bed.has_role(&role).await);
    })
    .await;
}
