//! Compares memberships.
//!
//! From PostgreSQL 16 on, several roles can have granted the same membership. The member then has what any of them gave:
//! what is missing is added to one, and what is too much is taken from each.

mod circles;
mod edges;

use std::collections::{BTreeMap, BTreeSet};

pub(super) use circles::block_circles;
use edges::{Edges, WITH_OPTIONS};

use crate::expand::{Desired, MemberOptions};
use crate::facts::{Edge, Facts};
use crate::manifest::is_predefined;
use crate::plan::{Change, Mode, Plan};

pub(super) struct Members {
    pub(super) removed: Vec<Change>,
    pub(super) added: Vec<Change>,
}

pub(super) fn diff(desired: &Desired, facts: &Facts, mode: Mode, plan: &mut Plan) -> Members {
    let mut differ = Differ {
        desired,
        facts,
        mode,
        edges: Edges::of(facts),
        options_matter: facts.server.version >= WITH_OPTIONS,
        removed: BTreeSet::new(),
        lowered: BTreeMap::new(),
        raised: BTreeMap::new(),
        added: vec![],
        plan,
    };
    // Additive mode takes nothing, so nothing depends on what it takes.
    if mode == Mode::Additive {
        differ.surplus();
        differ.warn();
        differ.removed.clear();
    } else {
        differ.surplus();
        differ.lower();
        let unwanted = differ.removed.clone();
        differ.take_dependents();
        differ.give_back(&unwanted);
    }
    differ.add();
    differ.finish()
}

/// The options of a membership, from all grantors.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    inherit: bool,
    admin: bool,
    set: bool,
}

struct Differ<'a> {
    desired: &'a Desired,
    facts: &'a Facts,
    mode: Mode,
    edges: Edges<'a>,
    options_matter: bool,
    /// Edges to remove.
    removed: BTreeSet<usize>,
    /// Options to take from edges.
    lowered: BTreeMap<usize, Held>,
    /// Options to give to edges.
    raised: BTreeMap<usize, Held>,
    added: Vec<Change>,
    plan: &'a mut Plan,
}

