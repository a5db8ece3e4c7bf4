//! CEL in admission: the conditions of webhooks and policies, and the validations of policies.

use kube_cel::{AdmissionRequest, GroupVersionKind, GroupVersionResource, VapEvaluator, VapExpression};
use regex::{Captures, Regex};
use serde_json::Value;

use super::Attempt;
use crate::store::text;

/// The result of an expression for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    True,
    /// False, with the message if there is one.
    False(String),
    /// The expression cannot be evaluated, with the reason.
    Error(String),
}

/// The variables of the expressions.
pub(crate) struct Subject(VapEvaluator);

impl Subject {
    pub(crate) fn new(attempt: Attempt<'_>, params: Option<Value>) -> Self {
        let Attempt {
            call, object, old, ..
        } = attempt;
        let resource = &call.resource;
        let request = AdmissionRequest {
            operation: attempt.operation.name().to_owned(),
            username: call.user.name.clone(),
            uid: call.user.uid.clone(),
            groups: call.user.groups.clone(),
            name: attempt.name().to_owned(),
            namespace: call.namespace(),
            dry_run: attempt.dry_run,
            kind: GroupVersionKind {
                group: resource.group.clone(),
                version: resource.version.clone(),
                kind: resource.kind.clone(),
            },
            resource: GroupVersionResource {
                group: resource.group.clone(),
                version: resource.version.clone(),
                resource: resource.plural.clone(),
            },
        };
        let mut builder = VapEvaluator::builder().object(object.clone()).request(request);
        if let Some(old) = old {
            builder = builder.old_object(old.clone());
        }
        if let Some(params) = params {
            builder = builder.params(params);
        }
        if let Some(namespace) = attempt.server.store.get("/namespaces", &call.namespace()) {
            builder = builder.namespace_object(namespace.value().clone());
        }
        Self(builder.build())
    }

    pub(crate) fn judge(&self, expression: &str, message: &str, message_expression: Option<&str>) -> Verdict {
        // The library reports an internal failure only in its text.
        const FAILURES: [&str; 3] = [
            "evaluation error: ",
            "failed to compile ",
            "expression returned non-boolean",
        ];
        let expression = VapExpression {
            expression: expression.to_owned(),
            message: Some(message.to_owned()),
            message_expression: message_expression.map(str::to_owned),
        };
        let result = self.0.evaluate(&[expression]).into_iter().next();
        match result {
            Some(result) if result.passed => Verdict::True,
            Some(result) => {
                let said = result.message.unwrap_or_default();
                if FAILURES.iter().any(|failure| said.starts_with(failure)) && said != message {
                    Verdict::Error(said)
                } else {
                    Verdict::False(said)
                }
            }
            None => Verdict::Error("nothing was evaluated".to_owned()),
        }
    }

    /// Whether all conditions hold; the first error, if no condition is false.
    pub(crate) fn meets(&self, conditions: Option<&Value>, variables: &Variables) -> Result<bool, String> {
        let mut failed = None;
        for condition in conditions.and_then(Value::as_array).into_iter().flatten() {
            match self.judge(&variables.put_into(text(condition, "/expression")), "", None) {
                Verdict::True => {}
                Verdict::False(_) => return Ok(false),
                Verdict::Error(why) => failed = failed.or(Some(why)),
            }
        }
        failed.map_or(Ok(true), Err)
    }
}

/// The named expressions of a policy. Each may use those before it.
#[derive(Debug, Default)]
pub(crate) struct Variables(Vec<(String, String)>);

impl Variables {
    pub(crate) fn of(policy: &Value) -> Self {
        let mut known = Self::default();
        for variable in policy
            .pointer("/spec/variables")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let expression = known.put_into(text(variable, "/expression"));
            known.0.push((text(variable, "/name").to_owned(), expression));
        }
        known
    }

    /// An expression in which every variable is replaced by its definition.
    pub(crate) fn put_into(&self, expression: &str) -> String {
        let Ok(pattern) = Regex::new(r"\bvariables\.([A-Za-z_][A-Za-z0-9_]*)") else {
            return expression.to_owned();
        };
        let value = |found: &Captures<'_>| {
            let name = found.get(1).map_or("", |name| name.as_str());
            let known = self.0.iter().find(|(known, _)| known == name);
            known.map_or_else(|| found[0].to_owned(), |(_, value)| format!("({value})"))
        };
        pattern.replace_all(expression, value).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn variables_build_on_each_other() {
        let policy = json!({"spec": {"variables": [
            {"name": "a", "expression": "object.a"}, {"name": "b", "expression": "variables.a + 1"},
        ]}});
        let variables = Variables::of(&policy);
        assert_eq!(
            variables.put_into("variables.b > variables.c"),
            "((object.a) + 1) > variables.c"
        );
    }
}
