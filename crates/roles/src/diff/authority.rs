//! Checks whether the executor may apply the plan.
//!
//! If the grantor holds a privilege without the grant option, PostgreSQL answers a GRANT with a warning and success.
//! Nothing is granted, and the next diff finds the same difference again, without any error.

use std::collections::BTreeSet;

use super::view::View;
use crate::facts::{Facts, Object};
use crate::model::{ObjectType, Privileges};
use crate::plan::{Blocker, Change, Check, GrantTarget, Plan, Revoke};

pub(super) fn check(facts: &Facts, view: &View<'_>, plan: &mut Plan) {
    if facts.server.superuser {
        return;
    }
    let authority = Authority::of(facts, plan);
    let blockers: Vec<_> = plan
        .changes
        .iter()
        .filter_map(|change| blocker(change, &authority, view))
        .collect();
    plan.blockers.extend(blockers);
}

/// The roles whose privileges the executor has when it makes the changes.
struct Authority<'a> {
    facts: &'a Facts,
    /// With `createrole_self_grant`, a role that it creates is granted to it at once.
    created: BTreeSet<String>,
}

impl<'a> Authority<'a> {
    fn of(facts: &'a Facts, plan: &Plan) -> Self {
        let created = plan.changes.iter().filter_map(|change| match change {
            Change::CreateRole { name, .. } => Some(name.clone()),
            _ => None,
        });
        let inherits = facts.server.self_grant.inherit;
        Self {
            facts,
            created: created.filter(|_| inherits).collect(),
        }
    }

    fn acts_as(&self, role: &str) -> bool {
        let server = &self.facts.server;
        role == server.user || server.acts_as.contains(role) || self.created.contains(role)
    }
}

fn blocker(change: &Change, authority: &Authority<'_>, view: &View<'_>) -> Option<Blocker> {
    let executor = &authority.facts.server.user;
    let (code, role, message) = match change {
        Change::Grant(grant) => {
            let code = if grant.name.as_deref() == Some("*") {
                "UnsatisfiableWildcardGrant"
            } else {
                "UnsatisfiableGrant"
            };
            let mut refused = grant.targets.iter().filter_map(|target| {
                refused(target, grant.object_type, Some(grant.privileges), authority, view)
            });
            let first = refused.next()?;
            let more = match refused.count() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let message = format!(
                "\"{executor}\" may not grant {} to \"{}\" on {first}{more}: it is neither a member of the owner nor holds \
                 the grant option",
                grant.privileges, grant.role
            );
            (code, &grant.role, message)
        }
        Change::Revoke(revoke) if is_by_owner(revoke, view) => {
            // The grant option is not enough: a role revokes only what it has granted itself, and the owner granted this.
            let target = refused(&revoke.target, revoke.object_type, None, authority, view)?;
            let message = format!(
                "\"{executor}\" may not revoke {} from \"{}\" on {target}: it is not a member of the owner",
                revoke.privileges, revoke.role
            );
            ("UnsatisfiableRevoke", &revoke.role, message)
        }
        Change::SetDefaultPrivilege(default) | Change::RevokeDefaultPrivilege(default)
            if !authority.acts_as(&default.owner) =>
        {
            let message = format!(
                "\"{executor}\" may not change the default privileges of \"{}\": it is not a member of that role",
                default.owner
            );
            ("UnsatisfiableDefaultPrivilegeChange", &default.owner, message)
        }
        _ => return None,
    };
    Some(Blocker {
        check: Check::ExecutorAuthority,
        code,
        role: Some(role.clone()),
        message: format!("{code}: {message}"),
    })
}

/// Whether the executor revokes as the owner.
fn is_by_owner(revoke: &Revoke, view: &View<'_>) -> bool {
    let object = || view.find(&revoke.target, revoke.object_type);
    let is_owner = |grantor: &String| object().is_some_and(|it| view.names.name(it.owner) == grantor);
    revoke.grantor.as_ref().is_none_or(is_owner)
}

/// The object and its owner, if the executor may not change its privileges. `passed_on` can be granted by a role that
/// holds them with the grant option, too.
fn refused(
    target: &GrantTarget,
    kind: ObjectType,
    passed_on: Option<Privileges>,
    authority: &Authority<'_>,
    view: &View<'_>,
) -> Option<String> {
    let object = view.find(target, kind)?;
    let owner = view.names.name(object.owner);
    let may_grant = |privileges| may_pass_on(object, privileges, view, authority);
    if authority.acts_as(owner) || passed_on.is_some_and(may_grant) {
        return None;
    }
    let place: Vec<_> = object
        .schema
        .iter()
        .map(|schema| (**schema).to_owned())
        .chain([object.display_name()])
        .collect();
    Some(format!(
        "{} {} (owned by \"{owner}\")",
        object.kind,
        place.join(".")
    ))
}

fn may_pass_on(object: &Object, privileges: Privileges, view: &View<'_>, authority: &Authority<'_>) -> bool {
    let own = object
        .acl
        .iter()
        .flatten()
        .filter(|entry| authority.acts_as(view.names.name(entry.grantee)))
        .fold(Privileges::NONE, |all, entry| all.union(entry.grantable));
    privileges.without(own).is_empty()
}
