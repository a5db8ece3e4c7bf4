//! Applies the changes of a role: one transaction for each database, under the database's lock, with the differences at
//! that time.

use stanchion_api::user::AppliedGrant;
use stanchion_kernel::Problem;
use stanchion_kernel::problem::Cause;
use stanchion_postgres::lock::ROLES;
use stanchion_postgres::{Begin, ConnectionConfig, Pooled, Statement};

use super::Applied;
use crate::setup::{Setup, TURN};
use crate::user::catalog::{Catalog, Viewer};
use crate::user::observe::{self, Current, invalid};
use crate::user::passwords::Passwords;
use crate::user::plan::{self, About, Change, database, grants, guards, ownership};
use crate::user::snapshot::{Snapshot, SnapshotQuery, databases_of};
use crate::user::target::Wanted;

/// How often the differences are computed in one transaction: what a new schema needs is known only after its creation.
const ROUNDS: usize = 2;

/// Applies the changes, database by database; the role itself comes with the first.
pub async fn make(
    setup: &Setup,
    wanted: &Wanted,
    current: &Current,
    applied: &mut Applied,
) -> Result<(), Problem> {
    let admin = &current.server.target;
    let exists = current.catalog.databases.contains_key(&wanted.database);
    let home = if exists {
        admin.with_database(&wanted.database).map_err(invalid)?
    } else {
        admin.clone()
    };
    let mut pass = Pass {
        setup,
        wanted,
        passwords: &current.passwords,
        viewer: &current.server.viewer,
        held: Vec::new(),
        applied,
    };
    match pass.in_database(&home, true).await {
        // Another task of this process has the turn. A new password does not wait for it, because the old one may be
        // compromised.
        Err(problem) if problem.is(Cause::DatabaseBusy) && current.passwords.is_changing() => {
            pass.passwords_only(&home).await?;
            return Err(problem);
        }
        other => other?,
    }
    if !exists {
        pass.create_database(admin, &current.catalog).await?;
    }
    for name in databases_of(wanted) {
        if name != home.database() {
            pass.in_database(&admin.with_database(&name).map_err(invalid)?, false)
                .await?;
        }
    }
    let held = std::mem::take(&mut pass.held);
    applied.grants = Some(held);
    applied.password_set = current.passwords.is_changing();
    end_sessions(setup, admin, wanted, &current.passwords, applied).await
}

struct Pass<'a> {
    setup: &'a Setup,
    wanted: &'a Wanted,
    passwords: &'a Passwords,
    viewer: &'a Viewer,
    /// What the role holds because of the operator, as far as this reconcile has come.
    held: Vec<AppliedGrant>,
    applied: &'a mut Applied,
}

