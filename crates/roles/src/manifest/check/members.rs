//! Rules about memberships and retirements.

use std::collections::{BTreeMap, BTreeSet};

use super::super::diagnostic::Path;
use super::super::is_predefined;
use super::super::types::Manifest;
use super::{Findings, Names};
use crate::model::PUBLIC;

pub(super) fn check(manifest: &Manifest, names: &Names<'_>, findings: &mut Findings) {
    memberships(manifest, names, findings);
    circles(manifest, findings);
    retirements(manifest, names, findings);
}

fn memberships(manifest: &Manifest, names: &Names<'_>, findings: &mut Findings) {
    let mut edges = BTreeSet::new();
    for (index, membership) in manifest.memberships.iter().enumerate() {
        let path = Path::root("memberships").index(index);
        let role = membership.role.as_str();
        findings.identifier(path.key("role"), "role", role);
        if !is_predefined(role) {
            findings.declared(path.key("role"), role, names);
        }
        if names.retired.contains(role) {
            findings.error(
                path.key("role"),
                format!("role \"{role}\" is retired and cannot have members"),
            );
        }
        if membership.exclusive && !is_predefined(role) && !names.external.contains(role) {
            findings.error(
                path.key("exclusive"),
                format!(
                    "membership for \"{role}\" sets `exclusive: true`, which is for predefined (pg_*) and external roles: \
                     the members of a declared role are always the declared ones"
                ),
            );
        }
        for (index, member) in membership.members.iter().enumerate() {
            let at = path.key("members").index(index).key("name");
            findings.identifier(at.clone(), "member", &member.name);
            if member.name == PUBLIC {
                findings.error(at.clone(), "\"PUBLIC\" cannot be a member: it is not a role");
            }
            if names.retired.contains(member.name.as_str()) {
                findings.error(at.clone(), format!("member \"{}\" is retired", member.name));
            }
            if !edges.insert((role, member.name.as_str())) {
                findings.strict(
                    at,
                    format!("\"{}\" is already a member of \"{role}\"", member.name),
                    None,
                );
            }
        }
    }
}

/// Finds circular memberships, which PostgreSQL refuses.
fn circles(manifest: &Manifest, findings: &mut Findings) {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for membership in &manifest.memberships {
        for member in &membership.members {
            groups.entry(&member.name).or_default().push(&membership.role);
        }
    }
    for (index, membership) in manifest.memberships.iter().enumerate() {
        let start = membership.role.as_str();
        let mut open = vec![start];
        let mut seen = BTreeSet::new();
        while let Some(role) = open.pop() {
            for group in groups.get(role).into_iter().flatten() {
                if *group == start {
                    findings.error(
                        Path::root("memberships").index(index),
                        format!(
                            "role \"{start}\" would be a member of itself, directly or through other roles"
                        ),
                    );
                    open.clear();
                    break;
                }
                if seen.insert(*group) {
                    open.push(group);
                }
            }
        }
    }
}

fn retirements(manifest: &Manifest, names: &Names<'_>, findings: &mut Findings) {
    let mut seen = BTreeSet::new();
    for (index, retirement) in manifest.retirements.iter().enumerate() {
        let path = Path::root("retirements").index(index);
        let role = retirement.role.as_str();
        let at = path.key("role");
        findings.identifier(at.clone(), "role", role);
        if role == PUBLIC || is_predefined(role) {
            findings.error(at.clone(), format!("\"{role}\" cannot be dropped"));
        }
        if !seen.insert(role) {
            findings.error(
                at.clone(),
                format!("duplicate retirement entry for role: \"{role}\""),
            );
        }
        if names.is_declared(role) {
            findings.error(
                at,
                format!(
                    "retirement entry for role \"{role}\" conflicts with a desired role of the same name"
                ),
            );
        }
        let Some(new_owner) = retirement.reassign_owned_to.as_deref() else {
            continue;
        };
        let at = path.key("reassign_owned_to");
        findings.identifier(at.clone(), "role", new_owner);
        if new_owner == role {
            findings.error(
                at,
                format!("retirement entry for role \"{role}\" cannot reassign ownership to itself"),
            );
        } else if names.retired.contains(new_owner) {
            findings.error(
                at,
                format!("\"{new_owner}\" is to get what \"{role}\" owns, and is retired itself"),
            );
        }
    }
}
