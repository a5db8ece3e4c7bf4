//! postgres-meta itself, on a database that the operator prepared.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use http::{Method, StatusCode};
use serde_json::{Value, json};
use stanchion_local::cache;
use stanchion_local::error::{Attempt as _, Error, checked};
use stanchion_supabase::database::Login;
use stanchion_testkit::certificates::Authority;
use stanchion_testkit::postgres::{Postgres, Tls, Version};
use stanchion_testkit::{port, report};

use crate::database_env::{DatabaseEnv, password, request};
use crate::service_process::Service;
use crate::test_env::{Pod, TestEnv};

/// The program, and everything that it needs, by version and hash.
const PACKAGE: &str = include_str!("meta/package.json");
const LOCK: &str = include_str!("meta/package-lock.json");

/// The server's program, downloaded once; `None` without npm.
pub(crate) fn program() -> Option<PathBuf> {
    if Command::new("npm").arg("--version").output().is_err() {
        report::skipped(
            "postgres-meta on the initialised database",
            "there is no npm to download it with",
        );
        return None;
    }
    let installed = cache::entry("postgres-meta-0.99.0", install).unwrap();
    Some(installed.join("node_modules/@supabase/postgres-meta/dist/server/server.js"))
}

fn install(place: &Path) -> Result<(), Error> {
    for (name, text) in [("package.json", PACKAGE), ("package-lock.json", LOCK)] {
        fs::write(place.join(name), text).attempting(|| format!("write {name}"))?;
    }
    // Nothing of a package runs while it is installed.
    let output = Command::new("npm")
        .args([
            "ci",
            "--silent",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "--prefix",
        ])
        .arg(place)
        .output()
        .attempting(|| "run npm".to_owned())?;
    checked("npm ci", &output).map(drop)
}

