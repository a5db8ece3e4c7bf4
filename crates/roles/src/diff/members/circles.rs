//! Compares memberships.

use std::collections::{BTreeMap, BTreeSet};

use crate::expand::{Desired, MemberOptions};
use crate::facts::{Edge, Facts};
use crate::plan::{Blocker, Change, Check, Mode, Plan};

pub(super) struct Members {
    pub(super) removed: Vec<Change>,
    pub(super) added: Vec<Change>,
}

/// The first version in which a membership has its own options, and in which the grantor matters.
const WITH_OPTIONS: u32 = 160_000;

pub(super) fn diff(desired: &Desired, facts: &Facts, mode: Mode, plan: &mut Plan) -> Members {
    let mut members = Members {
        removed: vec![],
        added: vec![],
    };
    let mut edges: BTreeMap<(&str, &str), Vec<&Edge>> = BTreeMap::new();
    for edge in &facts.memberships {
        edges.entry((&edge.role, &edge.member)).or_default().push(edge);
    }
    let options_matter = facts.server.version >= WITH_OPTIONS;
    for (role, membership) in &desired.memberships {
        for (member, options) in &membership.members {
            if !options_matter && (!options.inherit || options.set == Some(false)) {
                plan.warnings.push(format!(
                    "member \"{member}\" of \"{role}\": before PostgreSQL 16 a membership has no INHERIT and SET options of its \
                     own; set `inherit` on the role \"{member}\""
                ));
            }
            match edges.get(&(role.as_str(), member.as_str())) {
                None => members.added.push(add(role, member, *options, options_matter)),
                Some(found) => {
                    // Additive mode revokes nothing.
                    let administers = |edge: &&&Edge| edge.admin && !is_creators(edge, facts);
                    if mode == Mode::Additive && !options.admin && found.iter().any(|edge| administers(&edge))
                    {
                        plan.warnings.push(format!(
                            "member \"{member}\" of \"{role}\" may add other members (ADMIN OPTION), which the manifest does \
                             not say; additive mode does not take it"
                        ));
                    }
                    let updates = found
                        .iter()
                        .filter_map(|edge| update(edge, *options, facts, options_matter));
                    members.added.extend(updates);
                }
            }
        }
    }
    for ((role, member), found) in edges {
        let membership = desired.memberships.get(role);
        if membership.is_some_and(|membership| membership.members.contains_key(member)) {
            continue;
        }
        let ours = desired.scope.roles.contains(member);
        let exclusive =
            mode == Mode::Authoritative && desired.roles.get(member).is_some_and(|role| role.exclusive);
        let unwanted =
            membership.is_some_and(|membership| membership.exhaustive || membership.absent.contains(member));
        if unwanted || (ours && exclusive) {
            members
                .removed
                .extend(found.iter().filter(|edge| !is_creators(edge, facts)).map(|edge| {
                    Change::RemoveMember {
                        role: role.to_owned(),
                        member: member.to_owned(),
                        grantor: grantor(edge, facts),
                    }
                }));
        } else if ours {
            plan.holdings.push(format!(
                "role \"{member}\" is also a member of \"{role}\", which the manifest does not say"
            ));
        }
    }
    members
}

/// Blocks a membership that would be circular, because of one that the plan does not remove: PostgreSQL refuses it.
pub(super) fn block_circles(facts: &Facts, plan: &mut Plan) {
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

fn add(role: &str, member: &str, options: MemberOptions, options_matter: bool) -> Change {
    Change::AddMember {
        role: role.to_owned(),
        member: member.to_owned(),
        inherit: options.inherit || !options_matter,
        admin: options.admin,
        set: options.set.filter(|_| options_matter),
    }
}

fn update(edge: &Edge, options: MemberOptions, facts: &Facts, options_matter: bool) -> Option<Change> {
    if is_creators(edge, facts) {
        return None;
    }
    let differs = |current: bool, wanted: bool| (current != wanted).then_some(wanted);
    let inherit = differs(edge.inherit, options.inherit).filter(|_| options_matter);
    let admin = differs(edge.admin, options.admin);
    let set = options
        .set
        .and_then(|set| differs(edge.set, set))
        .filter(|_| options_matter);
    (inherit.is_some() || admin.is_some() || set.is_some()).then(|| Change::UpdateMemberOptions {
        role: edge.role.clone(),
        member: edge.member.clone(),
        grantor: grantor(edge, facts),
        inherit,
        admin,
        set,
    })
}

/// The grantor to name in the statement; `None` if it is the executor.
fn grantor(edge: &Edge, facts: &Facts) -> Option<String> {
    (!edge.by_bootstrap && edge.grantor != facts.server.user && !edge.grantor.is_empty())
        .then(|| edge.grantor.clone())
}

/// From PostgreSQL 16 on, a role that creates a role without being superuser becomes its administrator, and cannot
/// change that: the membership is what allows it to manage the role.
fn is_creators(edge: &Edge, facts: &Facts) -> bool {
    !facts.server.superuser
        && facts.server.version >= WITH_OPTIONS
        && edge.by_bootstrap
        && edge.admin
        && edge.member == facts.server.user
}
