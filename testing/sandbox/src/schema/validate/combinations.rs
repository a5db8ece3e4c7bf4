//! Schemas that consist of schemas.

use serde_json::Value;

use super::super::Schema;
use super::{loose, walk};
use crate::error::FieldError;

/// `allOf`, `anyOf`, `oneOf` and `not`: in a structural schema they contain value validations only.
pub(super) fn combinations(schema: Schema<'_>, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let node = schema.node();
    let failures = |branch: &Value| {
        let mut found = Vec::new();
        walk(Schema::custom(branch), value, path, &mut found);
        found
    };
    let results = |key: &str| -> Vec<Vec<FieldError>> {
        let branches = node.get(key).and_then(Value::as_array).into_iter().flatten();
        branches.map(failures).collect()
    };
    let passing = |results: &[Vec<FieldError>]| results.iter().filter(|found| found.is_empty()).count();
    // If all branches fail, the first one with the fewest errors is reported.
    let best = |results: Vec<Vec<FieldError>>| results.into_iter().min_by_key(Vec::len).unwrap_or_default();

    let all = results("allOf");
    if passing(&all) < all.len() {
        let how_many = if passing(&all) == 0 {
            ". None validated"
        } else {
            ""
        };
        errors.extend(all.into_iter().flatten());
        errors.push(loose(format!(
            "\"{path}\" must validate all the schemas (allOf){how_many}"
        )));
    }
    let any = results("anyOf");
    if !any.is_empty() && passing(&any) == 0 && !schema.is_int_or_string() {
        errors.extend(best(any));
        errors.push(loose(format!(
            "\"{path}\" must validate at least one schema (anyOf)"
        )));
    }
    let one = results("oneOf");
    let matching = passing(&one);
    if !one.is_empty() && matching != 1 {
        let count = if matching == 0 {
            errors.extend(best(one));
            "Found none valid".to_owned()
        } else {
            format!("Found {matching} valid alternatives")
        };
        errors.push(loose(format!(
            "\"{path}\" must validate one and only one schema (oneOf). {count}"
        )));
    }
    if node.get("not").is_some_and(|branch| failures(branch).is_empty()) {
        errors.push(loose(format!("\"{path}\" must not validate the schema (not)")));
    }
}
