//! Storage itself, on the database that was made for it, and a real S3.

use std::collections::BTreeMap;
use std::path::Path;

use http::{Method, StatusCode};
use serde_json::json;
use stanchion_supabase::database::Login;
use stanchion_testkit::{port, postgres::extremes, report, s3::S3};

use crate::bed::{Bed, request};
use crate::jwt;
use crate::service::Service;

/// A shell command that starts it. It is in no package registry, and wants a newer Node.js than most have.
const VARIABLE: &str = "STANCHION_STORAGE_COMMAND";

fn environment(bed: &Bed, s3: &S3, port: u16) -> BTreeMap<String, String> {
    [
        ("SERVER_HOST", "127.0.0.1"),
        ("SERVER_PORT", &port.to_string()),
        ("SERVER_ADMIN_PORT", &port::free().to_string()),
        ("ANON_KEY", &jwt::sign("anon")),
        ("SERVICE_KEY", &jwt::sign("service_role")),
        ("AUTH_JWT_SECRET", jwt::SECRET),
        ("DATABASE_URL", &bed.url(Login::Storage)),
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
        let (bed, s3) = (Bed::new(version).await, S3::start().await);
        bed.initialise(&request()).await.unwrap();
        let port = port::free();
        let arguments = ["-c", command.as_str()];
        let environment = environment(&bed, &s3, port);
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
        // Without a policy, those who come with the anonymous key see nothing and write nothing.
        let (status, answer) = storage.send(Method::GET, "/bucket", Some(&anon), None).await;
        assert_eq!((status, answer), (StatusCode::OK, json!([])));
        let (_, answer) = storage
            .send(Method::POST, "/object/avatars/b.json", Some(&anon), Some(&object))
            .await;
        assert_eq!(answer["statusCode"], "403", "{answer}");

        let foreign = "SELECT c.oid::regclass::text FROM pg_class c WHERE c.relnamespace = 'storage'::regnamespace \
                         AND pg_get_userbyid(c.relowner) <> 'supabase_storage_admin'";
        assert_eq!(bed.column(foreign).await, Vec::<String>::new());
        let outside = "SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace";
        assert_eq!(bed.column(outside).await, Vec::<String>::new());
    }
}
