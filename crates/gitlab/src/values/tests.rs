mod fixture;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::storage::tests::{ALL, COMPLETE, complete};
use fixture::{Fixture, at, map};

#[test]
fn the_smallest_community_edition() {
    insta::assert_yaml_snapshot!(Fixture::smallest().values());
}

#[test]
fn the_fullest_enterprise_edition() {
    insta::assert_yaml_snapshot!(Fixture::fullest().values());
}

#[test]
fn each_layer_wins_over_those_below_it() {
    let mut fixture = Fixture::smallest();
    let say = |word: &str| map(json!({ "prometheus": { "install": word }, "global": { "edition": word } }));
    assert_eq!(fixture.at("/prometheus/install"), Some(json!(false)));
    fixture.profile.values = say("profile");
    assert_eq!(fixture.at("/prometheus/install"), Some(json!("profile")));
    fixture.step_values = say("map");
    assert_eq!(fixture.at("/prometheus/install"), Some(json!("map")));
    assert_eq!(fixture.at("/global/edition"), Some(json!("ce")));
    fixture.spec.helm.values = say("helm");
    assert_eq!(fixture.at("/prometheus/install"), Some(json!("helm")));
    assert_eq!(fixture.at("/global/edition"), Some(json!("helm")));
    fixture.spec.helm.values = map(json!({ "prometheus": null, "global": { "hosts": { "https": false } } }));
    assert_eq!(fixture.at("/prometheus"), None);
    assert_eq!(fixture.at("/global/hosts/https"), Some(json!(false)));
    assert_eq!(
        fixture.at("/global/hosts/gitlab/name"),
        Some(json!("git.example.com"))
    );
}

#[test]
fn no_subject_says_what_another_does() {
    fn paths(value: &Value, path: &str, all: &mut Vec<String>) {
        match value {
            Value::Object(map) => map
                .iter()
                .for_each(|(key, value)| paths(value, &format!("{path}.{key}"), all)),
            Value::Null => {}
            _ => all.push(path.to_owned()),
        }
    }
    let fixture = Fixture::fullest();
    let mut all = Vec::new();
    for subject in SUBJECTS {
        paths(&subject(&fixture.input(&fixture.written())), "", &mut all);
    }
    let count = all.len();
    all.sort();
    all.dedup();
    assert_eq!(count, all.len());
}

