//! How a role goes: what is done to it, in which order, and what is never done.
//!
//! Only a role with our mark is dropped, and only if we made it. Before that it can no longer log in, its sessions
//! end, and in every database where something depends on it that is handed over or revoked.

use std::collections::BTreeMap;
use std::time::Duration;

use stanchion_api::user::{AppliedGrant, DeletionPolicy, MembershipPolicy, OwnedObjects};
use stanchion_kernel::Problem;
use stanchion_kernel::problem::Retry;
use stanchion_postgres::Statement;

use super::{Plan, memberships, ownership, parameters};
use crate::user::mark::{self, Origin};
use crate::user::observe::{Dependency, LeavingRole, Left};
use crate::user::target::Leaving;

/// How often a blocked deletion is tried again.
const BLOCKED_INTERVAL: Duration = Duration::from_secs(30);

/// What a deletion does.
#[derive(Debug, Default)]
pub struct Goodbye {
    /// Databases to drop, by explicit wish.
    pub databases: Vec<String>,
    /// The roles, each with its end.
    pub roles: Vec<(String, End)>,
}

/// What becomes of a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It goes.
    Drop,
    /// It stays, without our mark.
    Retain,
    /// It stays, cannot log in, and is without our mark.
    Disable,
    /// It was there before us: what we gave is taken back, and the mark.
    Revoke,
}

/// Decides what to do.
pub fn plan(leaving: &Leaving, left: &Left) -> Result<Plan, Problem> {
    let mut goodbye = Goodbye::default();
    for role in &left.roles {
        let Some(end) = end(leaving, role) else { continue };
        if end == End::Drop {
            check_owned(leaving, role, &left.databases)?;
            check_heir(leaving, role)?;
        }
        goodbye.roles.push((role.name.clone(), end));
    }
    if leaving.drop_databases && leaving.policy == DeletionPolicy::Delete {
        goodbye.databases.clone_from(&left.databases);
    }
    Ok(if goodbye.roles.is_empty() && goodbye.databases.is_empty() {
        Plan::Nothing
    } else {
        Plan::Remove(goodbye)
    })
}

/// What becomes of this role; `None` for a role that is not ours, whatever its name is.
pub fn end(leaving: &Leaving, role: &LeavingRole) -> Option<End> {
    let facts = role.catalog.role.as_ref()?;
    let mark = mark::split(&facts.comment)
        .1
        .filter(|mark| mark.owner.uid == leaving.identity.uid)?;
    Some(match (mark.origin, leaving.policy) {
        (Origin::Created, DeletionPolicy::Delete) => End::Drop,
        (Origin::Adopted, DeletionPolicy::Delete) => End::Revoke,
        (_, DeletionPolicy::Retain) => End::Retain,
        (_, DeletionPolicy::Disable) => End::Disable,
    })
}

/// `ownedObjects: Block` keeps the role while it owns anything; databases that go anyway do not count.
fn check_owned(leaving: &Leaving, role: &LeavingRole, made: &[String]) -> Result<(), Problem> {
    if leaving.on_delete.owned_objects != OwnedObjects::Block {
        return Ok(());
    }
    let goes = |database: &&String| leaving.drop_databases && made.contains(database);
    let going = i64::try_from(role.databases.iter().filter(goes).count()).unwrap_or_default();
    let owning: Vec<String> = role
        .dependencies
        .iter()
        .filter(|(database, _)| !goes(database))
        .filter_map(|(database, facts)| match database.as_str() {
            "" => (facts.owned > going).then(|| format!("{} on the server itself", facts.owned - going)),
            name => (facts.owned > 0).then(|| format!("{} in database {name}", facts.owned)),
        })
        .collect();
    if owning.is_empty() {
        return Ok(());
    }
    Err(blocked(format!(
        "role {} owns objects ({}) and onDelete.ownedObjects is Block (2BP01); reassign or drop them",
        role.name,
        owning.join(", ")
    )))
}

/// Nothing is touched while the one who shall inherit is not there.
fn check_heir(leaving: &Leaving, role: &LeavingRole) -> Result<(), Problem> {
    match &leaving.on_delete.reassign_to {
        Some(heir) if !role.catalog.existing.contains_key(heir) => Err(blocked(format!(
            "role {} cannot be dropped: onDelete.reassignTo names role {heir:?}, which does not exist",
            role.name
        ))),
        _ => Ok(()),
    }
}

