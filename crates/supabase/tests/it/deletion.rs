//! Deletion of a project: its objects in the database stay or are removed, and those of others always stay.

use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::Api;
use kube::ResourceExt as _;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use stanchion_api::SupabaseProject;
use stanchion_supabase::database::{self, Login};
use stanchion_testkit::postgres::{Version, versions};

use crate::database_dump;
use crate::database_env::{self, DatabaseEnv, KEY, full_request, pools, request_of, target};
use crate::test_env::TestEnv;

async fn remove(db_env: &DatabaseEnv) -> Vec<String> {
    database::remove(&pools(), &db_env.target(), "default/shop", &KEY)
        .await
        .unwrap()
}

/// The database as text, without redundant privileges: explicit ones that equal the defaults, and those of the
/// administrator on its own objects.
async fn described(db_env: &DatabaseEnv) -> String {
    let text = database_dump::without_record(db_env).await;
    let parts = text
        .split("# ")
        .filter(|part| !part.starts_with("databases") && !part.starts_with("parameters"));
    let text: String = parts.collect();
    let lines = text
        .lines()
        .filter(|line| !line.starts_with("postgres in public"));
    let lines: Vec<&str> = lines.collect();
    lines.join("\n").replace(" postgres=U/pg_database_owner", "")
}

#[tokio::test]
async fn nothing_is_left_of_what_was_made() {
    for version in [Version::V15, Version::V18] {
        let db_env = DatabaseEnv::new(version).await;
        let before = described(&db_env).await;
        db_env.initialise(&full_request()).await.unwrap();
        // What the services create belongs to them, and is removed.
        let auth = db_env.connect(Login::Auth).await;
        auth.batch_execute("CREATE TABLE users (id uuid PRIMARY KEY)")
            .await
            .unwrap();
        let storage = db_env.connect(Login::Storage).await;
        storage
            .batch_execute(
                "CREATE TABLE objects (owner uuid); ALTER TABLE objects ENABLE ROW LEVEL SECURITY; \
                            CREATE POLICY own ON objects TO anon USING (owner = auth.uid())",
            )
            .await
            .unwrap();
        assert_eq!(remove(&db_env).await, [""; 0], "{version}");
        assert_eq!(described(&db_env).await, before, "{version}");
        assert_eq!(
            db_env
                .scalar("SELECT count(*) FROM pg_database WHERE datname = '_supabase'")
                .await,
            "0"
        );
        // A second removal does nothing, and a new project starts from the beginning.
        assert_eq!(remove(&db_env).await, [""; 0]);
        db_env.initialise(&full_request()).await.unwrap();
    }
}

/// Killed between CREATE DATABASE and its record: the oid of the database proves that it is the project's.
#[tokio::test]
async fn an_internal_database_that_was_not_written_down_goes() {
    for version in [Version::V15, Version::V18] {
        let db_env = DatabaseEnv::new(version).await;
        db_env.initialise(&full_request()).await.unwrap();
        db_env
            .execute("DELETE FROM _stanchion.made WHERE kind = 'database'")
            .await;
        assert_eq!(remove(&db_env).await, [""; 0], "{version}");
        let left = "SELECT datname FROM pg_database WHERE datname = '_supabase' UNION ALL \
                    SELECT rolname FROM pg_roles WHERE rolcanlogin AND rolname <> 'postgres'";
        assert_eq!(db_env.column(left).await, [""; 0], "{version}");
        // A database that somebody else has created since under that name is not taken for it.
        db_env
            .server
            .execute("postgres", "CREATE DATABASE _supabase")
            .await;
        db_env.initialise(&full_request()).await.unwrap();
        db_env
            .execute("DELETE FROM _stanchion.made WHERE kind = 'database'")
            .await;
        remove(&db_env).await;
        let there = "SELECT count(*) FROM pg_database WHERE datname = '_supabase'";
        assert_eq!(db_env.scalar(there).await, "1", "{version}");
    }
}

