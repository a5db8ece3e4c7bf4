//! Applies the plan. Every step is idempotent; the process can be killed between any two.
//!
//! Each database gets one transaction, under its lock, with the differences at that time.

use std::sync::Arc;

use stanchion_api::user::AppliedGrant;
use stanchion_kernel::apply::Written;
use stanchion_kernel::problem::Cause;
use stanchion_kernel::{Done, Problem, Writer};
use stanchion_postgres::lock::{ROLES, TURN};
use stanchion_postgres::{Batch, Begin, ConnectionConfig, Error, Session, Statement};

use super::catalog::{Catalog, Viewer};
use super::failed::Failed;
use super::observe::{Snapshot, SnapshotQuery, databases_of};
use super::passwords::Passwords;
use super::plan::{self, About, Change, Decided, EnsurePlan, Plan, SqlPlan, database, grants, role};
use super::sessions;
use super::target::Wanted;
use super::{guards, withdrawn};
use crate::server::{self, Setup};

/// How often the differences are computed in one transaction: what a new schema needs is known only after its creation.
const ROUNDS: usize = 2;

/// What was done, and what is known afterwards.
#[derive(Default)]
pub struct Applied {
    /// What was decided about the role.
    pub decided: Option<Arc<Decided>>,
    /// What was changed, in the terms of the spec.
    pub changed: Vec<String>,
    /// What the role now holds because of the operator; `None` if that is unknown.
    pub grants: Option<Vec<AppliedGrant>>,
    /// Whether the database was created.
    pub database_made: bool,
    /// The role's oid.
    pub oid: Option<u32>,
    /// Whether a password was set.
    pub password_set: bool,
    /// The Secrets that were written and deleted.
    pub written: Written,
    /// The statements that would run (`mode: Plan`).
    pub shown: Option<Vec<String>>,
}

/// Applies the plan.
pub(super) async fn apply(
    setup: &Setup,
    write: &Writer,
    wanted: &Wanted,
    plan: Plan,
    applied: &mut Applied,
) -> Result<Done, Problem> {
    match plan {
        Plan::Ensure(plan) => {
            ensure(setup, write, wanted, *plan, applied).await?;
            Ok(Done::Complete)
        }
        Plan::LockOut(server, logins) => {
            withdrawn::lock_out(setup, write, &server, &logins).await?;
            Ok(Done::Blocked(withdrawn::problem()))
        }
    }
}

async fn ensure(
    setup: &Setup,
    write: &Writer,
    wanted: &Wanted,
    plan: EnsurePlan,
    applied: &mut Applied,
) -> Result<(), Problem> {
    let decided = plan.decided;
    applied.decided = Some(Arc::clone(&decided));
    applied.shown = plan.shown.as_deref().map(show);
    write.apply_all(plan.credentials, &mut applied.written).await?;
    let mut made = Ok(());
    if let Some(sql) = &plan.sql {
        write.may_write()?;
        made = make(setup, wanted, &decided.passwords, sql, applied).await;
    }
    // Also if something else failed after a password was set: the next pass does not know that it replaced another.
    let set = applied.password_set;
    if set || (made.is_ok() && (!plan.endings.is_empty() || plan.sql.is_some())) {
        write.may_write()?;
        let (admin, passwords) = (&plan.admin, &decided.passwords);
        let ended = sessions::end_due(setup, admin, plan.endings, wanted, passwords, set).await;
        made?;
        applied.changed.extend(ended?);
    } else {
        made?;
    }
    write.apply_all(plan.stale, &mut applied.written).await
}

/// The statements without their secrets, and where they would run.
fn show(changes: &[Change]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut place = None;
    for change in changes {
        if change.database.is_some() && change.database != place {
            place.clone_from(&change.database);
            let name = place.as_deref().unwrap_or_default();
            lines.push(format!("-- in database {name:?}"));
        }
        lines.extend(change.statements().map(ToString::to_string));
    }
    lines
}

