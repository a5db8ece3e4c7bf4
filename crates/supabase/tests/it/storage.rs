//! Storage itself, on a database that the operator prepared, and a real S3.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use http::{Method, StatusCode};
use serde_json::json;
use stanchion_supabase::database::Login;
use stanchion_testkit::certificates::Authority;
use stanchion_testkit::postgres::{Postgres, Tls, Version, extremes};
use stanchion_testkit::scratch::Scratch;
use stanchion_testkit::{port, report, s3::S3};

use crate::database_env::{DatabaseEnv, request};
use crate::service_process::Service;
use crate::test_env::TestEnv;
use crate::{jwt, meta};

/// A shell command that starts it. It is in no package registry, and needs a newer Node.js than most machines have.
pub(crate) const VARIABLE: &str = "STANCHION_STORAGE_COMMAND";

fn environment(db_env: &DatabaseEnv, s3: &S3, port: u16) -> BTreeMap<String, String> {
    [
        ("SERVER_HOST", "127.0.0.1"),
        ("SERVER_PORT", &port.to_string()),
        ("SERVER_ADMIN_PORT", &port::free().to_string()),
        ("ANON_KEY", &jwt::sign("anon")),
        ("SERVICE_KEY", &jwt::sign("service_role")),
        ("AUTH_JWT_SECRET", jwt::SECRET),
        ("DATABASE_URL", &db_env.url(Login::Storage)),
        ("TENANT_ID", "stub"),
        ("UPLOAD_FILE_SIZE_LIMIT", "52428800"),
        ("STORAGE_BACKEND", "s3"),
        ("STORAGE_S3_BUCKET", s3.bucket()),
        ("STORAGE_S3_ENDPOINT", &s3.endpoint()),
        ("STORAGE_S3_FORCE_PATH_STYLE", "true"),
        ("STORAGE_S3_REGION", S3::REGION),
        ("AWS_ACCESS_KEY_ID", s3.access_key()),
        ("AWS_SECRET_ACCESS_KEY", s3.secret_key()),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

#[tokio::test]
async fn storage_migrates_in_its_own_schema_and_keeps_objects() {
    let Some(command) = std::env::var(VARIABLE).ok().filter(|command| !command.is_empty()) else {
        report::skipped(
            "Storage on the initialised database",
            &format!("{VARIABLE} names no command"),
        );
        return;
    };
    for version in extremes() {
        let (db_env, s3) = (DatabaseEnv::new(version).await, S3::start().await);
        db_env.initialise(&request()).await.unwrap();
        let port = port::free();
        let arguments = ["-c", command.as_str()];
        let environment = environment(&db_env, &s3, port);
        let storage = Service::start(Path::new("/bin/sh"), &arguments, &environment, port, "/status").await;
        let (anon, service) = (jwt::sign("anon"), jwt::sign("service_role"));

        let bucket = json!({"id": "avatars", "name": "avatars", "public": true});
        let (status, answer) = storage
            .send(Method::POST, "/bucket", Some(&service), Some(&bucket))
            .await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        let object = json!({"a": 1});
        let (status, answer) = storage
            .send(
                Method::POST,
                "/object/avatars/a.json",
                Some(&service),
                Some(&object),
            )
            .await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        let (status, answer) = storage
            .send(Method::GET, "/object/public/avatars/a.json", None, None)
            .await;
        assert_eq!((status, answer), (StatusCode::OK, object.clone()));
        // Without a policy, clients with the anonymous key see nothing and write nothing.
        let (status, answer) = storage.send(Method::GET, "/bucket", Some(&anon), None).await;
        assert_eq!((status, answer), (StatusCode::OK, json!([])));
        let (_, answer) = storage
            .send(Method::POST, "/object/avatars/b.json", Some(&anon), Some(&object))
            .await;
        assert_eq!(answer["statusCode"], "403", "{answer}");

        let foreign = "SELECT c.oid::regclass::text FROM pg_class c WHERE c.relnamespace = 'storage'::regnamespace \
                         AND pg_get_userbyid(c.relowner) <> 'supabase_storage_admin'";
        assert_eq!(db_env.column(foreign).await, Vec::<String>::new());
        let outside = "SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace";
        assert_eq!(db_env.column(outside).await, Vec::<String>::new());
    }
}

/// How node-postgres interprets Storage's URL: it verifies the server with the named authority, and with no other. That
/// needs only the driver, which meta has, too, not Storage's own program.
#[tokio::test]
async fn storages_url_checks_the_server_with_the_authority_that_is_named() {
    let Some(program) = tokio::task::spawn_blocking(meta::program).await.unwrap() else {
        return;
    };
    let server = Postgres::builder(Version::V18)
        .setting("wal_level", "logical")
        .tls(Tls::default());
    let env = TestEnv::on(DatabaseEnv::of(server.start().await, "shop").await).await;
    let authority = env.db_env.server.authority().unwrap().pem().to_owned();
    env.secret("ca", json!({ "ca.crt": authority })).await;
    let _operator = env.operator().await;
    for mode in ["verify-ca", "verify-full"] {
        let database = json!({ "sslMode": mode, "caSecretRef": { "name": "ca" } });
        env.project("shop", json!({ "database": database })).await;
        env.running("shop").await;
        let pod = env.pod("shop-storage").await;
        let url = pod.value("DATABASE_URL");
        let mounted = "/etc/stanchion/database/ca.crt";
        assert!(url.contains(mounted), "{url}");
        let mounts = pod.container.volume_mounts.iter().flatten();
        assert!(
            mounts
                .into_iter()
                .any(|mount| mounted.starts_with(&mount.mount_path))
        );
        let scratch = Scratch::new("stanchion-ca-").unwrap();
        for (pem, expected) in [
            (authority.clone(), true),
            (Authority::new().pem().to_owned(), false),
        ] {
            let file = scratch.path().join("ca.crt");
            std::fs::write(&file, pem).unwrap();
            let url = url.replace(mounted, &file.display().to_string());
            let script = "const { Client } = require('pg'); const client = new Client({ connectionString: process.argv[1] }); \
                          client.connect().then(() => process.exit(0), (error) => { console.error(error.code); process.exit(9); })";
            let output = Command::new("node")
                .args(["-e", script, &url])
                .current_dir(program.parent().unwrap())
                .output()
                .unwrap();
            assert_eq!(output.status.success(), expected, "{mode}: {output:?}");
        }
    }
}
