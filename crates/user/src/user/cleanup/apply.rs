//! Removes a role, in steps that can be repeated after a crash at any point.

use stanchion_api::user::OwnedObjects;
use stanchion_kernel::Problem;
use stanchion_postgres::handover::{self, Disarmed, Keeper};
use stanchion_postgres::lock::{ROLES, TURN};
use stanchion_postgres::{Batch, Begin, ConnectionConfig, Error, Pooled, Row, RowError, Session, Statement};

use super::observe::{self, CleanupRole, read_role};
use super::plan::{self, CleanupPlan, Disposition, NewOwner};
use super::{CleanupTarget, Removed};
use crate::server::{self, Setup};
use crate::user::catalog::{Unexpected, Viewer};
use crate::user::failed::Failed;
use crate::user::plan::grants;
use crate::user::schemas::Given;
use crate::user::sessions;

/// Applies the plan.
pub(super) async fn apply(
    setup: &Setup,
    cleanup: &CleanupTarget,
    plan: &CleanupPlan,
    removed: &mut Removed,
) -> Result<(), Problem> {
    for name in &plan.databases {
        let (_turn, mut session) = setup.pools.exclusive(&plan.admin, TURN).await?;
        let statement = Statement::new("DROP DATABASE IF EXISTS ")
            .ident(name)
            .sql(" WITH (FORCE)");
        session.execute(&statement).await?;
    }
    for (name, disposition) in &plan.roles {
        let mut removal = Removal {
            setup,
            cleanup,
            admin: &plan.admin,
            viewer: &plan.viewer,
            name,
            removed,
        };
        match disposition {
            Disposition::Drop => removal.drop().await?,
            Disposition::Revoke => removal.revoke().await?,
            Disposition::Retain => removal.release(false).await?,
            Disposition::Disable => removal.release(true).await?,
        }
    }
    Ok(())
}

struct Removal<'a> {
    setup: &'a Setup,
    cleanup: &'a CleanupTarget,
    admin: &'a ConnectionConfig,
    viewer: &'a Viewer,
    name: &'a str,
    removed: &'a mut Removed,
}

