//! Checks whether the executor may apply the plan.
//!
//! If the grantor holds a privilege without the grant option, PostgreSQL answers a GRANT with a warning and success.
//! Nothing is granted, and the next diff finds the same difference again, without any error.

use super::view::View;
use crate::facts::{Facts, Object};
use crate::model::{ObjectType, Privileges};
use crate::plan::{Blocker, Change, Check, GrantTarget, Plan};

pub(super) fn check(facts: &Facts, view: &View<'_>, plan: &mut Plan) {
    if facts.server.superuser {
        return;
    }
    let blockers: Vec<_> = plan
        .changes
        .iter()
        .filter_map(|change| blocker(change, facts, view))
        .collect();
    plan.blockers.extend(blockers);
}

fn blocker(change: &Change, facts: &Facts, view: &View<'_>) -> Option<Blocker> {
    let executor = &facts.server.user;
    let (code, role, message) = match change {
        Change::Grant(grant) => {
            let code = if grant.name.as_deref() == Some("*") {
                "UnsatisfiableWildcardGrant"
            } else {
                "UnsatisfiableGrant"
            };
            let mut refused = grant
                .targets
                .iter()
                .filter_map(|target| refused(target, grant.object_type, grant.privileges, facts, view));
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
        Change::Revoke(revoke) if revoke.grantor.is_none() => {
            let target = refused(&revoke.target, revoke.object_type, revoke.privileges, facts, view)?;
            let message = format!(
                "\"{executor}\" may not revoke {} from \"{}\" on {target}: it is not a member of the owner",
                revoke.privileges, revoke.role
            );
            ("UnsatisfiableRevoke", &revoke.role, message)
        }
        Change::SetDefaultPrivilege(default) | Change::RevokeDefaultPrivilege(default)
            if !acts_as(&default.owner, facts) =>
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

/// Whether the executor has the privileges of a role.
fn acts_as(role: &str, facts: &Facts) -> bool {
    role == facts.server.user || facts.server.acts_as.contains(role)
}

/// The object and its owner, if the executor may not change its privileges.
fn refused(
    target: &GrantTarget,
    kind: ObjectType,
    privileges: Privileges,
    facts: &Facts,
    view: &View<'_>,
) -> Option<String> {
    let object = view.find(target, kind)?;
    let owner = view.names.name(object.owner);
    if acts_as(owner, facts) || may_pass_on(object, privileges, view, facts) {
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

fn may_pass_on(object: &Object, privileges: Privileges, view: &View<'_>, facts: &Facts) -> bool {
    let own = object
        .acl
        .iter()
        .flatten()
        .filter(|entry| acts_as(view.names.name(entry.grantee), facts))
        .fold(Privileges::NONE, |all, entry| all.union(entry.grantable));
    privileges.without(own).is_empty()
}
