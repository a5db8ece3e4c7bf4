//! Plans the cleanup of a role, in order.
//!
//! Only a role with our mark is dropped, and only if the operator created it. Before that it can no longer log in, its
//! sessions are terminated, and in every database its objects are reassigned and its privileges revoked.

use std::collections::BTreeMap;
use std::time::Duration;

use stanchion_api::user::{AppliedGrant, DeletionPolicy, MembershipPolicy, OwnedObjects};
use stanchion_kernel::Problem;
use stanchion_kernel::marks::{Bearer, Found, Mark, Origin, Owner, Seal};
use stanchion_kernel::problem::Retry;
use stanchion_postgres::handover::{self, Keeper, KeeperFacts};
use stanchion_postgres::server::BOUND_CREATEROLE;
use stanchion_postgres::{ConnectionConfig, Statement};

use super::CleanupTarget;
use super::observe::{CleanupRole, CleanupState};
use crate::user::catalog::{Reach, Viewer};
use crate::user::plan::{memberships, parameters, role};

/// How often a blocked deletion is retried.
const BLOCKED_INTERVAL: Duration = Duration::from_secs(30);

/// The plan of a deletion.
pub struct CleanupPlan {
    /// The administrator's connection.
    pub admin: ConnectionConfig,
    /// The rules and marks.
    pub viewer: Viewer,
    /// Databases to drop, on explicit request.
    pub databases: Vec<String>,
    /// The roles, and what happens to each.
    pub roles: Vec<(String, Disposition)>,
}

/// What happens to a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// It is dropped.
    Drop,
    /// It stays, without our mark.
    Retain,
    /// It stays without our mark, and cannot log in.
    Disable,
    /// It existed before: what the operator granted is revoked, and the mark removed.
    Revoke,
}

/// Decides what to do; `None` if nothing is left to remove.
pub(super) fn plan(cleanup: &CleanupTarget, state: &CleanupState) -> Result<Option<CleanupPlan>, Problem> {
    let mut roles = Vec::new();
    for role in &state.roles {
        let Some(disposition) = disposition(cleanup, role) else {
            continue;
        };
        if disposition == Disposition::Drop {
            check_owned(cleanup, role, &state.databases)?;
            check_new_owner(cleanup, role, &state.roles)?;
        }
        roles.push((role.name.clone(), disposition));
    }
    let drops = cleanup.drop_databases && cleanup.policy == DeletionPolicy::Delete;
    let databases = if drops {
        state.databases.clone()
    } else {
        Vec::new()
    };
    let plan = CleanupPlan {
        admin: state.server.target.clone(),
        viewer: state.server.viewer.clone(),
        databases,
        roles,
    };
    Ok((!plan.roles.is_empty() || !plan.databases.is_empty()).then_some(plan))
}

/// What happens to this role; `None` for a role that is not ours.
pub(super) fn disposition(cleanup: &CleanupTarget, role: &CleanupRole) -> Option<Disposition> {
    let facts = role.catalog.role.as_ref()?;
    let found = facts.mark.as_ref()?;
    let mark = &found.mark;
    let before = &cleanup.before;
    let recorded = [&before.username, &before.active_login]
        .into_iter()
        .flatten()
        .chain(&before.retiring_logins)
        .any(|known| *known == role.name);
    // A mark of an earlier version counts if the status names the role, too.
    let is_main = before.username.as_ref() == Some(&role.name);
    let known = recorded && (!is_main || before.oid.is_none_or(|oid| oid == facts.oid));
    let ours = found.seal == Seal::Valid || (found.is_unproven() && known);
    if !ours || !cleanup.identity.owns(mark) {
        return None;
    }
    Some(match (mark.origin, cleanup.policy) {
        (Origin::Created, DeletionPolicy::Delete) => Disposition::Drop,
        (Origin::Adopted, DeletionPolicy::Delete) => Disposition::Revoke,
        (_, DeletionPolicy::Retain) => Disposition::Retain,
        (_, DeletionPolicy::Disable) => Disposition::Disable,
    })
}

/// `ownedObjects: Block` keeps the role while it owns anything; databases that are dropped anyway do not count.
fn check_owned(cleanup: &CleanupTarget, role: &CleanupRole, made: &[String]) -> Result<(), Problem> {
    if cleanup.on_delete.owned_objects != OwnedObjects::Block {
        return Ok(());
    }
    let goes = |database: &&String| cleanup.drop_databases && made.contains(database);
    let going =
        i64::try_from(role.databases.iter().filter(|(name, _)| goes(&name)).count()).unwrap_or_default();
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
    Err(owns(&role.name, &owning.join(", ")))
}

