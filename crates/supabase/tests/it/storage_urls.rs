//! The URLs that Storage hands out: signed ones, and those of resumable uploads.

use std::path::Path;

use http::{Method, StatusCode};
use serde_json::json;
use stanchion_api::SupabaseProject;
use stanchion_testkit::postgres::{Postgres, Tls, Version};
use stanchion_testkit::scratch::Scratch;
use stanchion_testkit::{port, report};

use crate::database_env::DatabaseEnv;
use crate::service_process::Service;
use crate::storage::VARIABLE;
use crate::test_env::{TestEnv, is_running};

/// A project on a server with verified TLS, and Storage with exactly the environment of its Deployment, except for its
/// listen address and the path of the authority's certificate.
struct Deployed {
    command: String,
    env: TestEnv,
    authority: Scratch,
}

impl Deployed {
    /// Without a command there is nothing to start.
    async fn new(what: &str) -> Option<Self> {
        let Some(command) = std::env::var(VARIABLE).ok().filter(|command| !command.is_empty()) else {
            report::skipped(what, &format!("{VARIABLE} names no command"));
            return None;
        };
        let server = Postgres::builder(Version::V18)
            .setting("wal_level", "logical")
            .tls(Tls::default());
        let env = TestEnv::on(DatabaseEnv::of(server.start().await, "shop").await).await;
        let pem = env.db_env.server.authority().unwrap().pem().to_owned();
        let authority = Scratch::new("stanchion-ca-").unwrap();
        std::fs::write(authority.path().join("ca.crt"), &pem).unwrap();
        env.secret("ca", json!({ "ca.crt": pem })).await;
        Some(Self {
            command,
            env,
            authority,
        })
    }

    async fn project(&self, mut spec: serde_json::Value) {
        spec["database"] = json!({ "sslMode": "verify-full", "caSecretRef": { "name": "ca" } });
        self.env.project("shop", spec).await;
        self.env.running("shop").await;
    }

    /// Storage as the Deployment starts it now, and its key for administrators.
    async fn start(&self) -> (Service, String) {
        let pod = self.env.pod("shop-storage").await;
        let file = self.authority.path().join("ca.crt").display().to_string();
        let url = pod
            .value("DATABASE_URL")
            .replace("/etc/stanchion/database/ca.crt", &file);
        let (port, admin) = (port::free(), port::free().to_string());
        let here = [
            ("SERVER_HOST", "127.0.0.1"),
            ("SERVER_PORT", &port.to_string()),
            ("SERVER_ADMIN_PORT", &admin),
            ("DATABASE_URL", &url),
        ];
        let arguments = ["-c", self.command.as_str()];
        let storage = Service::of(Path::new("/bin/sh"), &arguments, &pod, &here, port).await;
        (storage, pod.value("SERVICE_KEY").to_owned())
    }
}

async fn post(storage: &Service, key: &str, path: &str, body: serde_json::Value) -> serde_json::Value {
    let (status, answer) = storage.send(Method::POST, path, Some(key), Some(&body)).await;
    assert_eq!(status, StatusCode::OK, "{path}: {answer}");
    answer
}

