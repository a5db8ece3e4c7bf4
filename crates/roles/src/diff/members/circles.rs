//! Blocks memberships that PostgreSQL refuses because they are circular.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::Facts;
use crate::plan::{Blocker, Change, Check, Plan};

/// Blocks a membership that would be circular, because of one that the plan does not remove: PostgreSQL refuses it.
pub(in crate::diff) fn block_circles(facts: &Facts, plan: &mut Plan) {
    let mut removed = BTreeSet::new();
    let mut groups: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for change in &plan.changes {
        match change {
            Change::RemoveMember { role, member, .. } => {
                removed.insert((role.as_str(), member.as_str()));
            }
            Change::AddMember { role, member, .. } => {
                groups.entry(member).or_default().insert(role);
            }
            _ => {}
        }
    }
    for (role, member) in &facts.ancestry {
        if !removed.contains(&(role.as_str(), member.as_str())) {
            groups.entry(member).or_default().insert(role);
        }
    }
    let mut blockers = vec![];
    for change in &plan.changes {
        let Change::AddMember { role, member, .. } = change else {
            continue;
        };
        if leads_to(&groups, role, member) {
            blockers.push(Blocker {
                check: Check::ServerCompatibility,
                code: "circular_membership",
                role: Some(role.clone()),
                message: format!(
                    "\"{member}\" cannot become a member of \"{role}\": \"{role}\" is a member of \"{member}\", \
                     directly or through other roles, and stays so"
                ),
            });
        }
    }
    plan.blockers.append(&mut blockers);
}

fn leads_to(groups: &BTreeMap<&str, BTreeSet<&str>>, from: &str, to: &str) -> bool {
    let mut open = vec![from];
    let mut seen = BTreeSet::new();
    while let Some(role) = open.pop() {
        if role == to {
            return true;
        }
        open.extend(
            groups
                .get(role)
                .into_iter()
                .flatten()
                .filter(|group| seen.insert(**group)),
        );
    }
    false
}