/// Something is in the way. It is looked at again sooner than other things that take a person: whoever clears it
/// away waits for the object to go.
pub fn blocked(message: String) -> Problem {
    Problem::human("CleanupBlocked", message).with_retry(Retry::After(BLOCKED_INTERVAL))
}

/// Before anything else the role can no longer log in; and we may act for it, which takes membership where we
/// are no superuser.
pub fn seize(role: &LeavingRole) -> Vec<Statement> {
    let mut statements = Vec::new();
    if role.catalog.role.as_ref().is_some_and(|facts| facts.login) {
        statements.push(Statement::new("ALTER ROLE ").ident(&role.name).sql(" NOLOGIN"));
    }
    statements.extend(ownership::act_as(&role.name, &role.catalog));
    statements
}

/// The databases that the role owns go to the heir, whatever becomes of the rest: REASSIGN OWNED, run in any database,
/// would give them to that database's owner, who has no claim to them, and DROP OWNED leaves them in the way. It
/// takes CREATEDB; without it REASSIGN is all there is.
pub fn hand_over(leaving: &Leaving, role: &LeavingRole) -> Vec<Statement> {
    let attributes = role.catalog.server.attributes;
    if !(attributes.superuser || attributes.create_db) {
        return Vec::new();
    }
    let hand_over = |name: &String| {
        let statement = Statement::new("ALTER DATABASE ").ident(name).sql(" OWNER TO ");
        to(statement, leaving.on_delete.reassign_to.as_deref())
    };
    role.databases.iter().map(hand_over).collect()
}

/// To this role, or to ourselves.
fn to(statement: Statement, heir: Option<&str>) -> Statement {
    match heir {
        Some(heir) => statement.ident(heir),
        None => statement.sql("CURRENT_USER"),
    }
}

/// What is done in one database: hand over or drop what the role owns, revoke what it was given.
pub fn empty(leaving: &Leaving, role: &LeavingRole, here: &Dependency) -> Vec<Statement> {
    let mut statements = Vec::new();
    if leaving.on_delete.owned_objects == OwnedObjects::Reassign {
        let statement = Statement::new("REASSIGN OWNED BY ").ident(&role.name).sql(" TO ");
        statements.push(to(statement, heir(leaving, role, here)));
    }
    statements.push(Statement::new("DROP OWNED BY ").ident(&role.name));
    statements
}

/// Who gets what the role owned: who the manifest says, else the database's owner if we may become it, else we.
fn heir<'a>(leaving: &'a Leaving, role: &LeavingRole, here: &'a Dependency) -> Option<&'a str> {
    let named = leaving.on_delete.reassign_to.as_deref();
    let superuser = role.catalog.server.attributes.superuser;
    let owner = (!here.owner.is_empty() && here.owner != role.name && (superuser || here.may_become_owner))
        .then_some(here.owner.as_str());
    named.or(owner)
}

/// The last statement.
pub fn drop_role(name: &str) -> Statement {
    Statement::new("DROP ROLE IF EXISTS ").ident(name)
}

/// The statements that take back what earlier passes gave and that belongs to no database.
pub fn take_back(role: &LeavingRole, given: &[AppliedGrant]) -> Result<Vec<Statement>, Problem> {
    let none = memberships::Asked {
        role: &role.name,
        member_of: &[],
        policy: MembershipPolicy::Additive,
        before: given,
        inherits: true,
    };
    let nothing = BTreeMap::new();
    let stored = role
        .catalog
        .role
        .as_ref()
        .map_or(&nothing, |facts| &facts.parameters);
    let mut changes = memberships::diff(&none, &role.catalog)?;
    changes.extend(parameters::diff(&role.name, &nothing, stored, given));
    Ok(changes.into_iter().map(|change| change.statement).collect())
}

/// Takes the mark away, so that another object can adopt the role.
pub fn unmark(role: &LeavingRole) -> Option<Statement> {
    let facts = role.catalog.role.as_ref()?;
    let (text, mark) = mark::split(&facts.comment);
    mark.map(|_| {
        let start = Statement::new("COMMENT ON ROLE ").ident(&role.name).sql(" IS ");
        if text.is_empty() {
            start.sql("NULL")
        } else {
            start.literal(text)
        }
    })
}