fn environment(db_env: &DatabaseEnv, port: u16) -> BTreeMap<String, String> {
    [
        ("PG_META_PORT", port.to_string()),
        ("PG_META_HOST", "127.0.0.1".to_owned()),
        ("PG_META_DB_HOST", "127.0.0.1".to_owned()),
        ("PG_META_DB_PORT", db_env.server.port().to_string()),
        ("PG_META_DB_NAME", db_env.database.clone()),
        ("PG_META_DB_USER", Login::Meta.role().to_owned()),
        ("PG_META_DB_PASSWORD", password(Login::Meta)),
        ("PG_META_DB_SSL_MODE", "disable".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array()
        .unwrap()
        .iter()
        .map(|item| item["name"].as_str().unwrap())
        .collect()
}

/// A free port followed by another free one: meta uses the next one, too, for its administration.
fn free_pair() -> u16 {
    std::iter::repeat_with(port::free)
        .find(|port| std::net::TcpListener::bind(("127.0.0.1", port + 1)).is_ok())
        .unwrap()
}

#[tokio::test]
async fn meta_lists_what_is_there_and_changes_what_studio_changes() {
    let Some(program) = tokio::task::spawn_blocking(program).await.unwrap() else {
        return;
    };
    let db_env = DatabaseEnv::new(Version::V18).await;
    db_env.initialise(&request()).await.unwrap();
    let port = free_pair();
    let program = program.display().to_string();
    let meta = Service::start(
        Path::new("node"),
        &[&program],
        &environment(&db_env, port),
        port,
        "/health",
    )
    .await;

    let (status, schemas) = meta.send(Method::GET, "/schemas", None, None).await;
    assert_eq!(status, StatusCode::OK, "{schemas}");
    for schema in [
        "auth",
        "extensions",
        "graphql_public",
        "public",
        "realtime",
        "storage",
    ] {
        assert!(
            names(&schemas).contains(&schema),
            "{schema} is not among {:?}",
            names(&schemas)
        );
    }
    let (status, roles) = meta.send(Method::GET, "/roles", None, None).await;
    assert_eq!(status, StatusCode::OK, "{roles}");
    assert!(names(&roles).contains(&"service_role"));

    // A table that is created in Studio is available through the API, and Realtime can follow it.
    for query in [
        "CREATE TABLE public.todo (id int PRIMARY KEY); INSERT INTO public.todo VALUES (1)",
        "ALTER PUBLICATION supabase_realtime ADD TABLE public.todo",
        "SET ROLE anon; SELECT * FROM public.todo",
    ] {
        let query = json!({"query": query});
        let (status, answer) = meta.send(Method::POST, "/query", None, Some(&query)).await;
        assert_eq!(status, StatusCode::OK, "{query}: {answer}");
    }
    let rest = db_env.connect(Login::Rest).await;
    rest.batch_execute("SET ROLE anon; SELECT FROM public.todo")
        .await
        .unwrap();
    let published = "SELECT tablename FROM pg_publication_tables WHERE pubname = 'supabase_realtime'";
    assert_eq!(db_env.column(published).await, ["todo"]);
}

/// With exactly the environment of its Deployment, except for its listen address.
#[tokio::test]
async fn meta_lists_the_schemas_as_it_is_deployed() {
    let Some(program) = tokio::task::spawn_blocking(program).await.unwrap() else {
        return;
    };
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.project("shop", json!({})).await;
    env.running("shop").await;
    let pod = env.pod("shop-meta").await;
    let (program, port) = (program.display().to_string(), free_pair());
    let here = [("PG_META_HOST", "127.0.0.1"), ("PG_META_PORT", &port.to_string())];
    let meta = Service::of(Path::new("node"), &[&program], &pod, &here, port).await;
    let (status, schemas) = meta.send(Method::GET, "/schemas", None, None).await;
    assert_eq!(status, StatusCode::OK, "{schemas}");
    for schema in ["auth", "extensions", "public", "realtime", "storage"] {
        assert!(
            names(&schemas).contains(&schema),
            "{schema}: {:?}",
            names(&schemas)
        );
    }
    let query = json!({"query": "SELECT current_user AS name"});
    let (status, who) = meta.send(Method::POST, "/query", None, Some(&query)).await;
    assert_eq!(
        (status, who),
        (StatusCode::OK, json!([{"name": Login::Meta.role()}]))
    );
}

/// The URL as Studio composes and encrypts it for meta.
fn studios_url(program: &str, studio: &Pod) -> String {
    let value = |name: &str| studio.value(name);
    let url = format!(
        "postgresql://{}:{}@{}:{}/{}",
        value("POSTGRES_USER_READ_WRITE"),
        value("POSTGRES_PASSWORD"),
        value("POSTGRES_HOST"),
        value("POSTGRES_PORT"),
        value("POSTGRES_DB"),
    );
    let script = "const [url, key] = process.argv.slice(1); \
                  process.stdout.write(require('crypto-js/aes').encrypt(url, key).toString())";
    let output = Command::new("node")
        .args(["-e", script, &url, value("PG_META_CRYPTO_KEY")])
        .current_dir(Path::new(program).parent().unwrap())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A server that refuses connections without TLS: meta for itself, and for Studio with Studio's URL.
#[tokio::test]
async fn studio_reaches_a_server_that_insists_on_encryption() {
    let Some(program) = tokio::task::spawn_blocking(program).await.unwrap() else {
        return;
    };
    let server = Postgres::builder(Version::V18).setting("wal_level", "logical");
    let env = TestEnv::on(DatabaseEnv::of(server.tls(Tls::default()).start().await, "shop").await).await;
    let _operator = env.operator().await;
    env.project("shop", json!({ "database": { "sslMode": "require" } }))
        .await;
    env.running("shop").await;
    let (pod, studio) = (env.pod("shop-meta").await, env.pod("shop-studio").await);
    let (program, port) = (program.display().to_string(), free_pair());
    let here = [("PG_META_HOST", "127.0.0.1"), ("PG_META_PORT", &port.to_string())];
    let meta = Service::of(Path::new("node"), &[&program], &pod, &here, port).await;
    let encrypted = json!({"query": "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"});
    let url = studios_url(&program, &studio);
    for header in [None, Some(("x-connection-encrypted", url))] {
        let answer = meta
            .send_with(Method::POST, "/query", header, Some(&encrypted))
            .await;
        assert_eq!(answer, (StatusCode::OK, json!([{"ssl": true}])));
    }
}

/// Meta checks the server's name and certificate for itself and with Studio's URL, which names no authority: only the
/// authority in meta's own environment decides.
#[tokio::test]
async fn studio_reaches_only_the_server_that_the_authority_vouches_for() {
    let Some(program) = tokio::task::spawn_blocking(program).await.unwrap() else {
        return;
    };
    let server = Postgres::builder(Version::V18).setting("wal_level", "logical");
    let env = TestEnv::on(DatabaseEnv::of(server.tls(Tls::default()).start().await, "shop").await).await;
    let authority = env.db_env.server.authority().unwrap().pem().to_owned();
    env.secret("ca", json!({ "ca.crt": authority })).await;
    let _operator = env.operator().await;
    let database = json!({ "sslMode": "verify-full", "caSecretRef": { "name": "ca" } });
    env.project("shop", json!({ "database": database })).await;
    env.running("shop").await;
    let (pod, studio) = (env.pod("shop-meta").await, env.pod("shop-studio").await);
    assert!(studio.value("POSTGRES_DB").ends_with("?sslmode=verify-full"));
    assert_eq!(pod.value("PG_META_DB_SSL_ROOT_CERT"), authority);
    let program = program.display().to_string();
    let encrypted = json!({"query": "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"});
    for (ca, is_right) in [(authority, true), (Authority::new().pem().to_owned(), false)] {
        let port = free_pair();
        let here = [
            ("PG_META_HOST", "127.0.0.1"),
            ("PG_META_PORT", &port.to_string()),
            ("PG_META_DB_SSL_ROOT_CERT", &ca),
        ];
        let meta = Service::of(Path::new("node"), &[&program], &pod, &here, port).await;
        for header in [
            None,
            Some(("x-connection-encrypted", studios_url(&program, &studio))),
        ] {
            let with = header.as_ref().map(|(name, _)| *name);
            let (status, answer) = meta
                .send_with(Method::POST, "/query", header, Some(&encrypted))
                .await;
            let is_encrypted = (status, &answer) == (StatusCode::OK, &json!([{"ssl": true}]));
            assert_eq!(is_encrypted, is_right, "{with:?}: {status} {answer}");
            assert_eq!(status.is_success(), is_right, "{with:?}: {status} {answer}");
        }
    }
}
