//! The objects of a dropped role run with nobody else's privileges, on each version, with each kind of administrator.

use stanchion_postgres::handover::{self, Disarmed, Keeper};
use stanchion_postgres::{Begin, Query, Session, Statement};
use stanchion_testkit::postgres::{Database, Version, versions};
use stanchion_testkit::unique;

use crate::support::{connect, session, target};

/// A server, an administrator, a role to drop, one that stays, and a table that only the administrator may read.
struct Scene {
    database: Database<'static>,
    admin: String,
    mole: String,
    caller: String,
    session: Session,
}

impl Scene {
    async fn new(version: Version, superuser: bool) -> Self {
        let database = Database::of(version).await;
        let [admin, mole, caller] = ["admin", "mole", "caller"].map(unique::name);
        database
            .execute(&format!(
                "CREATE ROLE {admin} LOGIN CREATEROLE CREATEDB PASSWORD 'p'; ALTER DATABASE {} OWNER TO {admin}",
                database.name()
            ))
            .await;
        let mut session = if superuser {
            session(&database).await
        } else {
            connect(&target(&database.url_of(&admin, "p"))).await.unwrap()
        };
        let make = |name: &str| {
            Statement::new("CREATE ROLE ")
                .ident(name)
                .sql(" LOGIN PASSWORD 'p'")
        };
        for name in [&mole, &caller] {
            session.execute(&make(name)).await.unwrap();
        }
        let secret = "CREATE TABLE public.secret AS SELECT 'crown jewels'::text AS it";
        session.execute(&Statement::new(secret)).await.unwrap();
        let create = Statement::new("GRANT CREATE ON SCHEMA public TO ").ident(&mole);
        session.execute(&create).await.unwrap();
        let create = Statement::new("GRANT CREATE ON DATABASE ").ident(database.name());
        session.execute(&create.sql(" TO ").ident(&mole)).await.unwrap();
        let (server, _) = session.inspect(&[]).await.unwrap();
        if let Some(join) = handover::join(&mole, &server) {
            session.execute(&join).await.unwrap();
        }
        Self {
            database,
            admin,
            mole,
            caller,
            session,
        }
    }

    async fn hand_over(&mut self) -> (Keeper, Disarmed) {
        let (server, _) = self.session.inspect(&[]).await.unwrap();
        let oid = Query::new("SELECT oid FROM pg_database WHERE datname = current_database()");
        let oid: u32 = self.session.query(&oid).await.unwrap()[0].get(0);
        let keeper = Keeper::of(oid, "ns");
        let queries = [handover::armed(&self.mole), keeper.query()];
        let (transaction, rows) = self.session.begin(&Begin::default(), &queries).await.unwrap();
        let disarmed = Disarmed::of_rows(&rows[0]).unwrap();
        assert_eq!(Keeper::facts(&rows[1]).unwrap(), []);
        let mut statements = keeper.make("a mark");
        statements.extend(handover::join(keeper.name(), &server));
        statements.extend(handover::disarm(&self.mole));
        statements.extend(handover::keep(&self.mole, &keeper, &server));
        statements.extend(handover::disarm(keeper.name()));
        statements.push(Statement::new("DROP OWNED BY ").ident(&self.mole));
        statements.push(Statement::new("DROP ROLE ").ident(&self.mole));
        transaction.commit(&statements).await.unwrap();
        (keeper, disarmed)
    }

    /// The caller's result of a query; `None` if it is refused.
    async fn caller_gets(&self, sql: &str) -> Option<String> {
        let client = self.database.connect(&self.caller, "p").await.unwrap();
        let rows = client.query(sql, &[]).await.ok()?;
        rows.first().and_then(|row| row.get(0))
    }
}

async fn on_every_server(test: impl AsyncFn(Scene)) {
    for version in versions() {
        for superuser in [true, false] {
            test(Scene::new(version, superuser).await).await;
        }
    }
}

