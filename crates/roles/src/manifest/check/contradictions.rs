//! Finds rules that contradict each other, so that no plan could satisfy both.

use std::collections::BTreeMap;

use super::super::diagnostic::Path;
use super::super::types::{DefaultPrivilege, DefaultPrivilegeGrant, Ensure, Grant, Manifest, Object};
use super::Findings;
use crate::expand;
use crate::model::{ObjectType, Privilege};

pub(super) fn check(manifest: &Manifest, findings: &mut Findings) {
    presence(manifest, findings);
    options(manifest, findings);
    defaults(manifest, findings);
}

/// The grants that match a condition, each with its path.
fn those<'a>(
    manifest: &'a Manifest,
    sort: impl Fn(&Grant) -> bool + 'a,
) -> impl Iterator<Item = (Path, &'a Grant)> {
    let all = manifest.grants.iter().enumerate();
    all.filter(move |(_, grant)| sort(grant))
        .map(|(index, grant)| (Path::root("grants").index(index), grant))
}

fn share(some: &[Privilege], others: &[Privilege]) -> bool {
    some.iter().any(|privilege| others.contains(privilege))
}

/// Grants that require both the presence and the absence of a privilege.
fn presence(manifest: &Manifest, findings: &mut Findings) {
    let absent: Vec<_> = those(manifest, |grant| grant.ensure == Ensure::Absent).collect();
    if absent.is_empty() {
        return;
    }
    let present = expand::all_grants(manifest);
    let owners = expand::expand(manifest).schemas;
    for (path, grant) in absent {
        let schema = grant
            .object
            .name
            .as_ref()
            .filter(|_| grant.object.kind == ObjectType::Schema);
        if schema.and_then(|name| owners.get(name)?.as_ref()) == Some(&grant.role) {
            findings.error(
                path.clone(),
                format!(
                    "\"{}\" is the declared owner of the schema, and keeps its privileges on it",
                    grant.role
                ),
            );
        }
        let clash = present.iter().find(|other| {
            other.ensure == Ensure::Present
                && other.role == grant.role
                && share(&other.privileges, &grant.privileges)
                && overlap(&other.object, &grant.object)
        });
        if let Some(other) = clash {
            findings.error(
                path,
                format!(
                    "grants declare a privilege of \"{}\" on {} \"{}\" as both present and absent",
                    grant.role,
                    other.object.kind,
                    other.object.name.as_deref().unwrap_or("*")
                ),
            );
        }
    }
}

/// Grants that require a privilege both with and without the grant option.
fn options(manifest: &Manifest, findings: &mut Findings) {
    let without: Vec<_> = those(manifest, |grant| {
        grant.ensure == Ensure::Present && grant.with_grant_option == Some(false)
    })
    .collect();
    if without.is_empty() {
        return;
    }
    let all = expand::all_grants(manifest);
    for (path, grant) in without {
        let clash = all.iter().any(|other| {
            other.with_grant_option == Some(true)
                && other.role == grant.role
                && share(&other.privileges, &grant.privileges)
                && overlap(&other.object, &grant.object)
        });
        if clash {
            findings.error(
                path.key("with_grant_option"),
                format!(
                    "grants give \"{}\" a privilege both with and without the grant option",
                    grant.role
                ),
            );
        }
    }
}

/// The same for default privileges, where several entries can concern the same owner and schema.
fn defaults(manifest: &Manifest, findings: &mut Findings) {
    let mut places: BTreeMap<_, Vec<&DefaultPrivilegeGrant>> = BTreeMap::new();
    for entry in &manifest.default_privileges {
        places
            .entry(place(manifest, entry))
            .or_default()
            .extend(&entry.grant);
    }
    for (index, entry) in manifest.default_privileges.iter().enumerate() {
        let here = places
            .get(&place(manifest, entry))
            .map(Vec::as_slice)
            .unwrap_or_default();
        for (position, grant) in entry.grant.iter().enumerate() {
            let clashes = |with: &dyn Fn(&DefaultPrivilegeGrant) -> bool| {
                here.iter().any(|other| {
                    other.role == grant.role
                        && other.on_type.default_kind() == grant.on_type.default_kind()
                        && other.ensure == Ensure::Present
                        && share(&other.privileges, &grant.privileges)
                        && with(other)
                })
            };
            let at = Path::root("default_privileges")
                .index(index)
                .key("grant")
                .index(position);
            if grant.ensure == Ensure::Absent && clashes(&|_| true) {
                findings.error(
                    at,
                    "default privileges declare a privilege as both present and absent",
                );
            } else if grant.with_grant_option == Some(false)
                && clashes(&|other| other.with_grant_option == Some(true))
            {
                findings.error(
                    at.key("with_grant_option"),
                    "default privileges give a privilege both with and without the grant option",
                );
            }
        }
    }
}

/// The owner and the schema of an entry; no schema means all schemas.
fn place<'a>(
    manifest: &'a Manifest,
    entry: &'a DefaultPrivilege,
) -> (Option<&'a String>, Option<&'a String>) {
    let schema = entry.schema.as_ref();
    let scoped = entry.scope.as_ref().and_then(|scope| scope.schema.as_ref());
    (
        entry.owner.as_ref().or(manifest.default_owner.as_ref()),
        schema.or(scoped),
    )
}

/// Whether two selectors can match the same object.
fn overlap(a: &Object, b: &Object) -> bool {
    let wild = |object: &Object| object.name.as_deref() == Some("*");
    let excepted = |all: &Object, one: &Object| {
        wild(all)
            && one
                .name
                .as_deref()
                .is_some_and(|name| expand::is_excepted(&all.except, name))
    };
    let same_kind = if wild(a) || wild(b) {
        a.kind == b.kind
    } else {
        a.kind.same_namespace(b.kind)
    };
    same_kind
        && a.schema == b.schema
        && (a.columns.is_empty() == b.columns.is_empty())
        && (a.columns.is_empty() || a.columns.iter().any(|column| b.columns.contains(column)))
        && (a.name == b.name || ((wild(a) || wild(b)) && !excepted(a, b) && !excepted(b, a)))
}
