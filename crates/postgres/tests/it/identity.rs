//! Many addresses, one database.

use stanchion_postgres::ConnectionConfig;
use stanchion_testkit::postgres::{ADMIN, ADMIN_PASSWORD, Database, Postgres, versions};
use stanchion_testkit::unique;

use crate::support::{connect, session, target};

#[tokio::test]
async fn one_database_by_two_roads() {
    for version in versions() {
        let database = Database::of(version).await;
        let role = unique::name("plain");
        database
            .execute(&format!("CREATE ROLE {role} LOGIN PASSWORD 'p'"))
            .await;
        let by_name =
            ConnectionConfig::new("localhost", database.server().port(), database.name(), &role).unwrap();
        let by_name = connect(&by_name.with_password("p".into())).await.unwrap();
        let by_address = session(&database).await;
        assert_ne!(by_name.target().to_string(), by_address.target().to_string());
        assert_eq!(
            by_name.identity(),
            by_address.identity(),
            "also for somebody without rights"
        );

        let other = connect(&by_address.target().with_database("postgres").unwrap())
            .await
            .unwrap();
        assert_ne!(other.identity(), by_address.identity());
        assert!(other.identity().same_server(by_address.identity()));

        // A renamed database is still the same.
        let (before, renamed) = (by_address.identity().clone(), unique::name("renamed"));
        drop((by_name, by_address));
        let rename = format!("ALTER DATABASE {} RENAME TO {renamed}", database.name());
        stanchion_testkit::wait::eventually(crate::support::WAIT_TIMEOUT, "the rename", || async {
            database.server().try_query("postgres", &rename).await
        })
        .await;
        let after = connect(&target(&database.server().url(&renamed))).await.unwrap();
        assert_eq!(after.identity().to_string(), before.to_string());
    }
}

#[tokio::test]
async fn two_servers_are_two() {
    let [first, second, ..] = versions()[..] else {
        return;
    };
    let (one, two) = (Database::of(first).await, Database::of(second).await);
    let (one, two) = (session(&one).await, session(&two).await);
    assert!(!one.identity().same_server(two.identity()));
}

#[tokio::test]
async fn who_may_not_ask_gets_the_address() {
    let server = Postgres::start(versions()[0]).await;
    server
        .execute(
            "postgres",
            "REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC",
        )
        .await;
    server
        .execute("postgres", "CREATE ROLE plain LOGIN PASSWORD 'p'")
        .await;
    let target = target(&server.url_of("plain", "p", "postgres"));
    let session = connect(&target).await.unwrap();
    assert_eq!(session.identity().system(), target.to_string());
    assert_ne!(session.identity().database_oid(), 0);
    let admin = ConnectionConfig::new("127.0.0.1", server.port(), "postgres", ADMIN).unwrap();
    let admin = connect(&admin.with_password(ADMIN_PASSWORD.into()))
        .await
        .unwrap();
    assert_ne!(admin.identity().system(), target.to_string());
}
