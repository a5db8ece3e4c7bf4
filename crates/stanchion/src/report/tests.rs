//! Nothing that looks like a secret is in the report, and the ZIP is valid.

use std::io;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use stanchion_testkit::scratch::Scratch;

use super::{collect, create, redact, zip};
use crate::fixed_answers;

/// The text that must not appear anywhere.
const CANARY: &str = "cAnArY-hunter2";

#[test]
fn values_of_people_are_blanked_out_and_the_shape_stays() {
    let object = json!({
        "apiVersion": "supabase.strrl.dev/v1alpha1", "kind": "SupabaseProject",
        "metadata": {
            "name": "demo", "namespace": "shop", "managedFields": [{}],
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": format!("{{\"password\":\"{CANARY}\"}}"),
                "example.com/note": CANARY,
                "meta.helm.sh/release-name": "demo",
            },
        },
        "spec": {
            "database": "app", "replicas": 2, "suspend": false,
            "password": { "value": CANARY },
            "connection": { "url": format!("postgres://admin:{CANARY}@db/app"), "sslMode": "verify-full" },
            "auth": { "env": [{ "name": "SMTP_PASS", "value": CANARY }, { "name": "KEY", "valueFrom": { "secretKeyRef": { "name": "keys", "key": "jwt" } } }] },
            "helm": { "values": { "deep": { "er": CANARY } } },
            "unknown": [CANARY, { "further": CANARY }],
        },
        "status": {
            "phase": "Failed",
            "conditions": [{ "type": "Ready", "message": format!("cannot connect to postgres://admin:{CANARY}@db.example.com/app: refused") }],
        },
    });
    let shown = redact::object(&object);
    let text = shown.to_string();
    assert!(!text.contains(CANARY), "{text}");
    assert!(
        !text.contains("managedFields") && !text.contains("last-applied"),
        "{text}"
    );
    let kept = [
        ("/spec/database", json!("app")),
        ("/spec/replicas", json!(2)),
        ("/spec/connection/sslMode", json!("verify-full")),
        ("/spec/auth/env/0/name", json!("SMTP_PASS")),
        ("/spec/auth/env/1/valueFrom/secretKeyRef/name", json!("keys")),
        ("/metadata/annotations/meta.helm.sh~1release-name", json!("demo")),
        ("/status/phase", json!("Failed")),
    ];
    for (pointer, value) in kept {
        assert_eq!(shown.pointer(pointer), Some(&value), "{pointer} in {text}");
    }
    assert!(
        text.contains("cannot connect to postgres://[REDACTED]@db.example.com/app: refused"),
        "{text}"
    );
}

/// An error may quote what was read.
#[tokio::test]
async fn why_something_could_not_be_read_is_redacted() {
    let version = json!({
        "major": "1", "minor": "36", "gitVersion": "v1.36.3", "gitCommit": "", "gitTreeState": "", "buildDate": "",
        "goVersion": "", "compiler": "", "platform": "",
    });
    let pods = json!({ "metadata": {}, "items": format!("postgres://admin:{CANARY}@db.example.com/app") });
    let cluster = fixed_answers::cluster(&[
        ("/version", &version.to_string()),
        (
            "/api/v1/pods?&labelSelector=app.kubernetes.io%2Fname%3Dstanchion",
            &pods.to_string(),
        ),
    ])
    .await;
    let files = Box::pin(collect::collect(&cluster, None, 1)).await.unwrap();
    let (_, unreadable) = files.iter().find(|(name, _)| name == "unreadable.json").unwrap();
    let unreadable = String::from_utf8(unreadable.clone()).unwrap();
    assert!(unreadable.contains("operator/pods"), "{unreadable}");
    assert!(unreadable.contains("[REDACTED]@db.example.com"), "{unreadable}");
    for (name, content) in &files {
        assert!(!String::from_utf8_lossy(content).contains(CANARY), "{name}");
    }
}

/// The value of a setting is redacted in the spec, so it must not come back with the SQL that sets it.
#[test]
fn settings_of_roles_are_blanked_out_in_the_spec_and_in_the_sql() {
    let statement = format!("ALTER ROLE \"app\" SET \"app\".\"jwt_secret\" TO '{CANARY}';");
    let policy = json!({
        "kind": "PostgresPolicy",
        "spec": { "roles": [{ "name": "app", "config": { "app.jwt_secret": CANARY } }] },
    });
    let plan = json!({
        "kind": "PostgresPolicyPlan",
        "metadata": { "annotations": { "pgroles.io/sql-preview": statement } },
        "status": { "sqlInline": format!("BEGIN;\n{statement}\nCOMMIT;") },
    });
    let planned = json!({ "kind": "PostgresPolicy", "status": { "planned_sql": statement } });
    let user = json!({ "kind": "PostgresUser", "status": { "plan": { "sql": [statement] } } });
    for object in [policy, plan, planned, user] {
        let shown = redact::object(&object).to_string();
        assert!(!shown.contains(CANARY), "{shown}");
        assert!(shown.contains("app"), "{shown}");
    }
}