#[tokio::test]
async fn what_others_use_stays_and_is_named() {
    for version in [Version::V15, Version::V18] {
        let db_env = DatabaseEnv::new(version).await;
        db_env.initialise(&full_request()).await.unwrap();
        let auth = db_env.connect(Login::Auth).await;
        auth.batch_execute("CREATE TABLE users (id uuid PRIMARY KEY)")
            .await
            .unwrap();
        db_env.execute(
            "CREATE TABLE public.profiles (id uuid DEFAULT extensions.uuid_generate_v4() REFERENCES auth.users, note text); \
             INSERT INTO auth.users VALUES ('00000000-0000-0000-0000-000000000001'); \
             INSERT INTO public.profiles VALUES ('00000000-0000-0000-0000-000000000001', 'kept'); \
             CREATE POLICY own ON public.profiles TO anon USING (true); \
             CREATE TABLE storage.of_mine (id int)",
        )
        .await;
        let studio = db_env.connect(Login::Meta).await;
        studio
            .batch_execute("CREATE TABLE public.drawn (id int); INSERT INTO public.drawn VALUES (1)")
            .await
            .unwrap();
        let left = remove(&db_env).await;
        for (what, why) in [
            ("schema auth", "constraint profiles_id_fkey"),
            ("schema storage", "of_mine"),
            ("extension uuid-ossp", "default value"),
            ("role anon", "policy own"),
        ] {
            let said = left.iter().find(|left| left.starts_with(what));
            assert!(
                said.is_some_and(|said| said.contains(why)),
                "{version} {what}: {left:#?}"
            );
        }
        assert_eq!(
            db_env
                .scalar("SELECT note FROM public.profiles JOIN auth.users USING (id)")
                .await,
            "kept"
        );
        assert_eq!(db_env.scalar("SELECT count(*) FROM pg_policy").await, "1");
        assert_eq!(db_env.scalar("SELECT id FROM public.drawn").await, "1");
        let owner = db_env
            .scalar("SELECT tableowner FROM pg_tables WHERE tablename = 'drawn'")
            .await;
        assert!(owner.starts_with("stanchion_kept_"), "{owner}");
        // The logins are gone, and so is the record.
        let logins = "SELECT rolname FROM pg_roles WHERE rolcanlogin AND rolname <> 'postgres'";
        assert_eq!(db_env.column(logins).await, [""; 0]);
        assert_eq!(
            db_env
                .scalar("SELECT count(*) FROM pg_namespace WHERE nspname = '_stanchion'")
                .await,
            "0"
        );
    }
}

#[tokio::test]
async fn what_was_there_before_is_not_taken_away() {
    let db_env = DatabaseEnv::new(Version::V18).await;
    db_env
        .execute("CREATE SCHEMA auth; CREATE ROLE anon; CREATE ROLE authenticator LOGIN")
        .await;
    db_env
        .server
        .execute("postgres", "CREATE DATABASE _supabase")
        .await;
    db_env.initialise(&full_request()).await.unwrap();
    // In a database that existed before, two of them own something.
    let left = remove(&db_env).await;
    let roles = ["role supabase_analytics_admin: ", "role supabase_pooler_admin: "];
    assert_eq!(left.len(), roles.len(), "{left:#?}");
    assert!(
        left.iter().zip(roles).all(|(left, role)| left.starts_with(role)),
        "{left:#?}"
    );
    let logins = "SELECT count(*) FROM pg_roles WHERE rolcanlogin AND rolname LIKE 'supabase%'";
    assert_eq!(db_env.scalar(logins).await, "0");
    let there = "SELECT nspname FROM pg_namespace WHERE nspname IN ('auth', 'storage') UNION ALL \
                 SELECT rolname FROM pg_roles WHERE rolname IN ('anon', 'authenticator', 'service_role') UNION ALL \
                 SELECT datname FROM pg_database WHERE datname = '_supabase' ORDER BY 1";
    assert_eq!(
        db_env.column(there).await,
        ["_supabase", "anon", "auth", "authenticator"]
    );
}

