//! Revokes what a manifest granted, for `deletionPolicy: Revoke`.
//!
//! Roles, schemas and everything that the manifest does not declare stay: only its own grants, default privileges and
//! memberships become absent. What others declare stays, object by object: a wildcard spares what another one names. The
//! scope is empty, so nothing else is inspected.

use std::collections::{BTreeMap, BTreeSet};

use super::{Desired, DesiredRole, Membership, Rule, Scope};
use crate::model::Privileges;

/// What another manifest declares on the same server.
#[derive(Clone, Copy)]
pub struct Other<'a> {
    /// Its desired state.
    pub desired: &'a Desired,
    /// Whether it is about the same database. Memberships belong to the server.
    pub same_database: bool,
}

/// The desired state after the manifest is revoked. What `others` also declare stays.
pub fn after_deletion(given: &Desired, others: &[Other<'_>]) -> Desired {
    let mut desired = Desired::default();
    let here = || others.iter().filter(|other| other.same_database);
    for (key, rule) in &given.grants {
        let kept = here().filter_map(|other| other.desired.grants.get(key));
        let rule = denied(*rule, kept);
        if !rule.absent.is_empty() {
            desired.grants.insert(key.clone(), rule);
        }
    }
    let losing: BTreeSet<_> = desired.grants.keys().map(|key| key.grantee.clone()).collect();
    for (key, rule) in here().flat_map(|other| &other.desired.grants) {
        if losing.contains(&key.grantee) && !rule.present.is_empty() {
            let spared = desired.spared.entry(key.clone()).or_default();
            spared.add(rule.present);
        }
    }
    for (key, rule) in &given.default_privileges {
        let kept = here().filter_map(|other| other.desired.default_privileges.get(key));
        let rule = denied(*rule, kept);
        if !rule.absent.is_empty() {
            desired.default_privileges.insert(key.clone(), rule);
        }
    }
    for (group, membership) in &given.memberships {
        let kept = |member: &String| {
            others
                .iter()
                .filter_map(|other| other.desired.memberships.get(group))
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
    let kept = others.fold(Privileges::NONE, |kept, rule| kept.union(rule.present));
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
        let here = Other {
            desired: &other,
            same_database: true,
        };
        let left = after_deletion(&ours, &[here]);
        let grants: Vec<_> = left
            .grants
            .iter()
            .map(|(key, rule)| (key.grantee.as_str(), rule.absent.to_string()))
            .collect();
        assert_eq!(grants, [("a", "INSERT, SELECT".to_owned())]);
        assert_eq!(left.memberships["a"].absent, ["x".to_owned()].into());
        assert!(!left.memberships["a"].exhaustive);
        let elsewhere = Other {
            same_database: false,
            ..here
        };
        let elsewhere = after_deletion(&ours, &[elsewhere]);
        assert_eq!((elsewhere.grants.len(), elsewhere.spared.len()), (2, 0));
        assert_eq!(elsewhere.memberships["a"].absent, ["x".to_owned()].into());
        assert!(left.schemas.is_empty() && left.roles["a"].external && left.scope.roles.is_empty());
    }
}
