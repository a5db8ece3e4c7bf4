//! Revokes what a manifest granted, for `deletionPolicy: Revoke`.
//!
//! Roles, schemas and everything that the manifest did not grant stay: only its own grants, default privileges and
//! memberships become absent. The scope is empty, so nothing else is inspected.

use std::collections::BTreeMap;

use super::{Desired, DesiredRole, Membership, Rule, Scope};

/// The desired state after the manifest is revoked. What `others` also grant stays.
pub fn after_deletion(given: &Desired, others: &[&Desired]) -> Desired {
    let mut desired = Desired::default();
    for (key, rule) in &given.grants {
        let kept = others.iter().filter_map(|other| other.grants.get(key));
        let rule = denied(*rule, kept);
        if !rule.absent.is_empty() {
            desired.grants.insert(key.clone(), rule);
        }
    }
    for (key, rule) in &given.default_privileges {
        let kept = others
            .iter()
            .filter_map(|other| other.default_privileges.get(key));
        let rule = denied(*rule, kept);
        if !rule.absent.is_empty() {
            desired.default_privileges.insert(key.clone(), rule);
        }
    }
    for (group, membership) in &given.memberships {
        let kept = |member: &String| {
            others
                .iter()
                .filter_map(|other| other.memberships.get(group))
                .any(|other| other.members.contains_key(member))
        };
        let absent = membership.members.keys().filter(|member| !kept(member)).cloned();
        let membership = Membership {
            absent: absent.collect(),
            ..Membership::default()
        };
        if !membership.absent.is_empty() {
            desired.memberships.insert(group.clone(), membership);
        }
    }
    // The roles are looked up, but neither created nor altered.
    desired.roles = given
        .roles
        .keys()
        .map(|name| {
            let role = DesiredRole {
                external: true,
                preserve_undeclared_grants: true,
                ..DesiredRole::default()
            };
            (name.clone(), role)
        })
        .collect::<BTreeMap<_, _>>();
    desired.scope = Scope::of(&desired);
    desired.scope.roles.clear();
    desired
}

fn denied<'a>(rule: Rule, others: impl Iterator<Item = &'a Rule>) -> Rule {
    let kept = others.fold(crate::model::Privileges::NONE, |kept, rule| {
        kept.union(rule.present)
    });
    Rule {
        absent: rule.present.without(kept),
        ..Rule::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expand::expand;
    use crate::manifest::{Strictness, load};

    fn desired(text: &str) -> Desired {
        expand(&load(text, Strictness::Lenient).unwrap().value)
    }

    #[test]
    fn only_what_was_given_is_taken_and_what_others_give_stays() {
        let ours = desired(
            "roles: [{name: a}]\n\
             grants: [{role: a, privileges: [SELECT, INSERT], object: {type: table, schema: s, name: t}}, \
                      {role: b, privileges: [USAGE], object: {type: schema, name: s}}]\n\
             memberships: [{role: a, members: [{name: x}, {name: y}]}]\n",
        );
        let other = desired(
            "grants: [{role: b, privileges: [USAGE], object: {type: schema, name: s}}]\n\
             memberships: [{role: a, members: [{name: y}]}]\n",
        );
        let left = after_deletion(&ours, &[&other]);
        let grants: Vec<_> = left
            .grants
            .iter()
            .map(|(key, rule)| (key.grantee.as_str(), rule.absent.to_string()))
            .collect();
        assert_eq!(grants, [("a", "INSERT, SELECT".to_owned())]);
        assert_eq!(left.memberships["a"].absent, ["x".to_owned()].into());
        assert!(!left.memberships["a"].exhaustive);
        assert!(left.schemas.is_empty() && left.roles["a"].external && left.scope.roles.is_empty());
    }
}
