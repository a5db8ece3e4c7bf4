//! `ValidatingAdmissionPolicies`: rules of the cluster in CEL.

use std::sync::Arc;

use serde_json::{Value, json};

use super::expressions::{Subject, Variables, Verdict};
use super::{Attempt, rules};
use crate::error::{About, ApiError};
use crate::store::{self, Object, text};

const POLICIES: &str = "admissionregistration.k8s.io/validatingadmissionpolicies";
const BINDINGS: &str = "admissionregistration.k8s.io/validatingadmissionpolicybindings";

/// Checks every policy that has a binding.
pub(crate) fn check(attempt: Attempt<'_>, warnings: &mut Vec<String>) -> Result<(), ApiError> {
    for (_, binding) in attempt.server.store.list(BINDINGS, None).objects {
        let policy = attempt
            .server
            .store
            .get(POLICIES, binding.text("/spec/policyName"));
        if let Some(policy) = policy {
            attempt.ask(&policy, &binding, warnings)?;
        }
    }
    Ok(())
}

impl Attempt<'_> {
    fn ask(self, policy: &Object, binding: &Object, warnings: &mut Vec<String>) -> Result<(), ApiError> {
        let spec = &policy.value()["spec"];
        let concerned = [
            spec.get("matchConstraints"),
            binding.value().pointer("/spec/matchResources"),
        ]
        .into_iter()
        .flatten()
        .all(|constraints| rules::concerns(self, constraints, "resourceRules").is_some());
        if !concerned {
            return Ok(());
        }
        let ignores_failure = text(spec, "/failurePolicy") == "Ignore";
        let variables = Variables::of(policy.value());
        for params in self.params(spec, binding)? {
            let subject = Subject::new(self, params);
            match subject.meets(spec.get("matchConditions"), &variables) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(_) if ignores_failure => continue,
                Err(why) => return Err(self.denied(policy, binding, &why, "Invalid")),
            }
            for rule in spec
                .get("validations")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                let expression = text(rule, "/expression");
                let fallback = match text(rule, "/message") {
                    "" => format!("failed expression: {}", expression.trim()),
                    message => message.to_owned(),
                };
                let message = rule.get("messageExpression").and_then(Value::as_str);
                let message = message.map(|message| variables.put_into(message));
                let said = match subject.judge(&variables.put_into(expression), &fallback, message.as_deref())
                {
                    Verdict::True => continue,
                    Verdict::Error(_) if ignores_failure => continue,
                    Verdict::False(said) => said,
                    Verdict::Error(why) => format!("expression '{expression}' resulted in error: {why}"),
                };
                self.act(policy, binding, &said, text(rule, "/reason"), warnings)?;
            }
        }
        Ok(())
    }

    /// The objects that a binding names as parameters; `None` if it has none.
    fn params(self, spec: &Value, binding: &Object) -> Result<Vec<Option<Value>>, ApiError> {
        let reference = binding.value().pointer("/spec/paramRef");
        let (Some(kind), Some(reference)) = (spec.get("paramKind"), reference) else {
            return Ok(vec![None]);
        };
        let version = text(kind, "/apiVersion");
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let resource = self
            .server
            .registry
            .of_kind(group, Some(version), text(kind, "/kind"));
        let found: Option<Arc<Object>> = resource.and_then(|resource| {
            let namespace = match text(reference, "/namespace") {
                _ if !resource.namespaced => String::new(),
                "" => self.call.namespace(),
                namespace => namespace.to_owned(),
            };
            let key = store::key(&namespace, text(reference, "/name"));
            self.server.store.get(&resource.storage, &key)
        });
        match found {
            Some(found) => Ok(vec![Some(found.value().clone())]),
            None if text(reference, "/parameterNotFoundAction") == "Allow" => Ok(Vec::new()),
            None => Err(ApiError::forbidden(
                self.about(),
                "no params found for policy binding with `Deny` parameterNotFoundAction",
            )),
        }
    }

    fn about(&self) -> About<'_> {
        About {
            name: self.name(),
            ..self.call.about()
        }
    }

    /// Does what the binding defines for a failed validation.
    fn act(
        self,
        policy: &Object,
        binding: &Object,
        message: &str,
        reason: &str,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        let actions = binding
            .value()
            .pointer("/spec/validationActions")
            .and_then(Value::as_array);
        let does = |action: &str| actions.is_some_and(|actions| actions.contains(&json!(action)));
        if does("Warn") {
            warnings.push(format!(
                "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {message}",
                policy.name(),
                binding.name()
            ));
        }
        if does("Deny") {
            return Err(self.denied(policy, binding, message, reason));
        }
        Ok(())
    }

    fn denied(&self, policy: &Object, binding: &Object, message: &str, reason: &str) -> ApiError {
        let message = format!(
            "ValidatingAdmissionPolicy '{}' with binding '{}' denied request: {message}",
            policy.name(),
            binding.name()
        );
        let (code, reason) = match reason {
            "Unauthorized" => (401, "Unauthorized"),
            "Forbidden" => (403, "Forbidden"),
            "RequestEntityTooLarge" => (413, "RequestEntityTooLarge"),
            _ => (422, "Invalid"),
        };
        let mut error = ApiError::forbidden(self.about(), &message);
        error.code = code;
        error.reason = reason.into();
        error
            .details
            .insert("causes".to_owned(), json!([{"message": message}]));
        error
    }
}
