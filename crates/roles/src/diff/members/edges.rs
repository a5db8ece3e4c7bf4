//! The memberships that exist, and which of them depend on others.
//!
//! From PostgreSQL 16 on a membership depends on its grantor: it cannot outlive the ADMIN option with which the grantor
//! gave it, and PostgreSQL refuses a REVOKE that would leave it behind.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::{Edge, Facts};
use crate::plan::{Blocker, Check};

/// The first version in which a membership has its own options, and in which the grantor matters.
pub(super) const WITH_OPTIONS: u32 = 160_000;

/// The edges of the facts, by their index there.
pub(super) struct Edges<'a> {
    facts: &'a Facts,
    /// By role and member.
    pub(super) pairs: BTreeMap<(&'a str, &'a str), Vec<usize>>,
    /// By role and grantor.
    given: BTreeMap<(&'a str, &'a str), Vec<usize>>,
}

impl<'a> Edges<'a> {
    pub(super) fn of(facts: &'a Facts) -> Self {
        let mut edges = Self {
            facts,
            pairs: BTreeMap::new(),
            given: BTreeMap::new(),
        };
        for (place, edge) in facts.memberships.iter().enumerate() {
            edges
                .pairs
                .entry((&edge.role, &edge.member))
                .or_default()
                .push(place);
            if !edge.by_bootstrap && !edge.grantor.is_empty() {
                edges
                    .given
                    .entry((&edge.role, &edge.grantor))
                    .or_default()
                    .push(place);
            }
        }
        edges
    }

    /// The edges of a member in a role.
    pub(super) fn of_pair<'s>(&'s self, role: &'s str, member: &'s str) -> &'s [usize] {
        self.pairs.get(&(role, member)).map_or(&[], Vec::as_slice)
    }

    pub(super) fn get(&self, place: usize) -> Option<&'a Edge> {
        self.facts.memberships.get(place)
    }

    /// Adds to `removed` what depends on it, on edges that lose their ADMIN option, or on a role that is dropped.
    pub(super) fn add_dependents(
        &self,
        removed: &mut BTreeSet<usize>,
        lowered: &BTreeSet<usize>,
        dropped: &BTreeSet<&str>,
    ) {
        loop {
            let before = removed.len();
            for ((role, grantor), edges) in &self.given {
                // DROP ROLE removes all members of the role itself.
                if dropped.contains(role) {
                    continue;
                }
                let may_give = |place: &usize| {
                    !removed.contains(place)
                        && !lowered.contains(place)
                        && self.get(*place).is_some_and(|edge| edge.admin)
                };
                let giving = self.of_pair(role, grantor);
                let had = giving
                    .iter()
                    .any(|place| self.get(*place).is_some_and(|edge| edge.admin));
                if dropped.contains(grantor) || (had && !giving.iter().any(may_give)) {
                    removed.extend(edges);
                }
            }
            if removed.len() == before {
                return;
            }
        }
    }

    /// The edges in an order in which each comes before the one that its grantor needs for it.
    pub(super) fn dependents_first(&self, removed: &BTreeSet<usize>) -> Vec<&'a Edge> {
        let mut depths: BTreeMap<usize, usize> = removed.iter().map(|place| (*place, 0)).collect();
        // PostgreSQL accepts no circle, so this ends before the limit.
        for _ in 0..removed.len() {
            let deeper: Vec<_> = depths
                .iter()
                .filter_map(|(place, depth)| {
                    let edge = self.get(*place)?;
                    let giving = self.of_pair(&edge.role, &edge.grantor).iter();
                    let giving = giving.filter(|giver| self.get(**giver).is_some_and(|edge| edge.admin));
                    let above = giving.filter_map(|giver| depths.get(giver)).max()? + 1;
                    (above > *depth).then_some((*place, above))
                })
                .collect();
            if deeper.is_empty() {
                break;
            }
            depths.extend(deeper);
        }
        let mut sorted: Vec<_> = depths.into_iter().collect();
        sorted.sort_by_key(|(place, depth)| (std::cmp::Reverse(*depth), *place));
        sorted
            .into_iter()
            .filter_map(|(place, _)| self.get(place))
            .collect()
    }

    /// The grantor to name in the statement; `None` if it is the executor.
    pub(super) fn grantor(&self, edge: &Edge) -> Option<String> {
        (!edge.by_bootstrap && edge.grantor != self.facts.server.user && !edge.grantor.is_empty())
            .then(|| edge.grantor.clone())
    }

    /// From PostgreSQL 16 on, a role that creates a role without being superuser becomes its administrator, and cannot
    /// change that: the membership is what allows it to manage the role.
    pub(super) fn is_creators(&self, edge: &Edge) -> bool {
        let server = &self.facts.server;
        !server.superuser
            && server.version >= WITH_OPTIONS
            && edge.by_bootstrap
            && edge.admin
            && edge.member == server.user
    }

    /// Whether `createrole_self_grant` has added this membership when the executor created the role. It would come back with
    /// the next role that the executor creates.
    pub(super) fn is_self_granted(&self, edge: &Edge) -> bool {
        let server = &self.facts.server;
        !server.superuser
            && server.version >= WITH_OPTIONS
            && edge.member == server.user
            && edge.grantor == server.user
            && !edge.admin
            && (server.self_grant.inherit || server.self_grant.set)
            && (edge.inherit, edge.set) == (server.self_grant.inherit, server.self_grant.set)
    }

    /// Whether the executor may change a membership: PostgreSQL answers the REVOKE of another role's grant with a warning,
    /// and changes nothing.
    pub(super) fn may_change(&self, edge: &Edge) -> bool {
        let server = &self.facts.server;
        server.superuser
            || server.version < WITH_OPTIONS
            || edge.grantor == server.user
            || (!edge.by_bootstrap && server.acts_as.contains(&edge.grantor))
    }

    /// Why the executor cannot take a membership or an option of it away.
    pub(super) fn refusal(&self, edge: &Edge) -> Option<Blocker> {
        if self.may_change(edge) {
            return None;
        }
        let code = "UnsatisfiableMembershipChange";
        let Edge {
            role,
            member,
            grantor,
            ..
        } = edge;
        Some(Blocker {
            check: Check::ExecutorAuthority,
            code,
            role: Some(role.clone()),
            message: format!(
                "{code}: \"{}\" may not change the membership of \"{member}\" in \"{role}\" that \"{grantor}\" granted; declare it as it \
                 is, or let \"{grantor}\" revoke it",
                self.facts.server.user
            ),
        })
    }
}