impl Pass<'_> {
    /// One transaction: inspects again under the lock, changes what differs, verifies the result.
    async fn in_database(&mut self, address: &ConnectionConfig, with_role: bool) -> Result<(), Problem> {
        let (_turn, mut session) = match self.setup.pools.exclusive(address, TURN).await {
            // Dropped by hand: there is nothing left to revoke.
            Err(error) if error.sqlstate() == Some("3D000") && !self.is_wanted(address) => return Ok(()),
            other => other?,
        };
        let begin = Begin {
            lock: Some(ROLES),
            guarded: with_role && self.passwords.is_changing(),
            ..Begin::default()
        };
        let query = SnapshotQuery::at(self.wanted, self.viewer, address.database());
        let (mut transaction, rows) = session.begin(&begin, &query.queries()).await?;
        let before = query.answer(&rows)?;
        let unchanged = self.passwords.without_changes();
        let mut changes = self.changes(&before, address, with_role, self.passwords)?;
        let mut after = None;
        for _ in 0..ROUNDS {
            if changes.is_empty() {
                break;
            }
            let statements: Vec<Statement> = changes.iter().map(|change| change.statement.clone()).collect();
            let rows = transaction.apply_and_read(&statements, &query.queries()).await?;
            self.applied
                .changed
                .extend(changes.into_iter().map(|change| change.what));
            let snapshot = query.answer(&rows)?;
            changes = self.changes(&snapshot, address, with_role, &unchanged)?;
            after = Some(snapshot);
        }
        if let Some(left) = changes.first() {
            return Err(ineffective(left, &before.catalog, address));
        }
        if after.is_some() {
            transaction.commit(&[]).await?;
        } else {
            transaction.roll_back().await;
        }
        self.note(&before, after.as_ref().unwrap_or(&before), address, with_role);
        Ok(())
    }

    /// Sets passwords of existing roles, and nothing else, without waiting for a turn.
    async fn passwords_only(&mut self, address: &ConnectionConfig) -> Result<(), Problem> {
        let mut session = self.setup.pools.get(address).await?;
        let begin = Begin {
            guarded: true,
            ..Begin::default()
        };
        let query = SnapshotQuery::at(self.wanted, self.viewer, address.database());
        let (transaction, rows) = session.begin(&begin, &query.queries()).await?;
        let snapshot = query.answer(&rows)?;
        let mut changes = self.changes(&snapshot, address, true, self.passwords)?;
        changes.retain(|change| change.about == About::Password);
        if snapshot.catalog.role.is_none() || changes.is_empty() {
            transaction.roll_back().await;
            return Ok(());
        }
        let statements: Vec<Statement> = changes.iter().map(|change| change.statement.clone()).collect();
        transaction.commit(&statements).await?;
        self.applied
            .changed
            .extend(changes.into_iter().map(|change| change.what));
        self.applied.password_set = true;
        Ok(())
    }

    /// Records what the role now holds because of the operator.
    fn note(&mut self, before: &Snapshot, after: &Snapshot, address: &ConnectionConfig, with_role: bool) {
        let adopted = ownership::is_adopted(self.wanted, &before.catalog);
        if with_role {
            self.applied.oid = after.catalog.role.as_ref().map(|role| role.oid);
            self.held
                .extend(plan::shared_holdings(self.wanted, &before.catalog, adopted));
        }
        let name = address.database();
        let (Some(request), Some(had), Some(facts)) = (
            self.wanted.databases.get(name),
            before.catalog.databases.get(name),
            after.catalog.databases.get(name),
        ) else {
            return;
        };
        // The owners of new objects are known only now.
        let wanted = grants::wanted(name, &self.wanted.username, request, facts, &after.contents);
        self.held.extend(if adopted {
            grants::ours(wanted, &self.wanted.before.grants, had, &before.contents)
        } else {
            wanted
        });
    }

    fn is_wanted(&self, address: &ConnectionConfig) -> bool {
        self.wanted.databases.contains_key(address.database())
    }

    fn changes(
        &self,
        snapshot: &Snapshot,
        address: &ConnectionConfig,
        with_role: bool,
        passwords: &Passwords,
    ) -> Result<Vec<Change>, Problem> {
        guards::check(self.wanted, &snapshot.catalog)?;
        let mut changes = Vec::new();
        if with_role {
            changes.extend(ownership::role_changes(
                self.wanted,
                &snapshot.catalog,
                passwords,
            )?);
        }
        let name = address.database();
        if let Some(facts) = snapshot.catalog.databases.get(name) {
            changes.extend(match self.wanted.databases.get(name) {
                Some(request) => {
                    guards::check_extensions(request, &snapshot.contents, &snapshot.catalog)?;
                    database::diff(
                        name,
                        self.wanted,
                        request,
                        facts,
                        &snapshot.contents,
                        &snapshot.catalog,
                    )
                }
                None => database::leave(name, self.wanted, facts, &snapshot.contents),
            });
        }
        Ok(changes)
    }

    /// Runs outside of a transaction, as PostgreSQL requires. After a crash its oid proves that the operator created
    /// it.
    async fn create_database(&mut self, admin: &ConnectionConfig, catalog: &Catalog) -> Result<(), Problem> {
        let Some(change) = database::creation(self.wanted, catalog)? else {
            return Ok(());
        };
        let (_turn, mut session): (_, Pooled) = self.setup.pools.exclusive(admin, TURN).await?;
        session.execute(&change.statement).await?;
        self.applied.changed.push(change.what);
        self.applied.database_made = true;
        Ok(())
    }
}

/// For PostgreSQL a GRANT without grant option is a warning without effect. Nothing is committed that did not take
/// effect.
fn ineffective(left: &Change, catalog: &Catalog, address: &ConnectionConfig) -> Problem {
    Problem::human(
        "InsufficientPrivilege",
        format!(
            "role {} lacks the privilege to change this in database {}: {} had no effect; grant it the privilege WITH GRANT OPTION",
            catalog.server.role,
            address.database(),
            left.what,
        ),
    )
    .with_cause(Cause::Privileges)
}

/// A stolen session outlives a password: if requested, it ends with the password or the login that opened it.
async fn end_sessions(
    setup: &Setup,
    admin: &ConnectionConfig,
    wanted: &Wanted,
    passwords: &Passwords,
    applied: &mut Applied,
) -> Result<(), Problem> {
    let mut roles: Vec<&str> = passwords.retiring().map(|login| login.name.as_str()).collect();
    if !passwords.is_dual() && applied.password_set && passwords.rotated.is_some() {
        roles.push(&wanted.username);
    }
    if !passwords.terminates || roles.is_empty() {
        return Ok(());
    }
    let session = setup.pools.get(admin).await?;
    for role in roles {
        let ended = observe::terminate(&session, role).await?;
        if ended > 0 {
            applied.changed.push(format!("{ended} sessions of {role} ended"));
        }
    }
    Ok(())
}
