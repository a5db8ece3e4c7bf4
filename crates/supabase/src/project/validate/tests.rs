//! What is refused, with which message, and what is accepted.

use serde_json::{Value, json};

use super::*;

fn refused(change: impl FnOnce(&mut Value)) -> Option<String> {
    let mut object = json!({
        "apiVersion": "supabase.strrl.dev/v1alpha1", "kind": "SupabaseProject",
        "metadata": {"name": "it", "namespace": "ns"},
        "spec": {
            "projectId": "it",
            "database": {"secretRef": {"name": "db"}},
            "storage": {"secretRef": {"name": "s3"}},
        },
    });
    change(&mut object);
    let project = serde_json::from_value(object).unwrap();
    validate(&project).err().map(|problem| problem.message)
}

#[test]
fn what_cannot_work_is_refused_in_known_words() {
    type Change = fn(&mut Value);
    let cases: &[(Change, &str)] = &[
        (
            |o| o["spec"]["database"]["secretRef"] = json!({}),
            "database.secretRef.name cannot be empty",
        ),
        (
            |o| o["spec"]["storage"]["secretRef"] = json!({"name": ""}),
            "storage.secretRef.name cannot be empty",
        ),
        (
            |o| o["spec"]["kong"] = json!({"image": "kong"}),
            "image must include tag",
        ),
        (
            |o| o["spec"]["studio"] = json!({"image": "studio"}),
            "image must include tag",
        ),
        (
            |o| o["spec"]["kong"] = json!({"image": "registry:5000/kong"}),
            "image must include tag",
        ),
        (
            |o| o["spec"]["kong"] = json!({"image": "a b:c"}),
            "invalid image reference format",
        ),
        (
            |o| o["spec"]["database"]["secretRef"]["namespace"] = json!("other"),
            "database.secretRef.namespace must be the project's own",
        ),
        (
            |o| o["spec"]["kong"] = json!({"autoscaling": {"minReplicas": 3, "maxReplicas": 2}}),
            "minReplicas must not be more",
        ),
        (
            |o| o["spec"]["studio"] = json!({"publicUrl": "shop.example.com"}),
            "spec.studio.publicUrl must begin with https:// or http://",
        ),
        (
            |o| o["spec"]["studio"] = json!({"publicUrl": "https:///path"}),
            "followed by a host name",
        ),
        (
            |o| o["spec"]["jwt"] = json!({"expiry": "soon"}),
            "must be a duration",
        ),
        (
            |o| o["metadata"]["name"] = json!("a".repeat(54)),
            "at most 53 characters",
        ),
        (|o| o["metadata"]["name"] = json!("a.b"), "no dots"),
        (
            |o| {
                o["spec"]["pooler"] = json!({});
                o["spec"]["database"]["sslMode"] = json!("verify-full");
            },
            "with a single CA",
        ),
        (
            |o| o["spec"]["analytics"] = json!({}),
            "speaks TLS only with a certificate",
        ),
        (
            |o| o["spec"]["functions"] = json!({"source": {}}),
            "functions.source is a configMap or a persistentVolumeClaim",
        ),
        (
            |o| {
                o["spec"]["functions"] =
                    json!({"image": "runtime", "source": {"configMap": {"name": "code"}}});
            },
            "spec.functions.image: image must include tag",
        ),
    ];
    for (change, words) in cases {
        let message = refused(change).unwrap_or_default();
        assert!(message.contains(words), "{words}: {message}");
    }
}

#[test]
fn a_valid_spec_is_accepted() {
    assert_eq!(refused(|_| {}), None);
    assert_eq!(
        refused(|o| o["spec"]["kong"] = json!({"image": "registry:5000/kong@sha256:0"})),
        None
    );
    assert_eq!(
        refused(|o| o["spec"]["database"]["secretRef"]["namespace"] = json!("ns")),
        None
    );
    assert_eq!(refused(|o| o["metadata"]["name"] = json!("a".repeat(53))), None);
    assert_eq!(refused(|o| o["spec"]["pooler"] = json!({})), None);
    assert_eq!(
        refused(|o| {
            o["spec"]["database"]["sslMode"] = json!("prefer");
            o["spec"]["analytics"] = json!({});
        }),
        None
    );
    assert_eq!(
        refused(|o| {
            o["spec"]["database"]["caSecretRef"] = json!({"name": "ca"});
            o["spec"]["analytics"] = json!({"clientCertificateSecretRef": {"name": "client"}});
        }),
        None
    );
}
