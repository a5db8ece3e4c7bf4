//! Tests that a manifest of pgroles applies unchanged: every field in its schema exists here with the same type.
//!
//! The API server silently drops unknown fields, so nothing else would report a missing one.

use kube::CustomResourceExt;
use serde_json::Value;

use super::{PostgresPolicy, PostgresPolicyPlan};

/// The schema at a path such as `.spec.roles[].name` or `.spec.profiles.<key>.login`.
fn at<'a>(schema: &'a Value, path: &str) -> Option<&'a Value> {
    let steps = path.replace("[]", ".[]");
    steps
        .split('.')
        .filter(|step| !step.is_empty())
        .try_fold(schema, |schema, step| match step {
            "[]" => schema.get("items"),
            "<key>" => schema.get("additionalProperties"),
            name => schema.get("properties")?.get(name),
        })
}

#[test]
fn every_field_of_the_original_is_a_field() {
    let crd = serde_json::to_value(PostgresPolicy::crd()).unwrap();
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let lines = include_str!("original-fields.txt").lines();
    for line in lines.filter(|line| !line.starts_with('#')) {
        let (path, kind) = line.split_once(' ').unwrap();
        let found = at(schema, path).unwrap_or_else(|| panic!("there is no {path}"));
        assert_eq!(found["type"], kind, "{path}");
    }
}

#[test]
fn names_and_columns_are_the_originals() {
    let columns = |crd: &Value| -> Vec<String> {
        let columns = crd["spec"]["versions"][0]["additionalPrinterColumns"].as_array();
        let names = columns
            .unwrap()
            .iter()
            .map(|column| column["name"].as_str().unwrap());
        names.map(str::to_owned).collect()
    };
    let policy = serde_json::to_value(PostgresPolicy::crd()).unwrap();
    assert_eq!(policy["metadata"]["name"], "postgrespolicies.pgroles.io");
    assert_eq!(policy["spec"]["names"]["shortNames"][0], "pgr");
    assert_eq!(policy["spec"]["names"]["categories"][0], "pgroles");
    assert_eq!(
        columns(&policy),
        [
            "Ready",
            "Mode",
            "Recon",
            "Drift",
            "Changes",
            "Last Reconcile",
            "Age"
        ]
    );
    let plan = serde_json::to_value(PostgresPolicyPlan::crd()).unwrap();
    assert_eq!(plan["metadata"]["name"], "postgrespolicyplans.pgroles.io");
    assert_eq!(plan["spec"]["names"]["shortNames"][0], "pgplan");
    assert_eq!(
        columns(&plan),
        [
            "Policy",
            "Mode",
            "Approved",
            "Changes",
            "SQL Stmts",
            "Phase",
            "SQL",
            "Hash",
            "Age"
        ]
    );
}