/// A signed URL is valid as long as it says, also when the keys are rotated meanwhile.
#[tokio::test]
async fn storage_signs_urls_that_outlive_a_rotation() {
    let Some(deployed) = Deployed::new("signed URLs of Storage").await else {
        return;
    };
    let env = &deployed.env;
    let _operator = env.operator().await;
    deployed.project(json!({})).await;
    let (storage, service) = deployed.start().await;
    let bucket = json!({"id": "private", "name": "private", "public": false});
    post(&storage, &service, "/bucket", bucket).await;
    post(&storage, &service, "/object/private/a.json", json!({"a": 1})).await;
    let sign = async |storage: &Service, key: &str| {
        let path = "/object/sign/private/a.json";
        let signed = post(storage, key, path, json!({"expiresIn": 600})).await;
        signed["signedURL"].as_str().unwrap().to_owned()
    };
    let opens = async |storage: &Service, path: &str| {
        let (status, answer) = storage.send(Method::GET, path, None, None).await;
        assert_eq!((status, answer), (StatusCode::OK, json!({"a": 1})), "{path}");
    };
    let before = sign(&storage, &service).await;
    opens(&storage, &before).await;
    let header = before.split("token=").nth(1).unwrap().split('.').next().unwrap();
    let header = base64::Engine::decode(&base64::prelude::BASE64_URL_SAFE_NO_PAD, header).unwrap();
    let header: serde_json::Value = serde_json::from_slice(&header).unwrap();
    assert_eq!(header["kid"], "storage-url-signing");
    drop(storage);

    let asked = json!({ "metadata": { "annotations": { "supabase.strrl.dev/rotate-keys-at": "now" } } });
    env.patch::<SupabaseProject>("shop", asked).await;
    let done = |project: &SupabaseProject| {
        let keys = project.status.as_ref().and_then(|status| status.keys.as_ref());
        is_running(project) && keys.is_some_and(|keys| keys.previous_until.is_some())
    };
    env.until("shop", done).await;
    let (storage, rotated) = deployed.start().await;
    assert_ne!(rotated, service);
    opens(&storage, &before).await;
    let after = sign(&storage, &rotated).await;
    opens(&storage, &after).await;
}

/// A resumable upload continues at the URL that Storage returns: that of the request, as the gateway describes it, or
/// the public one if there is one.
#[tokio::test]
async fn storage_continues_uploads_at_a_url_that_the_client_can_reach() {
    let Some(deployed) = Deployed::new("resumable uploads of Storage").await else {
        return;
    };
    let _operator = deployed.env.operator().await;
    for (spec, expected) in [
        (json!({}), "http://localhost:8000/storage/v1/upload/resumable/"),
        (
            json!({ "studio": { "publicUrl": "https://shop.example.com" } }),
            "https://shop.example.com/storage/v1/upload/resumable/",
        ),
    ] {
        deployed.project(spec).await;
        let (storage, service) = deployed.start().await;
        let bucket = json!({"id": "files", "name": "files", "public": true});
        storage
            .send(Method::POST, "/bucket", Some(&service), Some(&bucket))
            .await;
        let bearer = format!("Bearer {service}");
        // The last four are Kong's, for a request to localhost:8000: the host without its port, the port on which Kong
        // listens, and the path of the route.
        let common = [
            ("authorization", bearer.as_str()),
            ("tus-resumable", "1.0.0"),
            ("x-upsert", "true"),
            ("x-forwarded-host", "localhost"),
            ("x-forwarded-port", "8000"),
            ("x-forwarded-proto", "http"),
            ("x-forwarded-prefix", "/storage/v1/"),
        ];
        let metadata = format!(
            "bucketName {},objectName {},contentType {}",
            encode("files"),
            encode("a.txt"),
            encode("text/plain")
        );
        let begin = [
            &common[..],
            &[("upload-length", "5"), ("upload-metadata", &metadata)],
        ]
        .concat();
        let answer = storage
            .exchange(Method::POST, "/upload/resumable", &begin, "")
            .await;
        assert_eq!(answer.status(), StatusCode::CREATED, "{answer:?}");
        let location = answer.headers()["location"].to_str().unwrap();
        assert!(location.starts_with(expected), "{location}");

        // The gateway removes the path of its route.
        let (_, path) = location.split_once("/storage/v1").unwrap();
        let go_on = [
            &common[..],
            &[
                ("upload-offset", "0"),
                ("content-type", "application/offset+octet-stream"),
            ],
        ]
        .concat();
        let answer = storage.exchange(Method::PATCH, path, &go_on, "hello").await;
        assert_eq!(answer.status(), StatusCode::NO_CONTENT, "{answer:?}");
        let answer = storage.fetch("/object/public/files/a.txt").await;
        assert_eq!(answer, (StatusCode::OK, "hello".into()));
    }
}

fn encode(text: &str) -> String {
    base64::Engine::encode(&base64::prelude::BASE64_STANDARD, text)
}