/// Applies the changes, database by database; the role itself comes with the first.
async fn make(
    setup: &Setup,
    wanted: &Wanted,
    passwords: &Passwords,
    plan: &SqlPlan,
    applied: &mut Applied,
) -> Result<(), Problem> {
    let admin = &plan.admin;
    let home = if plan.exists {
        server::database(admin, &wanted.database)?
    } else {
        admin.clone()
    };
    let mut pass = Pass {
        setup,
        wanted,
        passwords,
        viewer: &plan.viewer,
        held: Vec::new(),
        applied,
    };
    match pass.in_database(&home, true).await {
        // Another task of this process has the turn. A new password does not wait for it, because the old one may be
        // compromised.
        Err(problem) if problem.is(Cause::DatabaseBusy) && passwords.is_changing() => {
            pass.passwords_only(&home).await?;
            return Err(problem);
        }
        other => other?,
    }
    pass.applied.password_set = passwords.is_changing();
    pass.create_database(admin, &plan.creation).await?;
    for name in databases_of(wanted) {
        if name != home.database() {
            pass.in_database(&server::database(admin, &name)?, false).await?;
        }
    }
    let held = std::mem::take(&mut pass.held);
    applied.grants = Some(held);
    Ok(())
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
    /// Changes what differs in one database. A login cannot keep its role from being changed by locking it.
    async fn in_database(&mut self, address: &ConnectionConfig, with_role: bool) -> Result<(), Problem> {
        let (_turn, mut session) = match self.setup.pools.exclusive(address, TURN).await {
            // Dropped by hand: there is nothing left to revoke.
            Err(error) if error.sqlstate() == Some("3D000") && !self.is_wanted(address) => return Ok(()),
            other => other?,
        };
        match Box::pin(self.change(&mut session, address, with_role)).await {
            Err(Failed::Sql(error)) if with_role => {
                let blocked = sessions::blocked(&session, &self.roles(), error).await?;
                let pools = &self.setup.pools;
                let again = Box::pin(self.change(&mut session, address, with_role));
                Ok(Box::pin(pools.unblock(blocked, again)).await?)
            }
            other => Ok(other?),
        }
    }

    /// The role and its logins.
    fn roles(&self) -> Vec<&str> {
        let logins = self.passwords.logins().iter().map(|login| login.name.as_str());
        logins.chain([self.wanted.username.as_str()]).collect()
    }

    /// One transaction: inspects again under the lock, changes what differs, verifies the result.
    async fn change(
        &mut self,
        session: &mut Session,
        address: &ConnectionConfig,
        with_role: bool,
    ) -> Result<(), Failed> {
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
        let (mut after, mut done) = (None, Vec::new());
        for _ in 0..ROUNDS {
            if changes.is_empty() {
                break;
            }
            let statements = statements(&changes);
            let rows = transaction.apply_and_read(&statements, &query.queries()).await?;
            done.extend(changes.into_iter().map(|change| change.what));
            let snapshot = query.answer(&rows)?;
            changes = self.changes(&snapshot, address, with_role, &unchanged)?;
            after = Some(snapshot);
        }
        if let Some(left) = changes.first() {
            return Err(ineffective(left, &before.catalog, address).into());
        }
        if after.is_some() {
            transaction.commit(&[]).await?;
        } else {
            transaction.roll_back().await;
        }
        self.applied.changed.extend(done);
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
        let statements = statements(&changes);
        if let Err(error) = transaction.commit(&statements).await {
            let batch = Batch::new(statements);
            sessions::apply_again(self.setup, &mut session, &batch, &self.roles(), error).await?;
        }
        self.applied
            .changed
            .extend(changes.into_iter().map(|change| change.what));
        self.applied.password_set = true;
        Ok(())
    }

    /// Records what the role now holds because of the operator.
    fn note(&mut self, before: &Snapshot, after: &Snapshot, address: &ConnectionConfig, with_role: bool) {
        let adopted = guards::is_adopted(self.wanted, &before.catalog);
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
            changes.extend(role::changes(self.wanted, &snapshot.catalog, passwords)?);
        }
        let name = address.database();
        if let Some(facts) = snapshot.catalog.databases.get(name) {
            changes.extend(match self.wanted.databases.get(name) {
                Some(request) => {
                    database::check_extensions(request, &snapshot.contents, &snapshot.catalog)?;
                    database::check_schemas(name, request, &snapshot.contents)?;
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
    async fn create_database(
        &mut self,
        admin: &ConnectionConfig,
        creation: &[Change],
    ) -> Result<(), Problem> {
        let Some(last) = creation.last() else {
            return Ok(());
        };
        let (_turn, mut session) = self.setup.pools.exclusive(admin, TURN).await?;
        for (index, one) in creation.iter().enumerate() {
            match session.execute(&one.statement).await {
                Err(error) if error.sqlstate() == Some("22023") => {
                    // The oid is taken, perhaps.
                    if index + 1 == creation.len() {
                        return Err(not_created(&error, one));
                    }
                }
                other => {
                    other?;
                    break;
                }
            }
        }
        self.applied.changed.push(last.what.clone());
        self.applied.database_made = true;
        Ok(())
    }
}

/// The server refuses the database, with this oid or with any.
fn not_created(error: &Error, creation: &Change) -> Problem {
    let advice = "possible causes: the template has another encoding, or a renamed database still has the reserved OID (drop \
                  that database)";
    let message = format!("{} cannot be created (22023): {error}; {advice}", creation.what);
    Problem::human("DatabaseError", message).caused_by(error.clone())
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

fn statements(changes: &[Change]) -> Vec<Statement> {
    changes.iter().flat_map(Change::statements).cloned().collect()
}