#[tokio::test]
async fn another_project_keeps_working() {
    let db_env = DatabaseEnv::new(Version::V15).await;
    db_env.initialise(&full_request()).await.unwrap();
    db_env.server.execute("postgres", "CREATE DATABASE other").await;
    let other = target(&db_env.server.url("other"));
    database_env::initialise(&pools(), &other, &request_of("default/other"))
        .await
        .unwrap();
    let left = remove(&db_env).await;
    assert!(left.iter().all(|left| left.starts_with("role ")), "{left:#?}");
    assert!(left.iter().any(|left| left.starts_with("role anon")), "{left:#?}");
    let again = database_env::initialise(&pools(), &other, &request_of("default/other"))
        .await
        .unwrap();
    assert_eq!(again.ran, [""; 0]);
    // Somebody else's database is never changed.
    assert_eq!(
        database::remove(&pools(), &other, "default/shop", &KEY)
            .await
            .unwrap(),
        [""; 0]
    );
    assert_eq!(
        db_env
            .server
            .scalar("other", "SELECT count(*) FROM _stanchion.installation")
            .await
            .as_deref(),
        Some("1")
    );
}

/// An administrator without superuser removes what it created.
#[tokio::test]
async fn a_plain_administrator_can_do_it() {
    for version in [Version::V15, Version::V18] {
        let db_env = DatabaseEnv::new(version).await;
        db_env.execute(
            "CREATE ROLE boss LOGIN PASSWORD 'boss' CREATEROLE CREATEDB; ALTER DATABASE shop OWNER TO boss",
        )
        .await;
        let boss = target(&db_env.server.url_of("boss", "boss", "shop"));
        database_env::initialise(&pools(), &boss, &full_request())
            .await
            .unwrap();
        let left = database::remove(&pools(), &boss, "default/shop", &KEY)
            .await
            .unwrap();
        assert_eq!(left, [""; 0], "{version}");
        let roles = "SELECT rolname FROM pg_roles WHERE rolname !~ '^pg_' ORDER BY 1";
        assert_eq!(db_env.column(roles).await, ["boss", "postgres"], "{version}");
    }
}

/// Objects of a login that run with their owner's privileges never get a more powerful owner.
#[tokio::test]
async fn what_people_made_in_studio_has_no_power_after_it() {
    for version in versions() {
        let db_env = DatabaseEnv::new(version).await;
        db_env
            .execute("CREATE ROLE caller LOGIN PASSWORD 'x'; GRANT CONNECT ON DATABASE shop TO caller")
            .await;
        db_env.initialise(&full_request()).await.unwrap();
        let studio = db_env.connect(Login::Meta).await;
        studio
            .batch_execute(
                "CREATE FUNCTION public.grab() RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN \
                   ALTER ROLE caller SUPERUSER; RETURN current_user; END $$; \
                 GRANT EXECUTE ON FUNCTION public.grab() TO PUBLIC; \
                 CREATE TABLE public.t (id int); \
                 CREATE VIEW public.peek AS SELECT public.grab() AS x; GRANT SELECT ON public.peek TO PUBLIC",
            )
            .await
            .unwrap();
        let left = remove(&db_env).await;
        let reported = left
            .iter()
            .any(|left| left.contains("grab") && left.contains("disarmed"));
        assert!(reported, "{version}: {left:#?}");
        db_env.execute("GRANT USAGE ON SCHEMA public TO PUBLIC").await;
        let caller = db_env.server.connect("caller", "x", "shop").await.unwrap();
        for attempt in ["SELECT public.grab()", "SELECT * FROM public.peek"] {
            caller.batch_execute(attempt).await.unwrap_err();
        }
        let is = "SELECT rolsuper FROM pg_roles WHERE rolname = 'caller'";
        assert_eq!(db_env.scalar(is).await, "f", "{version}");
        let owners = "SELECT DISTINCT pg_get_userbyid(proowner) ~ '^stanchion_kept_' FROM pg_proc WHERE proname = 'grab'";
        assert_eq!(db_env.column(owners).await, ["t"]);
        let powers =
            "SELECT count(*) FROM pg_roles WHERE rolname ~ '^stanchion_kept_' AND (rolcanlogin OR rolsuper)";
        assert_eq!(db_env.scalar(powers).await, "0");
    }
}