impl<'a> Differ<'a> {
    /// Every declared membership.
    fn declared(&self) -> impl Iterator<Item = (&'a str, &'a str, MemberOptions)> + use<'a> {
        self.desired.memberships.iter().flat_map(|(role, membership)| {
            let members = membership.members.iter();
            members.map(move |(member, options)| (role.as_str(), member.as_str(), *options))
        })
    }

    /// What a member has by the edges that stay.
    fn held(&self, role: &str, member: &str) -> Option<Held> {
        let staying = self
            .edges
            .of_pair(role, member)
            .iter()
            .filter(|place| !self.removed.contains(place));
        let each = staying.filter_map(|place| {
            let edge = self.edges.get(*place)?;
            let lost = self.lowered.get(place).copied().unwrap_or_default();
            Some(Held {
                inherit: edge.inherit && !lost.inherit,
                admin: edge.admin && !lost.admin,
                set: edge.set && !lost.set,
            })
        });
        each.reduce(|one, other| Held {
            inherit: one.inherit || other.inherit,
            admin: one.admin || other.admin,
            set: one.set || other.set,
        })
    }

    /// Warns of what additive mode leaves: options and members that the manifest does not declare.
    fn warn(&mut self) {
        for (role, member, options) in self.declared() {
            let edges = self.edges.of_pair(role, member).iter();
            let edges = edges.filter_map(|place| self.edges.get(*place));
            let edges = edges.filter(|edge| !self.edges.is_creators(edge));
            let (mut inherit, mut admin, mut set) = (false, false, false);
            for excess in edges.map(|edge| self.excess(edge, options)) {
                inherit |= excess.inherit;
                admin |= excess.admin;
                set |= excess.set;
            }
            let left = [
                (
                    admin,
                    "may add other members (ADMIN OPTION), which the manifest does not say",
                ),
                (
                    inherit,
                    "has its privileges without SET ROLE (INHERIT OPTION), although the manifest says `inherit: false`",
                ),
                (
                    set,
                    "may use SET ROLE (SET OPTION), although the manifest says `set: false`",
                ),
            ];
            for (_, what) in left.iter().filter(|(is_left, _)| *is_left) {
                self.plan.warnings.push(format!(
                    "member \"{member}\" of \"{role}\" {what}; additive mode does not take it"
                ));
            }
        }
        let removed = self.removed.iter().filter_map(|place| self.edges.get(*place));
        let pairs: BTreeSet<_> = removed.map(|edge| (&edge.role, &edge.member)).collect();
        self.plan.warnings.extend(pairs.into_iter().map(|(role, member)| {
            format!(
                "\"{member}\" is a member of \"{role}\", which the manifest does not say; additive mode does not remove it"
            )
        }));
    }

    /// The options of an edge that the manifest does not declare.
    fn excess(&self, edge: &Edge, options: MemberOptions) -> Held {
        Held {
            inherit: self.options_matter && edge.inherit && !options.inherit,
            admin: edge.admin && !options.admin,
            set: self.options_matter && edge.set && options.set == Some(false),
        }
    }

    /// Memberships that the manifest does not declare: some are removed, some reported.
    fn surplus(&mut self) {
        for ((role, member), found) in &self.edges.pairs {
            let membership = self.desired.memberships.get(*role);
            // PostgreSQL's own memberships are part of what a predefined role means, in every database.
            if membership.is_some_and(|membership| membership.members.contains_key(*member))
                || (is_predefined(role) && is_predefined(member))
            {
                continue;
            }
            let ours = self.desired.scope.roles.contains(*member);
            let exclusive = self.mode == Mode::Authoritative
                && self.desired.roles.get(*member).is_some_and(|role| role.exclusive);
            let unwanted = membership
                .is_some_and(|membership| membership.exhaustive || membership.absent.contains(*member));
            if unwanted || (ours && exclusive) {
                let removable = |place: &&usize| {
                    self.edges.get(**place).is_some_and(|edge| {
                        !self.edges.is_creators(edge) && !self.edges.is_self_granted(edge)
                    })
                };
                self.removed.extend(found.iter().filter(removable));
            } else if ours {
                self.plan.holdings.push(format!(
                    "role \"{member}\" is also a member of \"{role}\", which the manifest does not say"
                ));
            }
        }
    }

    /// Takes from each declared membership what is too much.
    fn lower(&mut self) {
        for (role, member, options) in self.declared() {
            for place in self.edges.of_pair(role, member) {
                let Some(edge) = self.edges.get(*place) else {
                    continue;
                };
                let lost = self.excess(edge, options);
                if !self.edges.is_creators(edge) && (lost.inherit || lost.admin || lost.set) {
                    self.lowered.insert(*place, lost);
                }
            }
        }
    }

    /// Removes what cannot outlive what is taken.
    fn take_dependents(&mut self) {
        let loses_admin = self.lowered.iter().filter(|(_, lost)| lost.admin);
        let lowered = loses_admin.map(|(place, _)| *place).collect();
        let dropped = self.dropped();
        self.edges.add_dependents(&mut self.removed, &lowered, &dropped);
    }

    fn dropped(&self) -> BTreeSet<&'a str> {
        let retired = self.desired.retirements.iter().map(|it| it.role.as_str());
        retired
            .filter(|role| self.mode == Mode::Authoritative && self.facts.roles.contains_key(*role))
            .collect()
    }

    /// Grants again what was removed although it is not unwanted, and is not declared either.
    fn give_back(&mut self, unwanted: &BTreeSet<usize>) {
        let dropped = self.dropped();
        let mut staying: BTreeMap<(&str, &str), Held> = BTreeMap::new();
        for place in self.removed.difference(unwanted) {
            let Some(edge) = self.edges.get(*place) else {
                continue;
            };
            let declared = self.desired.memberships.get(&edge.role);
            if !dropped.contains(edge.member.as_str())
                && !declared.is_some_and(|membership| membership.members.contains_key(&edge.member))
            {
                let held = staying.entry((&edge.role, &edge.member)).or_default();
                held.inherit |= edge.inherit;
                held.admin |= edge.admin;
                held.set |= edge.set;
            }
        }
        for ((role, member), mut stays) in staying {
            if let Some(held) = self.held(role, member) {
                if (held.inherit || !stays.inherit)
                    && (held.admin || !stays.admin)
                    && (held.set || !stays.set)
                {
                    continue;
                }
                // The executor's own grant is among those that stay, and must not lose anything.
                stays.inherit |= held.inherit;
                stays.set |= held.set;
            }
            self.added.push(Change::AddMember {
                role: role.to_owned(),
                member: member.to_owned(),
                inherit: stays.inherit,
                admin: stays.admin,
                set: Some(stays.set),
            });
        }
    }

    /// Adds what is missing of the declared memberships.
    fn add(&mut self) {
        for (role, member, options) in self.declared() {
            if !self.options_matter && (!options.inherit || options.set == Some(false)) {
                self.plan.warnings.push(format!(
                    "member \"{member}\" of \"{role}\": before PostgreSQL 16 a membership has no INHERIT and SET options of its \
                     own; set `inherit` on the role \"{member}\""
                ));
            }
            let held = self.held(role, member);
            let existing = held.unwrap_or_default();
            let lacks = Held {
                inherit: self.options_matter && options.inherit && !existing.inherit,
                admin: options.admin && !existing.admin,
                set: self.options_matter && options.set == Some(true) && !existing.set,
            };
            if held.is_some() && !(lacks.inherit || lacks.admin || lacks.set) {
                continue;
            }
            let edges = self.edges.of_pair(role, member);
            if let Some(place) = self.to_raise(edges) {
                self.raised.insert(place, lacks);
                continue;
            }
            // A membership that is only removed to be granted again keeps what the manifest does not say.
            let was = edges
                .iter()
                .filter(|place| self.removed.contains(place))
                .filter_map(|place| self.edges.get(*place))
                .map(|edge| edge.set)
                .reduce(|one, other| one || other);
            self.added.push(Change::AddMember {
                role: role.to_owned(),
                member: member.to_owned(),
                inherit: options.inherit || !self.options_matter,
                admin: lacks.admin,
                set: options.set.or(was).filter(|_| self.options_matter),
            });
        }
    }

    /// The edge that gets what is missing: the executor's own, or one that it may change.
    fn to_raise(&self, edges: &[usize]) -> Option<usize> {
        let possible = edges.iter().filter(|place| !self.removed.contains(place));
        let possible = possible.filter_map(|place| Some((*place, self.edges.get(*place)?)));
        let possible =
            possible.filter(|(_, edge)| self.edges.may_change(edge) && !self.edges.is_creators(edge));
        let nearest = possible.min_by_key(|(_, edge)| self.edges.grantor(edge).is_some());
        nearest.map(|(place, _)| place)
    }

    fn finish(mut self) -> Members {
        self.lowered.retain(|place, _| !self.removed.contains(place));
        let removed = self.edges.dependents_first(&self.removed);
        let lowered = self.lowered.keys().filter_map(|place| self.edges.get(*place));
        let refused = removed.iter().copied().chain(lowered);
        let refused = refused.filter_map(|edge| self.edges.refusal(edge));
        self.plan.blockers.extend(refused);
        let changed: BTreeSet<_> = self.lowered.keys().chain(self.raised.keys()).collect();
        let updated = changed.into_iter().filter_map(|place| self.update(*place));
        let removed = removed.into_iter().map(|edge| Change::RemoveMember {
            role: edge.role.clone(),
            member: edge.member.clone(),
            grantor: self.edges.grantor(edge),
        });
        Members {
            removed: removed.collect(),
            added: self.added.iter().cloned().chain(updated).collect(),
        }
    }

    fn update(&self, place: usize) -> Option<Change> {
        let edge = self.edges.get(place)?;
        let [lost, gained] =
            [&self.lowered, &self.raised].map(|changes| changes.get(&place).copied().unwrap_or_default());
        let to = |gained: bool, lost: bool| (gained || lost).then_some(gained);
        Some(Change::UpdateMemberOptions {
            role: edge.role.clone(),
            member: edge.member.clone(),
            grantor: self.edges.grantor(edge),
            inherit: to(gained.inherit, lost.inherit),
            admin: to(gained.admin, lost.admin),
            set: to(gained.set, lost.set),
        })
    }
}