impl Removal<'_> {
    /// A session in the administrator's database, and the current role; `None` if it is gone, or no longer ours.
    async fn read_role(&self) -> Result<Option<(Pooled, CleanupRole)>, Problem> {
        let session = self.setup.pools.get(self.admin).await?;
        let role = read_role(&session, self.viewer, self.name, self.cleanup).await?;
        Ok(role
            .filter(|role| plan::disposition(self.cleanup, role).is_some())
            .map(|role| (session, role)))
    }

    async fn drop(&mut self) -> Result<(), Problem> {
        let Some((mut session, role)) = self.read_role().await? else {
            return Ok(());
        };
        // At once: a lock that anybody can take must not keep a login open.
        self.lock_out(&mut session, plan::disable_login(&role)).await?;
        let join = plan::act_as(&role);
        if !join.is_empty() {
            session.apply(&Batch::new(join)).await?;
        }
        // Its sessions could create objects until now.
        let Some(role) = read_role(&session, self.viewer, self.name, self.cleanup).await? else {
            return Ok(());
        };
        drop(session);
        for (database, oid) in &role.databases {
            self.give_database(&role, database, *oid).await?;
        }
        for (database, here) in &role.dependencies {
            // Dependencies in a database that refuses connections show when the role is dropped.
            if database.is_empty() || !here.open {
                continue;
            }
            let address = server::database(self.admin, database)?;
            match self.setup.pools.exclusive(&address, TURN).await {
                Err(error) if is_gone(&error) => {}
                Err(error) => return Err(error.into()),
                Ok((_turn, mut session)) => {
                    self.drop_owned(&mut session, &role, here.oid, Vec::new()).await?;
                }
            }
        }
        // Shared objects (an owned database, a privilege on one) belong to no database: any database will do.
        let (_turn, mut session) = self.setup.pools.exclusive(self.admin, TURN).await?;
        let Some(role) = read_role(&session, self.viewer, self.name, self.cleanup).await? else {
            return Ok(());
        };
        let dropped = plan::drop_role(self.name);
        let ended = if let Some(shared) = role.dependencies.get("") {
            self.drop_owned(&mut session, &role, shared.oid, vec![dropped])
                .await
        } else {
            let batch = Batch::new(vec![dropped]).locked(ROLES);
            session.apply(&batch).await.map(|_| ()).map_err(Failed::Sql)
        };
        match ended {
            Err(Failed::Sql(error)) if error.sqlstate() == Some("2BP01") => Err(blocked(self.name, &error)),
            other => Ok(other?),
        }
    }

    /// Reassigns a database that the role owns.
    async fn give_database(&self, role: &CleanupRole, database: &str, oid: u32) -> Result<(), Problem> {
        let keeper = self.keeper(oid);
        let (_turn, mut session) = self.setup.pools.exclusive(self.admin, TURN).await?;
        let begin = Begin {
            lock: Some(ROLES),
            ..Begin::default()
        };
        let (transaction, rows) = session.begin(&begin, &[keeper.query()]).await?;
        let found = first(&rows, 0)
            .map(Keeper::facts)
            .transpose()
            .map_err(unexpected)?
            .unwrap_or_default();
        let new_owner = NewOwner::of(self.cleanup, role, &keeper, &found)?;
        let statements = plan::reassign_database(role, database, new_owner);
        transaction.commit(&statements).await?;
        Ok(())
    }

    /// Reassigns or drops what the role owns in the session's database, to the new owner for the database with this
    /// oid, and revokes its privileges: in one transaction, which also disarms what would run with its owner's
    /// privileges. This transaction counts what the role owns: a member of the role, or a session that the spec keeps, can
    /// have made something since the last count.
    async fn drop_owned(
        &mut self,
        session: &mut Session,
        role: &CleanupRole,
        database: u32,
        last: Vec<Statement>,
    ) -> Result<(), Failed> {
        let owned = self.cleanup.on_delete.owned_objects;
        let keeper = self.keeper(database);
        let begin = Begin {
            lock: Some(ROLES),
            ..Begin::default()
        };
        let queries = [
            observe::owned(self.name),
            handover::armed(self.name),
            keeper.query(),
        ];
        let (transaction, rows) = session.begin(&begin, &queries).await.map_err(Failed::Sql)?;
        let mut armed = Disarmed::default();
        let new_owner = match (owned, observe::owned_here(first(&rows, 0), database)?) {
            (_, 0) | (OwnedObjects::Drop, _) => None,
            (OwnedObjects::Block, count) => {
                let place = transaction.session().target().database();
                return Err(plan::owns(self.name, &format!("{count} in database {place}")).into());
            }
            (OwnedObjects::Reassign, _) => {
                armed = first(&rows, 1)
                    .map(Disarmed::of_rows)
                    .transpose()
                    .map_err(unexpected)?
                    .unwrap_or_default();
                let found = first(&rows, 2)
                    .map(Keeper::facts)
                    .transpose()
                    .map_err(unexpected)?
                    .unwrap_or_default();
                Some(NewOwner::of(self.cleanup, role, &keeper, &found)?)
            }
        };
        let mut statements = plan::drop_owned(role, new_owner);
        statements.extend(last);
        let place = transaction.session().target().database().to_owned();
        transaction.commit(&statements).await.map_err(Failed::Sql)?;
        self.removed.disarm(&place, &armed);
        Ok(())
    }

    /// The keeper of a database for the object's namespace.
    fn keeper(&self, oid: u32) -> Keeper {
        Keeper::of(oid, &self.cleanup.identity.namespace)
    }

    /// A role that existed before keeps everything except what the operator granted.
    async fn revoke(&mut self) -> Result<(), Problem> {
        for database in grants::databases(&self.cleanup.before.grants) {
            let address = server::database(self.admin, &database)?;
            let (_turn, mut session) = match self.setup.pools.exclusive(&address, TURN).await {
                Err(error) if error.sqlstate() == Some("3D000") => continue,
                Err(error) if error.is_closed_database() => return Err(closed(self.name, &error)),
                other => other?,
            };
            let given = Given {
                role: self.name,
                database: &database,
                grants: &self.cleanup.before.grants,
            };
            let statements = given.left_over(&session, self.viewer, None).await?;
            session.apply(&Batch::new(statements).locked(ROLES)).await?;
        }
        if let Some((mut session, role)) = self.read_role().await? {
            let statements = plan::revoke_grants(&role, &self.cleanup.before.grants)?;
            session.apply(&Batch::new(statements).locked(ROLES)).await?;
        }
        self.release(false).await
    }

    /// Takes the login away, at once, and ends its sessions, unless the spec keeps them.
    async fn lock_out(&self, session: &mut Session, disable: Vec<Statement>) -> Result<(), Problem> {
        let disable = Batch::new(disable);
        if !disable.statements.is_empty() {
            sessions::apply(self.setup, session, &disable, &[self.name]).await?;
        }
        if self.cleanup.on_delete.terminate_sessions {
            sessions::end_all(session, self.name).await?;
        }
        Ok(())
    }

    /// The role stays, and another object may adopt it.
    async fn release(&mut self, disable: bool) -> Result<(), Problem> {
        let Some((mut session, role)) = self.read_role().await? else {
            return Ok(());
        };
        if disable {
            let disable = Statement::new("ALTER ROLE ")
                .ident(self.name)
                .sql(" NOLOGIN PASSWORD NULL");
            self.lock_out(&mut session, vec![disable]).await?;
        }
        let statements: Vec<Statement> = plan::unmark(&role).into_iter().collect();
        session.apply(&Batch::new(statements).locked(ROLES)).await?;
        Ok(())
    }
}

fn first(rows: &[Vec<Row>], index: usize) -> Option<&[Row]> {
    rows.get(index).map(Vec::as_slice)
}

fn unexpected(_: RowError) -> Problem {
    Unexpected.into()
}

/// Nothing would show later that the role still holds something there.
fn closed(role: &str, error: &Error) -> Problem {
    let message = format!(
        "role {role} keeps what it was granted in database {:?}, which refuses connections (55000); allow them",
        error.database()
    );
    plan::blocked(message).caused_by(error.clone())
}

/// Whether the database does not exist, or refuses connections.
fn is_gone(error: &Error) -> bool {
    matches!(error.sqlstate(), Some("3D000" | "55000"))
}

/// Names the role, the SQLSTATE and the obstacle, with the server's message.
fn blocked(role: &str, error: &Error) -> Problem {
    let detail = error
        .message()
        .and_then(|message| message.detail.clone())
        .unwrap_or_default();
    let message = format!(
        "role {role} cannot be dropped (2BP01): {}",
        detail.replace('\n', "; ")
    );
    plan::blocked(message).caused_by(error.clone())
}
