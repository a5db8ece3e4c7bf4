//! What a component needs to start: directories that it can write to, and connections and addresses as the spec says.

use serde_json::{Value, json};

use super::super::project::tests::fixture;
use super::{environment_of, fullest, render};

/// A pod runs as a user that may own nothing in its image.
#[test]
fn what_a_component_writes_lies_in_a_scratch_directory() {
    for (component, variable) in [
        ("kong", "KONG_PREFIX"),
        ("kong", "KONG_DECLARATIVE_CONFIG"),
        ("functions", "DENO_DIR"),
        ("analytics", "RELEASE_TMP"),
    ] {
        let deployment = render(&fullest(), component);
        let pod = &deployment["spec"]["template"]["spec"];
        let of_volume = |mount: &Value| {
            let mut volumes = pod["volumes"].as_array().unwrap().iter();
            volumes
                .find(|volume| volume["name"] == mount["name"])
                .unwrap()
                .clone()
        };
        let mounts = pod["containers"][0]["volumeMounts"].as_array().unwrap();
        let writable = mounts
            .iter()
            .filter(|mount| of_volume(mount).get("emptyDir").is_some());
        let writable: Vec<&str> = writable.filter_map(|mount| mount["mountPath"].as_str()).collect();
        let lines = environment_of(&deployment);
        let value = lines
            .iter()
            .find_map(|line| line.strip_prefix(&format!("{variable}=")));
        let value = std::path::Path::new(value.unwrap());
        assert!(
            writable.iter().any(|mount| value.starts_with(mount)),
            "{variable}={}: {writable:?}",
            value.display()
        );
    }
}

/// Upstream's seeds connect unencrypted before anybody can change what they wrote.
#[test]
fn realtime_starts_with_encrypted_connections_only() {
    let command = |mode: &str| {
        let fixture = fixture(|spec| spec["database"]["sslMode"] = json!(mode));
        let deployment = render(&fixture, "realtime");
        deployment["spec"]["template"]["spec"]["containers"][0]["command"].to_string()
    };
    for mode in ["disable", "prefer"] {
        assert!(command(mode).contains("Release.seeds"), "{mode}");
    }
    for mode in ["require", "verify-ca", "verify-full"] {
        let command = command(mode);
        assert!(!command.contains("Release.seeds"), "{mode}");
        assert!(
            command.contains(r#"\"ssl_enforced\" => true"#),
            "{mode}: {command}"
        );
    }
}

/// Auth replaces the path of its external URL by that of the link.
#[test]
fn links_in_mails_keep_the_path_of_the_public_url() {
    let path = |url: &str| {
        let fixture = fixture(|spec| spec["studio"] = json!({"publicUrl": url}));
        let lines = environment_of(&render(&fixture, "auth"));
        let line = lines
            .iter()
            .find_map(|line| line.strip_prefix("GOTRUE_MAILER_URLPATHS_RECOVERY="));
        line.unwrap().to_owned()
    };
    assert_eq!(path("https://a.example"), "/auth/v1/verify");
    assert_eq!(path("https://a.example:8443/"), "/auth/v1/verify");
    assert_eq!(path("https://a.example/supabase/"), "/supabase/auth/v1/verify");
}