#[test]
fn arguments_of_the_operator_lose_addresses_of_servers() {
    let object = json!({ "kind": "Deployment", "spec": { "template": { "spec": { "containers": [{
        "name": "operator",
        "args": ["run", "--leader-elect", format!("--postgres-url=postgres://a:{CANARY}@h/d"), "--postgres-url", CANARY, "--namespace=shop"],
        "env": [{ "name": "STANCHION_POSTGRES_URL", "value": CANARY }],
    }] } } } });
    let shown = redact::object(&object);
    assert!(!shown.to_string().contains(CANARY), "{shown}");
    let arguments = shown.pointer("/spec/template/spec/containers/0/args").unwrap();
    assert_eq!(
        *arguments,
        json!([
            "run",
            "--leader-elect",
            "--postgres-url=[REDACTED]",
            "--postgres-url",
            "[REDACTED]",
            "--namespace=shop"
        ])
    );
}

#[test]
fn a_text_loses_what_has_the_form_of_a_credential() {
    let token = "eyJhbGciOiJIUzI1NiJ9.eyJyb2xlIjoiYW5vbiJ9.c2lnbmF0dXJl";
    let hostile = [
        format!("postgres://u:{CANARY}@h/d"),
        format!("postgres://u:pa/ss{CANARY}@h/d"),
        format!("https://{CANARY}@h"),
        format!("password={CANARY} host=x"),
        format!("password='{CANARY}'"),
        format!("{{\"Token\": \"{CANARY}\"}}"),
        format!("{{\\\"password\\\": \\\"{CANARY}\\\"}}"),
        format!("PASSWORD : {CANARY}"),
        format!("-----BEGIN EC PRIVATE KEY-----\n{CANARY}\n-----END EC PRIVATE KEY-----\n"),
    ];
    for text in hostile {
        let shown = redact::text(&text);
        assert!(!shown.contains(CANARY), "{text} became {shown}");
    }
    assert!(!redact::text(&format!("Bearer {token}.")).contains(token));
    // Text that is not a credential stays.
    for text in [
        "Secret shop/demo does not exist",
        "the password of role \"app\" was changed",
        "https://example.com/a?b=c",
        "token reviews are refused",
        "eyJ is how many things begin",
    ] {
        assert_eq!(redact::text(text), text);
    }
}

#[test]
fn only_its_owner_can_read_a_report_and_none_is_overwritten() {
    let folder = Scratch::new("stanchion-report-").unwrap();
    let path = folder.path().join("report.zip");
    let file = create(&path).unwrap();
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(create(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
}

#[test]
fn a_zip_file_has_what_went_in() {
    let files = vec![
        ("versions.json".to_owned(), b"{}".to_vec()),
        (
            "operator/logs/a.log".to_owned(),
            "zeile ä\n".repeat(1000).into_bytes(),
        ),
        ("empty.json".to_owned(), Vec::new()),
    ];
    let mut bytes = Vec::new();
    zip::write(&mut bytes, &files).unwrap();
    // Parsed by hand: every local header is at its offset in the directory, and the content unpacks correctly.
    let end = bytes.len() - 22;
    assert_eq!(&bytes[end..end + 4], b"PK\x05\x06");
    let number = |at: usize, length: usize| -> usize {
        bytes[at..at + length]
            .iter()
            .rev()
            .fold(0, |sum, byte| sum * 256 + usize::from(*byte))
    };
    assert_eq!(number(end + 10, 2), files.len());
    let mut at = number(end + 16, 4);
    for (name, content) in &files {
        assert_eq!(&bytes[at..at + 4], b"PK\x01\x02");
        let (packed, size, length, local) = (
            number(at + 20, 4),
            number(at + 24, 4),
            number(at + 28, 2),
            number(at + 42, 4),
        );
        assert_eq!(&bytes[at + 46..at + 46 + length], name.as_bytes());
        assert_eq!(size, content.len());
        assert_eq!(&bytes[local..local + 4], b"PK\x03\x04");
        let start = local + 30 + number(local + 26, 2) + number(local + 28, 2);
        let mut unpacked = Vec::new();
        let mut reader = flate2::read::DeflateDecoder::new(&bytes[start..start + packed]);
        std::io::Read::read_to_end(&mut reader, &mut unpacked).unwrap();
        assert_eq!(&unpacked, content);
        at += 46 + length;
    }
    assert_eq!(at, end);
}

#[test]
fn what_is_no_object_is_nothing() {
    assert_eq!(redact::object(&json!("text")), Value::Null);
}