/// What the role owns keeps it.
pub(super) fn owns(role: &str, what: &str) -> Problem {
    blocked(format!(
        "role {role} owns objects ({what}) and onDelete.ownedObjects is Block (2BP01); reassign or drop them"
    ))
}

/// Changes nothing while the new owner does not exist, or may not get anything: objects of the role would act with the
/// privileges of their new owner.
fn check_new_owner(cleanup: &CleanupTarget, role: &CleanupRole, all: &[CleanupRole]) -> Result<(), Problem> {
    let Some(name) = &cleanup.on_delete.reassign_to else {
        return Ok(());
    };
    let refuse = |why: String| {
        let role = &role.name;
        Err(blocked(format!("role {role} cannot be dropped: {why}")))
    };
    let leaves = |role: &CleanupRole| role.name == *name && disposition(cleanup, role).is_some();
    // What a role gives to itself, or to one that goes with it, is dropped with them.
    if cleanup.username.as_ref() == Some(name) || all.iter().any(leaves) {
        return refuse(format!(
            "onDelete.reassignTo names role {name:?}, which is dropped with this object, and with it everything that it would be given; choose another"
        ));
    }
    let Some(new_owner) = role.catalog.existing.get(name) else {
        return refuse(format!(
            "onDelete.reassignTo names role {name:?}, which does not exist"
        ));
    };
    if new_owner.reach != Reach::default() {
        return refuse(format!(
            "onDelete.reassignTo names role {name:?}, which is too powerful to be given what another role made; choose another"
        ));
    }
    let rules = &role.catalog.viewer.rules;
    match rules.check_role("onDelete.reassignTo", name, new_owner) {
        Ok(()) => Ok(()),
        Err(problem) => refuse(problem.message),
    }
}

/// Something blocks the deletion. It is retried sooner than other problems that need a person, who waits for the object
/// to go.
pub(super) fn blocked(message: String) -> Problem {
    Problem::human("CleanupBlocked", message).with_retry(Retry::After(BLOCKED_INTERVAL))
}

/// First of all the role can no longer log in. Nothing else is in this transaction, so that nothing else delays it.
pub(super) fn disable_login(role: &CleanupRole) -> Vec<Statement> {
    let login = role.catalog.role.as_ref().filter(|facts| facts.login);
    let disable = login.map(|_| Statement::new("ALTER ROLE ").ident(&role.name).sql(" NOLOGIN"));
    disable.into_iter().collect()
}

/// The administrator may act for the role, which needs a membership without superuser.
pub(super) fn act_as(role: &CleanupRole) -> Vec<Statement> {
    role::act_as(&role.name, &role.catalog).into_iter().collect()
}

/// The kind in a keeper's mark.
const KEEPER: &str = "Keeper";

/// The new owner of the role's objects: the role that the spec names, otherwise a keeper.
pub(super) enum NewOwner<'a> {
    /// The role that the spec names.
    Named(&'a str),
    /// A role that nobody can be, and what is to be done before it can be given anything.
    Keeper(Keeper, Vec<Statement>),
}

impl<'a> NewOwner<'a> {
    /// The new owner in a database, given the roles that have its keeper's names. A role whose seal cannot be checked gets
    /// nothing, and another keeper takes its place: a lost key must not keep objects from being deleted.
    pub(super) fn of(
        cleanup: &'a CleanupTarget,
        role: &CleanupRole,
        keeper: &Keeper,
        found: &[KeeperFacts],
    ) -> Result<Self, Problem> {
        if let Some(named) = &cleanup.on_delete.reassign_to {
            return Ok(Self::Named(named));
        }
        let marks = &role.catalog.viewer.marks;
        let server = &role.catalog.server;
        let is_ours = |facts: &KeeperFacts| {
            let mark = marks.read(&facts.comment, Bearer::Role(&facts.name)).1;
            facts.inert && is_keeper(cleanup, mark)
        };
        // Somebody with ADMIN OPTION on a role can make a keeper a member of it. The keeper leaves it; only where the
        // administrator may lack the right to that, another keeper is preferred.
        let revokes = server.attributes.superuser || server.version < BOUND_CREATEROLE;
        let free = |facts: &KeeperFacts| is_ours(facts) && (revokes || facts.powerless());
        let chosen = keeper.choose(found, free);
        let Some((keeper, is_there)) = chosen.or_else(|| keeper.choose(found, is_ours)) else {
            return Err(blocked(format!(
                "role {} cannot be dropped: the operator did not create role {:?}, which would keep what it owns, nor the \
                 roles that could replace it; rename or drop one of them",
                role.name,
                keeper.name()
            )));
        };
        let mut ready = Vec::new();
        if !is_there {
            let bearer = Bearer::Role(keeper.name());
            let comment = marks.join("keeps what deleted users owned", &keeper_mark(cleanup), bearer);
            ready.extend(keeper.make(&comment));
        }
        let known = found.iter().find(|facts| facts.name == keeper.name());
        ready.extend(known.map(|facts| facts.leave(server)).unwrap_or_default());
        ready.extend(handover::join(keeper.name(), server));
        Ok(Self::Keeper(keeper, ready))
    }

