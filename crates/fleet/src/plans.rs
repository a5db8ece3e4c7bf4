//! The plans of policies that are history: pure.
//!
//! A policy keeps its last plans. A plan that failed needs a person only as long as its policy is not ready: later plans, or a
//! change in the database, may have done what it could not.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::assess::condition;
use crate::cluster::text;

/// The kind of the plans.
pub const PLAN: &str = "PostgresPolicyPlan";
const POLICY: &str = "PostgresPolicy";

/// The policies that are ready, by namespace and name.
#[derive(Debug)]
pub struct ReadyPolicies<'a>(BTreeSet<(&'a str, &'a str)>);

impl<'a> ReadyPolicies<'a> {
    /// Those among these objects, each with its kind.
    pub fn of(objects: impl IntoIterator<Item = (&'a str, &'a Value)>) -> Self {
        let policies = objects.into_iter().filter(|(kind, _)| *kind == POLICY);
        let ready = policies.filter(|(_, policy)| {
            condition(policy, "Ready").is_some_and(|condition| condition["status"] == "True")
        });
        let names = ready.map(|(_, policy)| {
            (
                text(policy, "/metadata/namespace"),
                text(policy, "/metadata/name"),
            )
        });
        Self(names.collect())
    }

    /// Whether the policy of this plan is among them.
    pub fn has_that_of(&self, plan: &Value) -> bool {
        let policy = (
            text(plan, "/metadata/namespace"),
            text(plan, "/spec/policyRef/name"),
        );
        self.0.contains(&policy)
    }
}