/// F2: the function, the views and the rule of a dropped role read nothing that their caller could not.
#[tokio::test]
async fn nothing_that_was_left_behind_runs_as_somebody_else() {
    on_every_server(async |mut scene| {
        let own = scene.database.connect(&scene.mole, "p").await.unwrap();
        own.batch_execute(&format!(
            "CREATE SCHEMA nest; GRANT USAGE ON SCHEMA nest TO PUBLIC; \
             CREATE FUNCTION nest.\"pw'n; --\"(text) RETURNS text LANGUAGE sql SECURITY DEFINER \
               AS 'SELECT it FROM public.secret'; \
             GRANT EXECUTE ON FUNCTION nest.\"pw'n; --\"(text) TO {caller} WITH GRANT OPTION; \
             CREATE PROCEDURE nest.run(inout x int) LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN x := 1; END'; \
             CREATE FUNCTION nest.plain() RETURNS int LANGUAGE sql AS 'SELECT 1'; \
             CREATE TYPE nest.mood AS ENUM ('well'); \
             CREATE VIEW nest.window AS SELECT it FROM public.secret; GRANT ALL ON nest.window TO PUBLIC; \
             CREATE VIEW nest.trap AS SELECT 'x'::text AS it; GRANT ALL ON nest.trap TO PUBLIC; \
             CREATE RULE r AS ON INSERT TO nest.trap DO INSTEAD DELETE FROM public.secret; \
             CREATE TABLE nest.\"ta ble\" (it text); GRANT ALL ON nest.\"ta ble\" TO PUBLIC; \
             CREATE RULE r AS ON INSERT TO nest.\"ta ble\" DO ALSO DELETE FROM public.secret; \
             CREATE MATERIALIZED VIEW nest.picture AS SELECT 1 AS one; GRANT ALL ON nest.picture TO PUBLIC",
            caller = scene.caller
        ))
        .await
        .unwrap();
        drop(own);
        let (keeper, disarmed) = scene.hand_over().await;
        assert_eq!(disarmed.count, 5, "{disarmed:?}");
        assert!(disarmed.some.iter().any(|what| what == "view nest.\"window\""), "{disarmed:?}");
        let owner = "SELECT DISTINCT pg_get_userbyid(o)::text FROM ( \
             SELECT proowner FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace WHERE nspname = 'nest' \
             UNION ALL SELECT relowner FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = 'nest' \
             UNION ALL SELECT nspowner FROM pg_namespace WHERE nspname = 'nest') x (o)";
        assert_eq!(scene.database.scalar(owner).await.as_deref(), Some(keeper.name()), "one owner");
        for stolen in [
            "SELECT nest.\"pw'n; --\"('x')",
            "SELECT it FROM nest.window",
            "INSERT INTO nest.trap VALUES ('x') RETURNING it",
            "SELECT it FROM public.secret",
        ] {
            assert_eq!(scene.caller_gets(stolen).await, None, "{stolen}");
        }
        let client = scene.database.connect(&scene.caller, "p").await.unwrap();
        client.batch_execute("INSERT INTO nest.\"ta ble\" VALUES ('kept')").await.unwrap();
        assert_eq!(scene.database.scalar("SELECT count(*) FROM public.secret").await.as_deref(), Some("1"));
        assert_eq!(scene.caller_gets("SELECT nest.plain()::text").await.as_deref(), Some("1"), "others work on");
        let powerless = format!(
            "SELECT count(*) FROM pg_roles r WHERE rolname = '{}' AND NOT rolcanlogin AND NOT EXISTS \
             (SELECT FROM pg_auth_members m WHERE m.member = r.oid)",
            keeper.name()
        );
        assert_eq!(scene.database.scalar(&powerless).await.as_deref(), Some("1"), "{}", scene.admin);
    })
    .await;
}

/// A dangerous object that already belongs to the keeper, because a session of a member created it in the meantime, is
/// disarmed with the next handover.
#[tokio::test]
async fn what_reaches_the_keeper_is_disarmed_there() {
    let mut scene = Scene::new(stanchion_testkit::postgres::any(), true).await;
    let (keeper, _) = scene.hand_over().await;
    scene
        .database
        .execute(&format!(
            "CREATE FUNCTION public.late() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'; \
             ALTER FUNCTION public.late() OWNER TO {}",
            keeper.name()
        ))
        .await;
    let batch = stanchion_postgres::Batch::new(handover::disarm(keeper.name()));
    scene.session.apply(&batch).await.unwrap();
    let definer = "SELECT prosecdef::text FROM pg_proc WHERE proname = 'late'";
    assert_eq!(scene.database.scalar(definer).await.as_deref(), Some("false"));
}
