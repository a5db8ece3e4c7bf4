//! The minimal RBAC rules, declared beside the code that uses them and rendered from there.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::Resource as _;

use crate::events;
use crate::reconciler::{Reconciler, finalizer};

/// Verbs for a kind that is only read.
pub const READ: &[&str] = &["get", "list", "watch"];
/// Verbs for children that a controller owns. They are applied, and never updated.
pub const OWN: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];

/// Some verbs on some resources of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// API group; empty for the core group.
    pub group: Cow<'static, str>,
    /// Plural resource names, with `/subresource` where meant.
    pub resources: Vec<String>,
    /// Restricts the rule to these objects; empty for all. `create` cannot be restricted: the authorizer does not know
    /// the name of a new object.
    pub names: Vec<String>,
    /// Verbs.
    pub verbs: &'static [&'static str],
    /// Whether the resources are cluster-scoped: only a `ClusterRole` can grant the rule.
    pub cluster_wide: bool,
}

impl Rule {
    /// A rule for namespaced resources of one group.
    pub fn new(
        group: impl Into<Cow<'static, str>>,
        resources: &[&str],
        verbs: &'static [&'static str],
    ) -> Self {
        Self {
            group: group.into(),
            resources: resources.iter().map(ToString::to_string).collect(),
            names: Vec::new(),
            verbs,
            cluster_wide: false,
        }
    }

    /// Restricts the rule to objects with these names.
    #[must_use]
    pub fn named(self, names: &[&str]) -> Self {
        Self {
            names: names.iter().map(ToString::to_string).collect(),
            ..self
        }
    }

    /// Makes the rule apply to cluster-scoped resources.
    #[must_use]
    pub fn cluster_wide(self) -> Self {
        Self {
            cluster_wide: true,
            ..self
        }
    }
}

/// Merges rules into the shortest equivalent list: one rule for each group, set of names and set of verbs.
pub fn merge(rules: &[Rule]) -> Vec<PolicyRule> {
    /// A group, and the names in it.
    type Where<'a> = (&'a str, &'a [String]);
    let mut verbs_of: BTreeMap<(Where<'_>, &str), BTreeSet<&str>> = BTreeMap::new();
    for rule in rules {
        for resource in &rule.resources {
            verbs_of
                .entry(((&rule.group, &rule.names), resource))
                .or_default()
                .extend(rule.verbs);
        }
    }
    let mut resources_of: BTreeMap<(Where<'_>, Vec<&str>), Vec<String>> = BTreeMap::new();
    for ((place, resource), verbs) in verbs_of {
        resources_of
            .entry((place, verbs.into_iter().collect()))
            .or_default()
            .push(resource.into());
    }
    resources_of
        .into_iter()
        .map(|(((group, names), verbs), resources)| PolicyRule {
            api_groups: Some(vec![group.into()]),
            resources: Some(resources),
            resource_names: (!names.is_empty()).then(|| names.to_vec()),
            verbs: verbs.into_iter().map(Into::into).collect(),
            ..PolicyRule::default()
        })
        .collect()
}

/// All RBAC rules of one controller: for its own kind, its events, its watches, and its own rules. Users own the
/// objects of its kind: it neither creates nor deletes them.
pub fn rules<R: Reconciler>() -> Vec<Rule> {
    let (group, plural) = (R::Object::group(&()), R::Object::plural(&()));
    let mut rules = vec![
        Rule::new(group.clone(), &[&plural], READ),
        Rule::new(group.clone(), &[&format!("{plural}/status")], &["patch"]),
    ];
    if finalizer::<R>().is_some() {
        rules.push(Rule::new(group.clone(), &[&plural], &["patch"]));
    }
    if R::rules().iter().any(|rule| rule.verbs.contains(&"create")) {
        // Children block the deletion of their owner, and some clusters check whether their creator may do that.
        let finalizers = format!("{plural}/finalizers");
        rules.push(Rule::new(group, &[&finalizers], &["update"]));
    }
    rules.extend(events::rules());
    for kind in R::child_kinds().resources() {
        rules.push(Rule::new(kind.group.clone(), &[&kind.plural], &["list", "watch"]));
    }
    for watch in R::watches() {
        let watched = Rule::new(
            watch.resource.group,
            &[&watch.resource.plural],
            &["list", "watch"],
        );
        rules.push(Rule {
            cluster_wide: !watch.namespaced,
            ..watched
        });
    }
    for kind in R::external_kinds() {
        rules.push(Rule::new(kind.group, &[kind.plural], &["list", "watch"]));
    }
    if !R::external_kinds().is_empty() {
        // To find out whether they exist.
        rules.push(Rule::new("apiextensions.k8s.io", &["customresourcedefinitions"], READ).cluster_wide());
    }
    rules.extend(R::rules());
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_joined_without_granting_more() {
        let merged = merge(&[
            Rule::new("", &["secrets"], READ),
            Rule::new("", &["secrets", "configmaps"], &["get"]),
            Rule::new("apps", &["deployments"], READ),
        ]);
        let shown: Vec<String> = merged
            .iter()
            .map(|rule| {
                let groups = rule.api_groups.clone().unwrap_or_default();
                format!(
                    "{groups:?} {:?} {:?}",
                    rule.resources.clone().unwrap_or_default(),
                    rule.verbs
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                r#"[""] ["configmaps"] ["get"]"#,
                r#"[""] ["secrets"] ["get", "list", "watch"]"#,
                r#"["apps"] ["deployments"] ["get", "list", "watch"]"#,
            ]
        );
    }

    #[test]
    fn a_rule_for_one_name_is_not_joined_with_a_rule_for_all() {
        let merged = merge(&[
            Rule::new("rbac.authorization.k8s.io", &["clusterroles"], &["bind"]).named(&["one"]),
            Rule::new("rbac.authorization.k8s.io", &["clusterroles"], &["get"]),
        ]);
        let shown: Vec<_> = merged
            .iter()
            .map(|rule| (rule.verbs.join(","), rule.resource_names.clone()))
            .collect();
        assert_eq!(
            shown,
            [
                ("get".to_owned(), None),
                ("bind".to_owned(), Some(vec!["one".to_owned()])),
            ]
        );
    }
}
