//! Takes a role away, so that it can be taken away again after a crash at any point.

use stanchion_kernel::Problem;
use stanchion_postgres::lock::ROLES;
use stanchion_postgres::{Batch, Error, Pooled, Statement};

use crate::setup::{Setup, TURN};
use crate::user::observe::{self, LeavingRole, Left, invalid, terminate};
use crate::user::plan::goodbye::{self, End, Goodbye};
use crate::user::plan::grants;
use crate::user::target::Leaving;

/// Does what the plan says.
pub async fn remove(setup: &Setup, leaving: &Leaving, left: &Left, goodbye: &Goodbye) -> Result<(), Problem> {
    for name in &goodbye.databases {
        let (_turn, mut session) = setup.pools.exclusive(&left.server.target, TURN).await?;
        let statement = Statement::new("DROP DATABASE IF EXISTS ")
            .ident(name)
            .sql(" WITH (FORCE)");
        session.execute(&statement).await?;
    }
    for (name, end) in &goodbye.roles {
        let mut removal = Removal {
            setup,
            leaving,
            left,
            name,
        };
        match end {
            End::Drop => removal.drop().await?,
            End::Revoke => removal.revoke().await?,
            End::Retain => removal.release(false).await?,
            End::Disable => removal.release(true).await?,
        }
    }
    Ok(())
}

struct Removal<'a> {
    setup: &'a Setup,
    leaving: &'a Leaving,
    left: &'a Left,
    name: &'a str,
}

impl Removal<'_> {
    /// A session in the administrator's database, and the role as it is now; `None` when it is gone, or is not
    /// ours any more.
    async fn look(&self) -> Result<Option<(Pooled, LeavingRole)>, Problem> {
        let session = self.setup.pools.get(&self.left.server.target).await?;
        let role = observe::look(&session, self.name, self.leaving).await?;
        Ok(role
            .filter(|role| goodbye::end(self.leaving, role).is_some())
            .map(|role| (session, role)))
    }

    async fn drop(&mut self) -> Result<(), Problem> {
        let Some((mut session, role)) = self.look().await? else {
            return Ok(());
        };
        session
            .apply(&Batch::new(goodbye::seize(&role)).locked(ROLES))
            .await?;
        if self.leaving.on_delete.terminate_sessions {
            terminate(&session, self.name).await?;
        }
        // Until now its sessions could make things.
        let Some(role) = observe::look(&session, self.name, self.leaving).await? else {
            return Ok(());
        };
        let handed_over = goodbye::hand_over(self.leaving, &role);
        if !handed_over.is_empty() {
            session.apply(&Batch::new(handed_over).locked(ROLES)).await?;
        }
        drop(session);
        for (database, here) in &role.dependencies {
            // What depends in a database that lets nobody in shows itself when the role is dropped.
            if database.is_empty() || !here.open {
                continue;
            }
            let address = self.left.server.target.with_database(database).map_err(invalid)?;
            match self.setup.pools.exclusive(&address, TURN).await {
                Err(error) if is_gone(&error) => {}
                Err(error) => return Err(error.into()),
                Ok((_turn, mut session)) => {
                    let statements = goodbye::empty(self.leaving, &role, here);
                    session.apply(&Batch::new(statements).locked(ROLES)).await?;
                }
            }
        }
        // Shared objects (a database that it owns, a privilege on one) belong to no database: any one will do.
        let (_turn, mut session) = self.setup.pools.exclusive(&self.left.server.target, TURN).await?;
        let mut statements = Vec::new();
        if let Some(shared) = role.dependencies.get("") {
            statements.extend(goodbye::empty(self.leaving, &role, shared));
        }
        statements.push(goodbye::drop_role(self.name));
        match session.apply(&Batch::new(statements).locked(ROLES)).await {
            Err(error) if error.sqlstate() == Some("2BP01") => Err(blocked(self.name, &error)),
            other => other.map(|_| ()).map_err(Problem::from),
        }
    }

    /// A role that was there before us keeps everything but what we gave it.
    async fn revoke(&mut self) -> Result<(), Problem> {
        for database in grants::databases(&self.leaving.before.grants) {
            let address = self
                .left
                .server
                .target
                .with_database(&database)
                .map_err(invalid)?;
            let (_turn, mut session) = match self.setup.pools.exclusive(&address, TURN).await {
                Err(error) if is_gone(&error) => continue,
                other => other?,
            };
            let statements =
                observe::left_over(&session, self.name, &database, &self.leaving.before.grants).await?;
            session.apply(&Batch::new(statements).locked(ROLES)).await?;
        }
        if let Some((mut session, role)) = self.look().await? {
            let statements = goodbye::take_back(&role, &self.leaving.before.grants)?;
            session.apply(&Batch::new(statements).locked(ROLES)).await?;
        }
        self.release(false).await
    }

    /// The role stays, and the next object may adopt it.
    async fn release(&mut self, disable: bool) -> Result<(), Problem> {
        let Some((mut session, role)) = self.look().await? else {
            return Ok(());
        };
        let mut statements = Vec::new();
        if disable {
            statements.push(
                Statement::new("ALTER ROLE ")
                    .ident(self.name)
                    .sql(" NOLOGIN PASSWORD NULL"),
            );
        }
        statements.extend(goodbye::unmark(&role));
        session.apply(&Batch::new(statements).locked(ROLES)).await?;
        Ok(())
    }
}

/// The database is not there, or lets nobody in.
fn is_gone(error: &Error) -> bool {
    matches!(error.sqlstate(), Some("3D000" | "55000"))
}

/// Names the role, the code and what is in the way, in the server's words.
fn blocked(role: &str, error: &Error) -> Problem {
    let detail = error
        .message()
        .and_then(|message| message.detail.clone())
        .unwrap_or_default();
    let message = format!(
        "role {role} cannot be dropped (2BP01): {}",
        detail.replace('\n', "; ")
    );
    goodbye::blocked(message).caused_by(error.clone())
}
