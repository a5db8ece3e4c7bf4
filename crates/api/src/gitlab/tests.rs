use kube::CustomResourceExt as _;
use kube::core::cel::validate_cel;
use serde_json::{Value, json};

use super::*;

fn instance(change: impl FnOnce(&mut Value)) -> serde_json::Result<GitlabInstance> {
    let mut object = json!({
        "apiVersion": "k8s.bnerd.com/v1alpha1", "kind": "GitlabInstance", "metadata": {"name": "it"},
        "spec": { "domains": { "gitlab": "git.example.com" } },
    });
    change(&mut object["spec"]);
    serde_json::from_value(object)
}

#[test]
fn a_minimal_instance_is_the_latest_community_edition() {
    let spec = instance(|_| {}).unwrap().spec;
    assert_eq!((spec.version.as_str(), spec.edition), ("latest", Edition::Ce));
    assert!(!spec.postgres.managed && !spec.redis.managed && !spec.elasticsearch.managed);
    assert!(spec.upgrade.wait_for_migrations);
}

#[test]
fn the_enterprise_edition_needs_a_license() {
    validate_cel(&instance(|_| {}).unwrap()).unwrap();
    let licensed = |spec: &mut Value| {
        spec["edition"] = json!("ee");
        spec["licenseSecret"] = json!("license");
    };
    validate_cel(&instance(licensed).unwrap()).unwrap();
    let unlicensed = instance(|spec| spec["edition"] = json!("ee")).unwrap();
    let error = format!("{:?}", validate_cel(&unlicensed).unwrap_err());
    assert!(error.contains("licenseSecret"), "{error}");
}

#[test]
fn a_domain_and_a_known_edition_are_required() {
    instance(|spec| spec["domains"] = json!({})).unwrap_err();
    instance(|spec| spec["edition"] = json!("xx")).unwrap_err();
}

#[test]
fn a_value_of_null_is_not_lost() {
    let spec = instance(|spec| spec["helm"] = json!({ "values": { "global": { "smtp": null } } }))
        .unwrap()
        .spec;
    let written = serde_json::to_value(&spec).unwrap();
    assert_eq!(written["helm"]["values"], json!({ "global": { "smtp": null } }));
}

/// The reason is that of `Ready`, also while the instance is deleted.
#[test]
fn the_columns_say_the_state_and_the_reason() {
    let crd = serde_json::to_value(GitlabInstance::crd()).unwrap();
    let columns = crd["spec"]["versions"][0]["additionalPrinterColumns"].as_array();
    let columns: Vec<(&str, &str)> = columns
        .unwrap()
        .iter()
        .map(|column| {
            (
                column["name"].as_str().unwrap(),
                column["jsonPath"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        columns,
        [
            ("Phase", ".status.phase"),
            ("Host", ".status.host"),
            ("Version", ".status.observedVersion"),
            ("Reason", ".status.conditions[?(@.type==\"Ready\")].reason"),
            ("Message", ".status.message"),
            ("Age", ".metadata.creationTimestamp"),
        ]
    );
}
