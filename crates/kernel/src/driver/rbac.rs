//! The RBAC rules that the driver needs for a controller.

use kube::Resource;

use crate::events;
use crate::rbac::{READ, Rule};
use crate::reconciler::{Reconciler, finalizer};

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
