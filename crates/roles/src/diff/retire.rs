//! Plans roles to drop, and what prevents it.

use crate::expand::{Desired, Retirement};
use crate::facts::{Dependency, Facts};
use crate::plan::{Blocker, Change, Check, Mode, Plan};

pub(super) fn diff(desired: &Desired, facts: &Facts, mode: Mode, plan: &mut Plan) -> Vec<Change> {
    let mut changes = vec![];
    let mut sessions = vec![];
    for retirement in &desired.retirements {
        let role = &retirement.role;
        let Some(existing) = facts.roles.get(role) else {
            continue;
        };
        if mode == Mode::Authoritative {
            block(retirement, facts, plan);
        }
        if let Some(new_owner) = &retirement.reassign_owned_to {
            changes.push(Change::ReassignOwned {
                from_role: role.clone(),
                to_role: new_owner.clone(),
            });
        }
        if retirement.drop_owned {
            changes.push(Change::DropOwned { role: role.clone() });
        }
        changes.push(Change::DropRole { name: role.clone() });
        if retirement.terminate_sessions {
            sessions.push(Change::TerminateSessions {
                role: role.clone(),
                oid: existing.oid,
            });
        }
    }
    changes.append(&mut sessions);
    changes
}

fn block(retirement: &Retirement, facts: &Facts, plan: &mut Plan) {
    let role = &retirement.role;
    let mut refuse = |code, reason: String| {
        plan.blockers.push(Blocker {
            check: Check::RoleDropSafety,
            code,
            role: Some(role.clone()),
            message: format!("role \"{role}\" cannot be dropped: {reason}"),
        });
    };
    if *role == facts.server.user {
        refuse(
            "drops_executor",
            "it is the role that applies the manifest".to_owned(),
        );
    }
    let Some(found) = facts.drops.get(role) else {
        return;
    };
    for dependency in &found.dependencies {
        if let Some(reason) = in_the_way(retirement, dependency, &facts.server.database) {
            let code = if dependency.owned {
                "owned_objects"
            } else {
                "privilege_dependency"
            };
            refuse(code, reason);
        }
    }
    if found.sessions > 0 && !retirement.terminate_sessions {
        refuse(
            "active_sessions",
            format!(
                "it has {} active session(s); end them or set `terminate_sessions: true`",
                found.sessions
            ),
        );
    }
}

fn in_the_way(retirement: &Retirement, dependency: &Dependency, here: &str) -> Option<String> {
    let Dependency {
        database,
        owned,
        reassigned,
        count,
        example,
    } = dependency;
    let what = if *owned {
        "owned object(s)"
    } else {
        "privilege dependency(s)"
    };
    let example = example
        .as_ref()
        .map(|example| format!(" (such as {example})"))
        .unwrap_or_default();
    let elsewhere = database.as_deref().filter(|there| *there != here);
    let remedy = match (elsewhere, owned) {
        (Some(there), _) => {
            return Some(format!(
                "it has {count} {what} in database \"{there}\", which only a connection to that database can reassign or drop"
            ));
        }
        // DROP OWNED drops neither databases nor tablespaces.
        (None, true) if database.is_none() && retirement.reassign_owned_to.is_none() => {
            " that can only be reassigned; set `reassign_owned_to`"
        }
        (None, _) if retirement.drop_owned => return None,
        (None, true) if !reassigned => {
            " that cannot be reassigned; set `drop_owned: true`, which drops what `reassign_owned_to` does not reassign"
        }
        (None, true) if retirement.reassign_owned_to.is_some() => return None,
        (None, true) => "; set `reassign_owned_to` or `drop_owned: true`",
        (None, false) => "; set `drop_owned: true` to revoke them",
    };
    Some(format!("it has {count} {what}{example}{remedy}"))
}
