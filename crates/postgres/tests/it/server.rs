//! Our privileges on each version.

use stanchion_postgres::server::{Attributes, LOG_GRANTS, SelfGrant};
use stanchion_postgres::{Batch, Level, Query, Statement};
use stanchion_testkit::postgres::{Database, Postgres, versions};
use stanchion_testkit::unique;

use crate::support::{connect, session, target};

#[tokio::test]
async fn a_superuser() {
    for version in versions() {
        let database = Database::of(version).await;
        let (server, powers) = session(&database)
            .await
            .inspect(&["postgres", "no such role"])
            .await
            .unwrap();
        assert_eq!(server.version / 10_000, version.major());
        assert!(!server.in_recovery);
        assert_eq!(server.level(), Level::Superuser);
        assert_eq!(powers.len(), 1);
        assert!(server.may_manage(powers["postgres"]));
    }
}

#[tokio::test]
async fn an_administrator_that_is_not_superuser() {
    for version in versions() {
        let database = Database::of(version).await;
        let [admin, foreign, created] = ["admin", "foreign", "created"].map(unique::name);
        database
            .execute(&format!(
                "CREATE ROLE {foreign}; CREATE ROLE {admin} LOGIN CREATEROLE CREATEDB PASSWORD 'p'"
            ))
            .await;
        let mut session = connect(&target(&database.url_of(&admin, "p"))).await.unwrap();
        let create = Statement::new("CREATE ROLE ").ident(&created);
        session.apply(&Batch::new(vec![create])).await.unwrap();

        let (server, powers) = session.inspect(&[&foreign, &created, "postgres"]).await.unwrap();
        assert_eq!((&server.role, &server.login), (&admin, &admin));
        assert_eq!(
            server.attributes,
            Attributes {
                create_role: true,
                create_db: true,
                ..Attributes::default()
            }
        );
        assert_eq!(server.level(), Level::CreateRole);
        assert!(powers["postgres"].is_superuser && !server.may_manage(powers["postgres"]));
        assert!(server.may_manage(powers[&created]));
        assert!(
            !server.may_act_as(powers[&created]),
            "nobody inherits from what it creates"
        );

        // Our result matches what the server does.
        let comment =
            |role: &str| Batch::new(vec![Statement::new("ALTER ROLE ").ident(role).sql(" NOLOGIN")]);
        let old_rules = version.major() < 16;
        assert_eq!(server.may_manage(powers[&foreign]), old_rules, "{version}");
        let altered = session.apply(&comment(&foreign)).await;
        assert_eq!(altered.is_ok(), old_rules);
        session.apply(&comment(&created)).await.unwrap();

        let grant = Statement::new("GRANT ").ident(&created).sql(" TO ").ident(&admin);
        let drop_owned = Batch::new(vec![Statement::new("DROP OWNED BY ").ident(&created)]);
        assert_eq!(
            session.apply(&drop_owned).await.unwrap_err().sqlstate(),
            Some("42501")
        );
        session.apply(&Batch::new(vec![grant])).await.unwrap();
        let (server, powers) = session.inspect(&[&created]).await.unwrap();
        assert!(server.may_act_as(powers[&created]) && powers[&created].set);
        session.apply(&drop_owned).await.unwrap();
    }
}

/// Memberships are looked up because the server's own functions are slow with many of them. Both must agree.
#[tokio::test]
async fn powers_are_what_the_server_says() {
    const ROLES: [&str; 7] = ["postgres", "stranger", "direct", "led", "group_of", "far", "kept"];
    const QUESTION: &str = "\
        SELECT rolname::text, pg_has_role(oid, 'MEMBER WITH ADMIN OPTION'), pg_has_role(oid, 'USAGE'), \
               pg_has_role(oid, CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END) \
        FROM pg_roles WHERE rolname = ANY ($1)";
    for version in versions() {
        let server = Postgres::start(version).await;
        let options = if version.major() < 16 {
            ""
        } else {
            " WITH INHERIT FALSE, SET FALSE"
        };
        let make = format!(
            "CREATE ROLE stranger; CREATE ROLE direct; CREATE ROLE led; CREATE ROLE group_of; CREATE ROLE far; \
             CREATE ROLE kept; CREATE ROLE keen LOGIN PASSWORD 'p'; CREATE ROLE shy LOGIN NOINHERIT PASSWORD 'p'; \
             CREATE ROLE boss LOGIN SUPERUSER PASSWORD 'p'; \
             GRANT direct, group_of TO keen, shy; GRANT led TO keen, shy WITH ADMIN OPTION; \
             GRANT far TO group_of WITH ADMIN OPTION; GRANT kept TO keen, shy{options}"
        );
        server.execute("postgres", &make).await;
        for login in ["keen", "shy", "boss"] {
            let session = connect(&target(&server.url_of(login, "p", "postgres")))
                .await
                .unwrap();
            let (_, powers) = session.inspect(&ROLES).await.unwrap();
            let roles = ROLES.map(str::to_owned).to_vec();
            let said = session
                .snapshot(&[Query::new(QUESTION).texts(roles)])
                .await
                .unwrap();
            assert_eq!(said[0].len(), ROLES.len());
            for row in &said[0] {
                let role: String = row.get(0);
                let ours = powers[&role];
                assert_eq!(
                    [ours.admin, ours.inherit, ours.set],
                    [1, 2, 3].map(|column| row.get::<_, bool>(column)),
                    "{version}: {login} and {role}"
                );
            }
        }
    }
}

#[tokio::test]
async fn self_grants_and_cloud_administrators() {
    for version in versions() {
        let server = Postgres::start(version).await;
        server
            .execute(
                "postgres",
                "CREATE ROLE rds_superuser; CREATE ROLE team IN ROLE rds_superuser; \
                 CREATE ROLE admin LOGIN CREATEROLE PASSWORD 'p' IN ROLE team",
            )
            .await;
        let session = connect(&target(&server.url_of("admin", "p", "postgres")))
            .await
            .unwrap();
        let (facts, _) = session.inspect(&[]).await.unwrap();
        assert_eq!(
            facts.level(),
            Level::CloudAdmin("rds_superuser".into()),
            "through another role"
        );
        assert_eq!(facts.self_grant, SelfGrant::default());
        if version.major() >= 16 {
            server
                .execute(
                    "postgres",
                    "ALTER ROLE admin SET createrole_self_grant = 'set, inherit'",
                )
                .await;
            let session = connect(&target(&server.url_of("admin", "p", "postgres")))
                .await
                .unwrap();
            let (facts, _) = session.inspect(&[]).await.unwrap();
            assert_eq!(
                facts.self_grant,
                SelfGrant {
                    inherit: true,
                    set: true
                }
            );
        }
    }
}

/// An administrator without superuser may get the privilege to keep verifiers out of the server's log.
#[tokio::test]
async fn whether_the_log_can_be_kept_clean_is_known() {
    for version in versions() {
        let server = Postgres::start(version).await;
        server
            .execute("postgres", "CREATE ROLE admin LOGIN CREATEROLE PASSWORD 'p'")
            .await;
        let clean = async || {
            let session = connect(&target(&server.url_of("admin", "p", "postgres")))
                .await
                .unwrap();
            session.inspect(&[]).await.unwrap().0.keeps_log_clean
        };
        assert!(!clean().await);
        server.execute("postgres", &format!("{LOG_GRANTS} admin")).await;
        assert!(clean().await);
        let session = connect(&target(&server.url("postgres"))).await.unwrap();
        assert!(
            session.inspect(&[]).await.unwrap().0.keeps_log_clean,
            "a superuser may"
        );
    }
}
