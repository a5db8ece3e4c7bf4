//! Auth itself, on a database that the operator prepared: it migrates its own schema as its own role, and users sign
//! up.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use http::{Method, StatusCode};
use serde_json::json;
use stanchion_supabase::database::Login;
use stanchion_testkit::postgres::{Version, extremes};
use stanchion_testkit::{port, report};

use crate::database_env::{DatabaseEnv, request};
use crate::jwt;
use crate::service_process::Service;
use crate::test_env::TestEnv;

/// The path of the program. It is in no package registry, so it must be built from its source.
const VARIABLE: &str = "STANCHION_AUTH_BIN";

/// The program, if the variable is set.
pub(crate) fn program() -> Option<PathBuf> {
    let program = std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
    if program.is_none() {
        report::skipped(
            "Auth on the initialised database",
            &format!("{VARIABLE} names no program"),
        );
    }
    program.map(PathBuf::from)
}

fn environment(url: &str, port: u16) -> BTreeMap<String, String> {
    [
        ("GOTRUE_DB_DRIVER", "postgres"),
        ("GOTRUE_DB_DATABASE_URL", &format!("{url}?sslmode=disable")),
        ("GOTRUE_API_HOST", "127.0.0.1"),
        ("GOTRUE_API_PORT", &port.to_string()),
        ("API_EXTERNAL_URL", "http://localhost:8000/auth/v1"),
        ("GOTRUE_SITE_URL", "http://localhost:3000"),
        ("GOTRUE_JWT_SECRET", jwt::SECRET),
        ("GOTRUE_JWT_AUD", "authenticated"),
        ("GOTRUE_JWT_DEFAULT_GROUP_NAME", "authenticated"),
        ("GOTRUE_JWT_ADMIN_ROLES", "service_role"),
        ("GOTRUE_MAILER_AUTOCONFIRM", "true"),
        ("GOTRUE_EXTERNAL_EMAIL_ENABLED", "true"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

async fn start(program: &Path, db_env: &DatabaseEnv) -> Service {
    start_as(program, &db_env.url(Login::Auth)).await
}

async fn start_as(program: &Path, url: &str) -> Service {
    let port = port::free();
    Service::start(program, &[], &environment(url, port), port, "/health").await
}

#[tokio::test]
async fn auth_migrates_in_its_own_schema_and_signs_a_user_up() {
    let Some(program) = program() else { return };
    for version in extremes() {
        let db_env = DatabaseEnv::new(version).await;
        db_env.initialise(&request()).await.unwrap();
        let auth = start(&program, &db_env).await;
        let user = json!({"email": "ann@example.com", "password": "correct horse"});
        let (status, answer) = auth.send(Method::POST, "/signup", None, Some(&user)).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        let (status, answer) = auth
            .send(Method::POST, "/token?grant_type=password", None, Some(&user))
            .await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        let token = answer["access_token"].as_str().unwrap();
        let claims = jwt::verify(token).unwrap();
        assert_eq!(
            (&claims["role"], &claims["aud"]),
            (&json!("authenticated"), &json!("authenticated"))
        );
        // The service key has access to the administration, the anonymous key does not.
        for (role, expected) in [("service_role", StatusCode::OK), ("anon", StatusCode::FORBIDDEN)] {
            let (status, answer) = auth
                .send(Method::GET, "/admin/users", Some(&jwt::sign(role)), None)
                .await;
            assert_eq!(status, expected, "{role}: {answer}");
        }
        let (status, answer) = auth.send(Method::GET, "/user", Some(token), None).await;
        assert_eq!(
            (status, answer["email"].as_str()),
            (StatusCode::OK, Some("ann@example.com"))
        );

        // Everything is inside of its schema, and it owns everything there.
        let outside = "SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace \
                       UNION ALL SELECT t.typname FROM pg_type t WHERE t.typnamespace = 'public'::regnamespace";
        assert_eq!(db_env.column(outside).await, Vec::<String>::new());
        let foreign = "SELECT c.oid::regclass::text FROM pg_class c WHERE c.relnamespace = 'auth'::regnamespace \
                         AND pg_get_userbyid(c.relowner) <> 'supabase_auth_admin' \
                       UNION ALL SELECT p.oid::regprocedure::text FROM pg_proc p \
                       WHERE p.pronamespace = 'auth'::regnamespace AND pg_get_userbyid(p.proowner) <> 'supabase_auth_admin'";
        assert_eq!(db_env.column(foreign).await, Vec::<String>::new());
        let history = db_env.scalar("SELECT count(*) FROM auth.schema_migrations").await;
        assert!(history.parse::<u32>().unwrap() > 50, "{history}");

        // Users of the API see themselves but not the table.
        let rest = db_env.connect(Login::Rest).await;
        let id = db_env.scalar("SELECT id FROM auth.users").await;
        let claims = json!({"sub": id, "role": "authenticated", "email": "ann@example.com"});
        let asked = format!(
            "BEGIN; SET LOCAL ROLE authenticated; SET LOCAL request.jwt.claims = '{claims}'; \
             CREATE TEMP TABLE seen ON COMMIT DROP AS SELECT auth.uid() AS id, auth.role() AS role, auth.email() AS email"
        );
        rest.batch_execute(&asked).await.unwrap();
        let row = rest
            .query_one("SELECT id::text, role, email FROM seen", &[])
            .await
            .unwrap();
        assert_eq!(row.get::<_, String>(0), id);
        assert_eq!(row.get::<_, String>(1), "authenticated");
        let refused = rest.batch_execute("SELECT FROM auth.users").await.unwrap_err();
        assert_eq!(refused.code().unwrap().code(), "42501");
        drop(rest);

        // Its history of migrations persists: it starts again, after another check of the database.
        drop(auth);
        assert_eq!(
            db_env.initialise(&request()).await.unwrap().ran,
            Vec::<&str>::new()
        );
        let auth = start(&program, &db_env).await;
        let (status, answer) = auth
            .send(Method::POST, "/token?grant_type=password", None, Some(&user))
            .await;
        assert_eq!(status, StatusCode::OK, "{answer}");
    }
}

/// The state after STRRL's operator: Auth ran as the superuser, and its history of migrations is in public.
#[tokio::test]
async fn auth_goes_on_where_it_was_under_another_operator() {
    let Some(program) = program() else { return };
    let db_env = DatabaseEnv::new(Version::V15).await;
    db_env
        .execute(
            "CREATE SCHEMA auth; CREATE TYPE auth.factor_type AS ENUM ('totp', 'webauthn'); \
         CREATE TYPE auth.code_challenge_method AS ENUM ('s256', 'plain'); \
         CREATE ROLE supabase_auth_admin NOLOGIN CREATEROLE; \
         CREATE TABLE public.schema_migrations (version bigint PRIMARY KEY, inserted_at timestamp)",
        )
        .await;
    drop(start_as(&program, &db_env.server.url(&db_env.database)).await);
    let history = "SELECT count(*) FROM public.schema_migrations";
    let before = db_env.scalar(history).await;
    assert!(before.parse::<u32>().unwrap() > 50, "{before}");

    db_env.initialise(&request()).await.unwrap();
    let auth = start(&program, &db_env).await;
    let user = json!({"email": "ann@example.com", "password": "correct horse"});
    let (status, answer) = auth.send(Method::POST, "/signup", None, Some(&user)).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    assert_eq!(
        db_env.scalar("SELECT count(*) FROM auth.schema_migrations").await,
        before
    );
    assert_eq!(db_env.scalar(history).await, before, "it is not ours to remove");
}

/// With exactly the environment of its Deployment, except for its listen address.
#[tokio::test]
async fn auth_signs_users_up_as_it_is_deployed() {
    let Some(program) = program() else { return };
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.project("shop", json!({})).await;
    env.running("shop").await;
    let (pod, keys) = (env.pod("shop-auth").await, env.values("shop-jwt").await);
    let port = port::free();
    let here = [
        ("GOTRUE_API_HOST", "127.0.0.1"),
        ("GOTRUE_API_PORT", &port.to_string()),
    ];
    let auth = Service::of(&program, &[], &pod, &here, port).await;
    let user = json!({"email": "ann@example.com", "password": "correct horse"});
    let (status, answer) = auth.send(Method::POST, "/signup", None, Some(&user)).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    let token = answer["access_token"].as_str().unwrap();

    // The other services verify what Auth signs, with the keys that they have.
    for (component, variable) in [
        ("postgrest", "PGRST_JWT_SECRET"),
        ("storage", "JWT_JWKS"),
        ("realtime", "API_JWT_JWKS"),
    ] {
        let pod = env.pod(&format!("shop-{component}")).await;
        let claims = jwt::verify_by_set(pod.value(variable), token).unwrap();
        assert_eq!(claims["role"], "authenticated", "{component}");
        assert_eq!(claims["email"], "ann@example.com", "{component}");
    }
    let (status, answer) = auth.send(Method::GET, "/user", Some(token), None).await;
    assert_eq!(
        (status, answer["email"].as_str()),
        (StatusCode::OK, Some("ann@example.com"))
    );
    // Each key has its permissions, in the clients' form and in the form behind the gateway.
    for (key, expected) in [
        ("service-role-key", StatusCode::OK),
        ("service-role-key-asymmetric", StatusCode::OK),
        ("anon-key", StatusCode::FORBIDDEN),
        ("anon-key-asymmetric", StatusCode::FORBIDDEN),
    ] {
        let (status, answer) = auth
            .send(Method::GET, "/admin/users", Some(&keys[key]), None)
            .await;
        assert_eq!(status, expected, "{key}: {answer}");
    }
    let (status, settings) = auth
        .send(Method::GET, "/settings", Some(&keys["anon-key"]), None)
        .await;
    assert_eq!(status, StatusCode::OK, "{settings}");
    // It has migrated its own schema, as its own role.
    let owners = "SELECT DISTINCT pg_get_userbyid(relowner)::text FROM pg_class WHERE relnamespace = 'auth'::regnamespace";
    assert_eq!(env.db_env.column(owners).await, ["supabase_auth_admin"]);
    let outside = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace";
    assert_eq!(env.db_env.column(outside).await, Vec::<String>::new());
}
