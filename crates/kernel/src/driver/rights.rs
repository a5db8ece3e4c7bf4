//! What the driver itself does for a controller, as rights.

use kube::Resource;

use crate::events;
use crate::rbac::{READ, Rule};
use crate::reconciler::Reconciler;

/// All rights of one controller: for its own kind, for its events, for its watches, and its own rules.
/// Objects of its kind are the users': it neither creates nor deletes them.
pub fn rules<R: Reconciler>() -> Vec<Rule> {
    let (group, plural) = (R::Object::group(&()), R::Object::plural(&()));
    let mut rules = vec![
        Rule::new(group.clone(), &[&plural], READ),
        Rule::new(group.clone(), &[&format!("{plural}/status")], &["patch"]),
    ];
    if R::FINALIZER.is_some() {
        rules.push(Rule::new(group.clone(), &[&plural], &["patch"]));
    }
    if R::rules().iter().any(|rule| rule.verbs.contains(&"create")) {
        // Children hold up the deletion of their owner, and some clusters ask whether their maker may do that.
        let finalizers = format!("{plural}/finalizers");
        rules.push(Rule::new(group, &[&finalizers], &["update"]));
    }
    rules.extend(events::rules());
    for kind in R::families().resources() {
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
    for kind in R::foreign() {
        rules.push(Rule::new(kind.group, &[kind.plural], &["list", "watch"]));
    }
    if !R::foreign().is_empty() {
        // Whether they are there.
        rules.push(Rule::new("apiextensions.k8s.io", &["customresourcedefinitions"], READ).cluster_wide());
    }
    rules.extend(R::rules());
    rules
}