fn policy(policy: &str) -> Value {
    json!({ "deletionPolicy": policy })
}

async fn go(env: &TestEnv) {
    env.delete::<SupabaseProject>("shop").await;
    let projects = env.api::<SupabaseProject>();
    Box::pin(env.wait().gone(&projects, "shop")).await;
}

const SCHEMAS: &str = "SELECT count(*) FROM pg_namespace WHERE nspname IN ('auth', 'storage', '_stanchion')";

#[tokio::test]
async fn the_policy_decides_and_holds_nothing_up_unless_it_must() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.project("shop", json!({})).await;
    let project = env.running("shop").await;
    assert_eq!(project.finalizers(), [""; 0]);
    go(&env).await;
    assert_eq!(env.db_env.scalar(SCHEMAS).await, "3");

    env.project("shop", policy("Delete")).await;
    let project = env.running("shop").await;
    assert_eq!(project.finalizers(), ["supabase.strrl.dev/finalizer"]);
    go(&env).await;
    assert_eq!(env.db_env.scalar(SCHEMAS).await, "0");
}

/// Only an object that was valid once has the finalizer: what it created goes, whatever its spec says by now.
#[tokio::test]
async fn a_project_that_became_invalid_is_cleaned_up() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.project("shop", policy("Delete")).await;
    env.running("shop").await;
    let invalid = json!({ "spec": { "kong": { "image": "kong" } } });
    env.patch::<SupabaseProject>("shop", invalid).await;
    go(&env).await;
    assert_eq!(env.db_env.scalar(SCHEMAS).await, "0");
}

/// The deletion waits for the Secret for a while, and says so; with the Secret it goes on.
#[tokio::test]
async fn a_deletion_says_that_it_lacks_the_administrators_secret() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.project("shop", policy("Delete")).await;
    env.running("shop").await;
    env.delete::<Secret>("db").await;
    env.delete::<SupabaseProject>("shop").await;
    let reported = async || {
        let events = env.events("shop").await;
        events.iter().any(|[_, reason, note]| {
            reason == "CleanupIncomplete" && note.contains("database secret 'db' not found")
        })
    };
    env.wait().eventually("an event", reported).await;
    env.secret("db", env.database_secret()).await;
    let projects = env.api::<SupabaseProject>();
    Box::pin(env.wait().gone(&projects, "shop")).await;
    assert_eq!(env.db_env.scalar(SCHEMAS).await, "0");
}

#[tokio::test]
async fn a_namespace_ends_although_the_secrets_went_first() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.project("shop", policy("Delete")).await;
    env.running("shop").await;
    env.delete::<Secret>("db").await;
    let namespaces: Api<Namespace> = Api::all(env.client.clone());
    namespaces
        .delete(&env.namespace, &DeleteParams::default())
        .await
        .unwrap();
    let projects = env.api::<SupabaseProject>();
    Box::pin(env.wait().gone(&projects, "shop")).await;
    env.wait().gone(&namespaces, &env.namespace).await;
    assert_eq!(env.db_env.scalar(SCHEMAS).await, "3");
}

#[tokio::test]
async fn objects_left_in_the_database_are_reported() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.project("shop", policy("Delete")).await;
    env.running("shop").await;
    env.db_env.execute("CREATE TABLE storage.of_mine (id int)").await;
    go(&env).await;
    let events: Api<k8s_openapi::api::events::v1::Event> = env.api();
    let reported = async || {
        let events = events.list(&kube::api::ListParams::default()).await.unwrap();
        let said = events.iter().filter_map(|event| event.note.clone());
        said.filter(|note| note.contains("schema storage")).count() == 1
    };
    env.wait().eventually("an event", reported).await;
    assert_eq!(
        env.db_env.scalar("SELECT count(*) FROM storage.of_mine").await,
        "0"
    );
}
