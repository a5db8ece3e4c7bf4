//! Gets past a lock that a login keeps on its own role.
//!
//! Every login may change its own password. Its row in `pg_authid` is then locked until its transaction ends, and nobody
//! else can take the login away, set another password or drop the role. So a change that met such a lock waits for it
//! again, first in the queue, while a second session ends the sessions in front of it: those of the role itself, and of
//! members that may act as it. It ends nobody else, and never the administrator.

use std::future::Future;
use std::pin::pin;

use futures::future::{Either, select};

use crate::batch::Batch;
use crate::connection_config::ConnectionConfig;
use crate::error::{Error, Kind};
use crate::handover;
use crate::pool::Pools;
use crate::read::Query;
use crate::session::ReadSession;
use crate::sqlstate::Doing;
use crate::statement::Statement;

const UNBLOCK: &str = include_str!("unblock/unblock.sql");

/// A session whose change waits for locks of these roles.
pub struct Blocked {
    target: ConnectionConfig,
    pid: i32,
    roles: Vec<String>,
    /// What makes the administrator a member of them: without superuser, only a member may end their sessions.
    joins: Vec<Statement>,
}

impl Error {
    /// Whether somebody else has locked what the statement changes, or has just changed it: "lock not available", "tuple
    /// concurrently updated".
    pub fn met_a_lock(&self) -> bool {
        self.kind() == Kind::Server && matches!(self.sqlstate(), Some("55P03" | "XX000"))
    }
}

impl ReadSession {
    /// What [`Pools::unblock`] needs to know about this session.
    pub async fn blocked_by(&self, roles: &[&str]) -> Result<Blocked, Error> {
        let (server, powers) = self.inspect(roles).await?;
        let rows = self
            .query(&Query::new("SELECT pg_catalog.pg_backend_pid()"))
            .await?;
        let pid = rows.first().map(|row| row.try_get(0)).transpose();
        let joins = powers
            .iter()
            .filter(|(_, powers)| !server.may_act_as(**powers))
            .filter_map(|(role, _)| handover::join(role, &server));
        Ok(Blocked {
            target: self.target().clone(),
            pid: pid
                .map_err(|error| self.error(Doing::Reading, &error))?
                .unwrap_or_default(),
            joins: joins.collect(),
            roles: powers.into_keys().collect(),
        })
    }
}

impl Pools {
    /// Does the work, which changes the roles in the session that is blocked, while a second session ends the sessions of
    /// the roles that keep it waiting. The second session does not count against the account's limit: where that is one,
    /// nothing could be done otherwise.
    pub async fn unblock<T>(&self, blocked: Blocked, work: impl Future<Output = T>) -> T {
        let ending = pin!(self.end_blockers(&blocked));
        match select(pin!(work), ending).await {
            // Dropping the second session cancels its statement.
            Either::Left((done, _)) => done,
            Either::Right((ended, work)) => {
                if let Err(error) = ended {
                    tracing::warn!(%error, "the sessions that lock a role could not be ended");
                }
                work.await
            }
        }
    }

    async fn end_blockers(&self, blocked: &Blocked) -> Result<(), Error> {
        let mut session = Box::pin(self.beside(&blocked.target)).await?;
        if !blocked.joins.is_empty() {
            session.apply(&Batch::new(blocked.joins.clone())).await?;
        }
        let statements = vec![
            Statement::local_setting("stanchion.waiting", &blocked.pid.to_string()),
            Statement::local_setting("stanchion.roles", &blocked.roles.join("\n")),
            Statement::new(UNBLOCK).doing(Doing::Altering),
        ];
        session.apply(&Batch::new(statements)).await?;
        session.close().await;
        Ok(())
    }
}