#[test]
fn each_chart_gets_only_known_values() {
    let described = |version: &str| {
        let mut fixture = Fixture::smallest();
        fixture.chart = ChartVersion::of(version);
        [
            "/certmanager",
            "/installCertmanager",
            "/postgresql",
            "/redis",
            "/global/minio",
            "/global/gatewayApi/enabled",
        ]
        .map(|pointer| {
            fixture
                .at(pointer)
                .map_or("-".to_owned(), |value| value.to_string())
        })
        .join(" ")
    };
    let off = r#"{"install":false} {"install":false} {"enabled":false}"#;
    assert_eq!(described("8.11.8"), format!(r#"{{"install":false}} - {off} -"#));
    for nine in ["9.0.0", "9.3.6", "9.11.7"] {
        assert_eq!(described(nine), format!("- false {off} -"));
    }
    for ten in ["10.0.0", "10.1.1", "*"] {
        assert_eq!(described(ten), "- false - - - false");
    }
}

#[test]
fn what_has_no_domain_is_not_installed() {
    let mut fixture = Fixture::fullest();
    let switches = [
        "/registry/enabled",
        "/global/registry/enabled",
        "/global/kas/enabled",
        "/global/pages/enabled",
    ];
    assert!(
        switches
            .iter()
            .all(|switch| fixture.at(switch) == Some(json!(true)))
    );
    let domains = &mut fixture.spec.domains;
    (domains.registry, domains.kas, domains.pages) = (None, None, None);
    assert!(
        switches
            .iter()
            .all(|switch| fixture.at(switch) == Some(json!(false)))
    );
    assert_eq!(fixture.at("/registry/annotations"), None);
    assert_eq!(fixture.at("/gitlab/gitlab-pages/annotations"), None);
}

#[test]
fn without_buckets_the_charts_own_storage_is_left_alone_and_placed() {
    let mut fixture = Fixture::fullest();
    fixture.buckets = None;
    for pointer in [
        "/global/minio",
        "/global/appConfig",
        "/registry/storage",
        "/gitlab/toolbox/backups/objectStorage",
    ] {
        assert_eq!(fixture.at(pointer), None, "{pointer}");
    }
    assert_eq!(
        fixture.at("/minio/tolerations"),
        Some(json!(fixture.spec.tolerations))
    );
    fixture.chart = ChartVersion::of("10.1.1");
    assert_eq!(fixture.at("/minio"), None);
}

#[test]
fn a_bucket_for_backups_that_nobody_named_is_left_to_the_chart() {
    let mut fixture = Fixture::smallest();
    let backups = "/global/appConfig/backups";
    assert_eq!(
        fixture.at(backups),
        Some(json!({ "bucket": "shop-backups", "tmpBucket": "shop-backups" }))
    );
    let buckets = fixture.buckets.as_mut().unwrap();
    (buckets.backups, buckets.tmp) = (None, None);
    assert_eq!(fixture.at(backups), None);
    assert_eq!(
        fixture.at("/gitlab/toolbox/backups/objectStorage/config/secret"),
        Some(json!("shop-gitlab-backup-storage")),
        "the toolbox mounts it"
    );
}

#[test]
fn minio_is_off_when_values_name_the_storage_of_everything_that_would_use_it() {
    let minio = "/global/minio/enabled";
    let secret = json!({ "secret": "s3", "key": "config" });
    let rails = map(
        json!({ "global": { "appConfig": { "object_store": { "enabled": true, "connection": secret } } } }),
    );
    let rest = map(json!({
        "registry": { "storage": secret }, "gitlab": { "toolbox": { "backups": { "objectStorage": { "config": secret } } } },
    }));
    let mut fixture = Fixture::smallest();
    fixture.buckets = None;
    fixture.profile.values = rails;
    assert_eq!(fixture.at(minio), None, "the registry and the backups are in it");
    fixture.step_values = rest.clone();
    assert_eq!(
        fixture.at(minio),
        Some(json!(false)),
        "of the profile and the map"
    );
    fixture.step_values = Values::new();
    fixture.spec.helm.values = rest.clone();
    assert_eq!(fixture.at(minio), Some(json!(false)));
    for enabled in [Value::Null, json!(false)] {
        fixture.profile.values["global"]["appConfig"]["object_store"]["enabled"] = enabled;
        assert_eq!(fixture.at(minio), None, "the chart ignores the connection");
    }
    fixture.profile.values["global"]["appConfig"]["object_store"]["enabled"] = json!(true);
    for part in [
        json!({ "registry": { "enabled": true } }),
        json!({ "global": { "registry": { "enabled": true } }, "registry": {} }),
        json!({ "global": { "pages": { "enabled": true } } }),
        json!({ "registry": null }),
        json!({ "registry": { "enabled": null } }),
    ] {
        fixture.spec.helm.values = rest.clone();
        fixture.spec.helm.values.extend(map(part.clone()));
        assert_eq!(fixture.at(minio), None, "{part} stores in it, without a domain");
    }
    let enabled = json!({ "registry": { "enabled": true, "storage": secret }, "global": { "pages": {
        "enabled": true, "objectStore": { "connection": secret },
    }}});
    fixture.spec.helm.values = rest.clone();
    fixture.spec.helm.values.extend(map(enabled));
    assert_eq!(fixture.at(minio), Some(json!(false)), "each has its own storage");
    fixture.spec.helm.values = rest;
    fixture.spec.domains.pages = Some("pages.example.com".into());
    assert_eq!(fixture.at(minio), None, "the sites are in it");
    fixture.spec.domains.pages = None;
    fixture.chart = ChartVersion::of("10.1.1");
    assert_eq!(fixture.at(minio), None, "such a chart has none");
    fixture.chart = ChartVersion::of("9.11.7");
    fixture.profile.values["global"]["minio"] = json!({ "enabled": true });
    assert_eq!(fixture.at(minio), Some(json!(true)), "somebody wants it");
}

#[test]
fn what_helm_values_name_themselves_is_not_said_again() {
    let mut fixture = Fixture::smallest();
    (fixture.psql, fixture.redis) = (None, None);
    fixture.spec.helm.values =
        map(json!({ "global": { "psql": { "host": "db" }, "redis": { "host": "redis" } } }));
    assert_eq!(fixture.at("/global/psql"), Some(json!({ "host": "db" })));
    assert_eq!(fixture.at("/global/redis"), Some(json!({ "host": "redis" })));
    assert_eq!(fixture.at("/postgresql/install"), Some(json!(false)));
    assert_eq!(fixture.at("/redis/install"), Some(json!(false)));
}

#[test]
fn an_own_schedule_wins_over_the_profiles_and_without_any_there_is_none() {
    let cron = "/gitlab/toolbox/backups/cron";
    let mut fixture = Fixture::fullest();
    assert_eq!(
        fixture.at(cron),
        Some(json!({ "enabled": true, "schedule": "30 2 * * *" }))
    );
    fixture.spec.backup_schedule = None;
    assert_eq!(
        fixture.at(cron),
        Some(json!({ "enabled": true, "schedule": "0 4 * * 0" }))
    );
    fixture.profile.backup_schedule = None;
    assert_eq!(fixture.at(cron), None);
}

#[test]
fn a_mail_server_may_want_no_login_and_be_encrypted_from_the_start() {
    let mut fixture = Fixture::smallest();
    assert_eq!(fixture.at("/global/smtp"), None);
    fixture.mail = Some(Mail {
        address: at("mail", 465),
        username: None,
        password: None,
        authentication: None,
        starttls: true,
        from: None,
        reply_to: None,
    });
    let expected = json!({
        "enabled": true, "address": "mail", "port": 465, "tls": true, "starttls_auto": false, "authentication": "",
    });
    assert_eq!(fixture.at("/global/smtp"), Some(expected));
}

#[test]
fn a_changed_secret_changes_only_the_pods_that_read_it() {
    let (before, mut fixture) = (Fixture::fullest().values(), Fixture::fullest());
    fixture.checksums.registry = Some("new".into());
    let mut after = fixture.values();
    assert_ne!(before, after);
    after["registry"]["annotations"] = json!({ "checksum/registry-storage": "registry-sum" });
    assert_eq!(before, after);
}

#[test]
fn a_license_is_for_the_enterprise_edition() {
    let mut fixture = Fixture::smallest();
    fixture.spec.license_secret = Some("license".into());
    assert_eq!(fixture.at("/global/gitlab"), None);
}

proptest! {
    #[test]
    fn of_the_storages_secret_only_the_names_of_buckets_are_in_the_values(
        accesskey in "[A-Z0-9]{16}", secretkey in "[A-Za-z0-9+/]{24}", region in "[a-z]{9}", host in "[a-z]{14}",
        chart_version in prop::sample::select(vec!["8.11.8", "9.11.7", "10.1.1"]),
    ) {
        let mut fixture = Fixture::fullest();
        fixture.chart = ChartVersion::of(chart_version);
        let secret = [
            ("accessKey", accesskey.as_str()), ("secretKey", &secretkey), ("region", &region), ("endpoint", &host),
        ];
        fixture.buckets = Some(Buckets::read(&complete(&secret), ALL).unwrap());
        let text = fixture.values().to_string();
        for (key, value) in secret {
            prop_assert!(!text.contains(value), "{} is in the values", key);
        }
        for (_, bucket) in COMPLETE.iter().filter(|(key, _)| key.starts_with("bucket.")) {
            prop_assert!(text.contains(bucket), "{} is not in the values", bucket);
        }
    }
}
