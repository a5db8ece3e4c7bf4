//! Validation of the rules of a schema (`x-kubernetes-validations`).

use std::sync::LazyLock;

use kube_cel::compile_schema;
use regex::Regex;
use serde_json::{Value, json};

use crate::error::{Fault, FieldError};
use crate::store::text;

const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

static LITERALS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'"#).ok());
static FIELDS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\b(?:self|oldSelf)(\.)([A-Za-z][A-Za-z0-9_]*)\s*(\()?").ok());
static OLD: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\boldSelf\b").ok());

/// A part of a schema.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) path: &'a str,
    pub(super) is_root: bool,
    /// The list around it whose items have no identity, so that there is no old value to compare with.
    list: Option<&'a str>,
}

impl<'a> Place<'a> {
    pub(super) const fn root(path: &'a str) -> Self {
        Self {
            path,
            is_root: true,
            list: None,
        }
    }

    pub(super) const fn inside(self, path: &'a str) -> Self {
        Self {
            path,
            is_root: false,
            list: self.list,
        }
    }

    /// The items of the list at this place.
    pub(super) fn item<'b>(self, path: &'b str, is_map: bool) -> Place<'b>
    where
        'a: 'b,
    {
        Place {
            path,
            is_root: false,
            list: self.list.or((!is_map).then_some(self.path)),
        }
    }
}

/// Rules must exist and must parse. The type check covers only the fields of `self`.
pub(super) fn check(schema: &Value, place: Place<'_>, errors: &mut Vec<FieldError>) {
    let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
    for (index, rule) in rules.into_iter().flatten().enumerate() {
        let at = format!("{}.x-kubernetes-validations[{index}]", place.path);
        let source = text(rule, "/rule");
        if source.trim().is_empty() {
            errors.push(FieldError::required(
                format!("{at}.rule"),
                "rule is not specified",
            ));
            continue;
        }
        compile(schema, rule, &at, errors);
        let uses_old = OLD
            .as_ref()
            .is_some_and(|old| old.is_match(&without_literals(source)));
        if let Some(list) = place.list.filter(|_| uses_old) {
            let detail =
                format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {list}");
            errors.push(FieldError::invalid(format!("{at}.rule"), &json!(source), detail));
        }
        if rule.get("optionalOldSelf").is_some_and(|given| !given.is_null()) && !uses_old {
            let detail = "may not be set if oldSelf is not used in rule";
            let field = format!("{at}.optionalOldSelf");
            errors.push(FieldError::invalid(field, &rule["optionalOldSelf"], detail));
        }
        words(schema, rule, &at, errors);
    }
}

/// Both expressions of a rule must parse.
fn compile(schema: &Value, rule: &Value, at: &str, errors: &mut Vec<FieldError>) {
    for (key, head) in [
        ("rule", "compilation failed"),
        ("messageExpression", "messageExpression compilation failed"),
    ] {
        let source = text(rule, &format!("/{key}"));
        if source.trim().is_empty() {
            continue;
        }
        let alone = json!({"type": schema.get("type"), "x-kubernetes-validations": [{"rule": source}]});
        let broken = compile_schema(&alone)
            .compilation_errors()
            .first()
            .map(ToString::to_string);
        let why = broken.or_else(|| unknown_field(schema, source));
        if let Some(why) = why {
            errors.push(FieldError::invalid(
                format!("{at}.{key}"),
                &as_go(rule),
                format!("{head}: {why}"),
            ));
        }
    }
}

/// The rule in the format of errors: with the original's Go type.
fn as_go(rule: &Value) -> Value {
    let word = |key: &str| rule.get(key).cloned().unwrap_or_else(|| json!(""));
    let optional = |key: &str| rule.get(key).cloned().unwrap_or_default();
    json!({
        "Rule": word("rule"), "Message": word("message"), "MessageExpression": word("messageExpression"),
        "Reason": optional("reason"), "FieldPath": word("fieldPath"), "OptionalOldSelf": optional("optionalOldSelf"),
    })
}

/// The message, the reason and the field path of a rule.
fn words(schema: &Value, rule: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let reason = text(rule, "/reason");
    if !reason.is_empty() && !REASONS.contains(&reason) {
        let known: Vec<String> = REASONS.iter().map(|known| format!("\"{known}\"")).collect();
        let detail = format!("supported values: {}", known.join(", "));
        errors.push(FieldError::new(
            Fault::NotSupported,
            format!("{at}.reason"),
            Some(json!(reason)),
            detail,
        ));
    }
    let message = text(rule, "/message");
    let field = format!("{at}.message");
    if message.contains(['\n', '\r']) {
        let detail = "must not contain line breaks";
        errors.push(FieldError::invalid(&field, &json!(message), detail));
    }
    if !message.is_empty() && message.trim().is_empty() {
        errors.push(FieldError::invalid(
            &field,
            &json!(message),
            "must be non-empty if specified",
        ));
    }
    if message.is_empty() && text(rule, "/rule").contains(['\n', '\r']) {
        let detail = "message must be specified if rule contains line breaks";
        errors.push(FieldError::required(&field, detail));
    }
    let path = text(rule, "/fieldPath");
    if !path.is_empty() && !path.contains('[') && !is_path(schema, path) {
        let detail = "must be a valid path";
        errors.push(FieldError::invalid(
            format!("{at}.fieldPath"),
            &json!(path),
            detail,
        ));
    }
}

/// Whether a path of names exists in the schema.
fn is_path(schema: &Value, path: &str) -> bool {
    let Some(path) = path.strip_prefix('.') else {
        return false;
    };
    let mut at = Some(schema);
    for name in path.split('.') {
        at = at.and_then(|schema| {
            schema
                .get("properties")?
                .get(name)
                .or_else(|| schema.get("additionalProperties"))
        });
    }
    at.is_some()
}

/// The rule with blanks in place of its literals, so that positions stay.
fn without_literals(rule: &str) -> String {
    let blank = |found: &regex::Captures<'_>| {
        " ".repeat(found.get(0).map_or(0, |found| found.as_str().chars().count()))
    };
    LITERALS.as_ref().map_or_else(
        || rule.to_owned(),
        |literals| literals.replace_all(rule, blank).into_owned(),
    )
}

/// The error of the first field of `self` that the schema does not have, if the schema lists all fields.
fn unknown_field(schema: &Value, rule: &str) -> Option<String> {
    let nothing = serde_json::Map::new();
    let open = ["additionalProperties", "x-kubernetes-embedded-resource"];
    if text(schema, "/type") != "object" || open.iter().any(|key| schema.get(*key).is_some()) {
        return None;
    }
    let properties = schema
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&nothing);
    let bare = without_literals(rule);
    // A name with a call is a function; escaped names are not checked.
    let names = FIELDS.as_ref()?.captures_iter(&bare);
    names.filter(|found| found.get(3).is_none()).find_map(|found| {
        let name = found.get(2)?.as_str();
        let known = properties.contains_key(name) || name.contains("__");
        if known || matches!(name, "apiVersion" | "kind" | "metadata") {
            return None;
        }
        let before = bare.get(..found.get(1)?.start())?;
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next()?.chars().count();
        let source = rule.lines().nth(line - 1)?;
        Some(format!(
            "ERROR: <input>:{line}:{}: undefined field '{name}'\n | {source}\n | {}^",
            column + 1,
            ".".repeat(column)
        ))
    })
}
