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
        // The finalizer.
        Rule::new(group.clone(), &[&plural], &["patch"]),
        Rule::new(group.clone(), &[&format!("{plural}/status")], &["patch"]),
    ];
    rules.extend(events::rules());
    for watch in R::watches() {
        if watch.only_ours {
            // Children block the deletion of their owner, which some clusters check.
            rules.push(Rule::new(
                group.clone(),
                &[&format!("{plural}/finalizers")],
                &["update"],
            ));
        }
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
    rules.extend(R::rules());
    rules
}