    fn name(&self) -> &str {
        match self {
            Self::Named(name) => name,
            Self::Keeper(keeper, _) => keeper.name(),
        }
    }
}

fn keeper_mark(cleanup: &CleanupTarget) -> Mark {
    Mark {
        owner: Owner {
            kind: KEEPER.into(),
            namespace: cleanup.identity.namespace.clone(),
            name: "-".into(),
            uid: "-".into(),
        },
        origin: Origin::Created,
    }
}

fn is_keeper(cleanup: &CleanupTarget, found: Option<Found>) -> bool {
    found.is_some_and(|found| found.seal == Seal::Valid && found.mark == keeper_mark(cleanup))
}

/// Reassigns a database that the role owns to its new owner: REASSIGN OWNED, run in any database, would give it to that
/// database's keeper, and DROP OWNED leaves it in place. It needs CREATEDB; without it REASSIGN is the only way.
pub(super) fn reassign_database(
    role: &CleanupRole,
    database: &str,
    new_owner: NewOwner<'_>,
) -> Vec<Statement> {
    let attributes = role.catalog.server.attributes;
    if !(attributes.superuser || attributes.create_db) {
        return Vec::new();
    }
    let give = Statement::new("ALTER DATABASE ")
        .ident(database)
        .sql(" OWNER TO ")
        .ident(new_owner.name());
    let mut statements = match new_owner {
        NewOwner::Named(_) => Vec::new(),
        NewOwner::Keeper(_, ready) => ready,
    };
    statements.push(give);
    statements
}

/// The statements for one database: reassign or drop what the role owns, revoke its privileges. No reassigned object
/// runs with its new owner's privileges.
pub(super) fn drop_owned(role: &CleanupRole, new_owner: Option<NewOwner<'_>>) -> Vec<Statement> {
    let name = &role.name;
    let mut statements = Vec::new();
    match new_owner {
        None => {}
        Some(NewOwner::Named(new_owner)) => {
            statements.extend(handover::disarm(name));
            statements.push(handover::reassign(name, new_owner));
        }
        Some(NewOwner::Keeper(keeper, ready)) => {
            statements.extend(ready);
            statements.extend(handover::disarm(name));
            statements.extend(handover::keep(name, &keeper, &role.catalog.server));
            statements.extend(handover::disarm(keeper.name()));
        }
    }
    statements.push(Statement::new("DROP OWNED BY ").ident(name));
    statements
}

/// The last statement.
pub(super) fn drop_role(name: &str) -> Statement {
    Statement::new("DROP ROLE IF EXISTS ").ident(name)
}

/// The statements that revoke what earlier reconciles granted and belongs to no database.
pub(super) fn revoke_grants(
    removed: &CleanupRole,
    given: &[AppliedGrant],
) -> Result<Vec<Statement>, Problem> {
    let none = memberships::Asked {
        role: &removed.name,
        member_of: &[],
        policy: MembershipPolicy::Additive,
        before: given,
        inherits: true,
    };
    let nothing = BTreeMap::new();
    let stored = removed
        .catalog
        .role
        .as_ref()
        .map_or(&nothing, |facts| &facts.parameters);
    let mut changes = memberships::diff(&none, &removed.catalog)?;
    changes.extend(parameters::changes(&removed.name, &nothing, stored, given));
    Ok(changes.into_iter().map(|change| change.statement).collect())
}

/// Removes the mark, so that another object can adopt the role.
pub(super) fn unmark(role: &CleanupRole) -> Option<Statement> {
    let facts = role.catalog.role.as_ref()?;
    let marks = &role.catalog.viewer.marks;
    facts.mark.as_ref().map(|_| {
        // An earlier version let people write their own mark into the text.
        let mut text = facts.text.as_str();
        while let (rest, Some(_)) = marks.read(text, Bearer::Role(&role.name)) {
            text = rest;
        }
        let start = Statement::new("COMMENT ON ROLE ").ident(&role.name).sql(" IS ");
        if text.is_empty() {
            start.sql("NULL")
        } else {
            start.literal(text)
        }
    })
}
