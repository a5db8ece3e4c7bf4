//! Sessions of roles. A session outlives the login and the password that opened it, so it is ended with them. Which one
//! has to end is observed and not remembered: what one pass did not come to, the next one finds.

use std::collections::BTreeMap;

use jiff::Timestamp;
use stanchion_kernel::Problem;
use stanchion_postgres::{
    Batch, Blocked, ConnectionConfig, Error, Query, ReadSession, Row, Session, handover,
};

use super::catalog::Unexpected;
use super::passwords::Passwords;
use super::target::{PasswordRequest, Wanted};
use crate::server::Setup;

/// When the oldest session of each role began that has one; `None` if the server does not tell, because the administrator
/// is not a member of the role.
pub(super) type Sessions = BTreeMap<String, Option<Timestamp>>;

const SESSIONS: &str = "\
SELECT usename::pg_catalog.text, CASE WHEN pg_catalog.bool_and(backend_start IS NOT NULL) \
       THEN pg_catalog.round(extract(epoch FROM pg_catalog.min(backend_start)) * 1000000)::pg_catalog.int8 END \
FROM pg_catalog.pg_stat_activity WHERE usename = ANY ($1) AND pid <> pg_catalog.pg_backend_pid() GROUP BY usename";

/// Each gets five seconds: a session whose role is dropped would continue without a name.
const TERMINATE: &str = "\
SELECT pg_catalog.pg_terminate_backend(pid, 5000) FROM pg_catalog.pg_stat_activity \
WHERE usename = $1 AND pid <> pg_catalog.pg_backend_pid() \
  AND ($2 = '' OR backend_start < pg_catalog.to_timestamp(nullif($2, '')::pg_catalog.float8 / 1000000))";

/// Sessions to end: of a role, and of those only the ones that began before a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    pub role: String,
    pub before: Option<Timestamp>,
}

/// Reads which of these roles have sessions.
pub(super) async fn read(session: &ReadSession, roles: Vec<String>) -> Result<Sessions, Problem> {
    let rows = session.query(&Query::new(SESSIONS).texts(roles)).await?;
    let sessions: Result<Sessions, Unexpected> = rows.iter().map(one).collect();
    Ok(sessions?)
}

fn one(row: &Row) -> Result<(String, Option<Timestamp>), Unexpected> {
    let began: Option<i64> = row.try_get(1)?;
    Ok((
        row.try_get(0)?,
        began.and_then(|micros| Timestamp::from_microsecond(micros).ok()),
    ))
}

/// The roles whose sessions matter: none, unless they end with the password that opened them.
pub(super) fn of_interest(wanted: &Wanted) -> Vec<String> {
    let ends = match &wanted.password {
        PasswordRequest::Generated(_, rotation) => rotation.terminate_sessions,
        PasswordRequest::From(..) | PasswordRequest::None => false,
    };
    if !ends {
        return Vec::new();
    }
    let mut roles = wanted.logins();
    roles.push(wanted.username.clone());
    roles
}

/// The sessions that have to end: those of a login whose grace period has ended, and those that an earlier password
/// opened.
pub(super) fn due(wanted: &Wanted, passwords: &Passwords, sessions: &Sessions) -> Vec<Ending> {
    if !passwords.terminates {
        return Vec::new();
    }
    let retired = passwords.logins().iter().filter(|login| !login.enabled);
    let mut due: Vec<Ending> = retired
        .filter(|login| sessions.contains_key(&login.name))
        .map(|login| Ending {
            role: login.name.clone(),
            before: None,
        })
        .collect();
    let oldest = sessions.get(&wanted.username);
    if let (false, Some(oldest), Some(changed)) = (passwords.is_dual(), oldest, passwords.changed)
        && oldest.is_none_or(|oldest| oldest < changed)
    {
        due.push(Ending {
            role: wanted.username.clone(),
            before: Some(changed),
        });
    }
    due
}

/// Ends sessions, and returns their number. Without superuser, only a member of the role may do that.
pub(super) async fn end(session: &mut Session, ending: &Ending) -> Result<usize, Problem> {
    let Ending { role, before } = ending;
    if read(session, vec![role.clone()]).await?.is_empty() {
        return Ok(0);
    }
    let (server, powers) = session.inspect(&[role]).await?;
    let powers = powers.get(role).copied().unwrap_or_default();
    if !server.may_act_as(powers) {
        let join = handover::join(role, &server).into_iter().collect();
        session.apply(&Batch::new(join)).await?;
    }
    let before = before.map(|time| time.as_microsecond().to_string());
    let query = Query::new(TERMINATE)
        .text(role)
        .text(before.as_deref().unwrap_or_default());
    Ok(session.query(&query).await?.len())
}

/// The same for all sessions of a role.
pub(super) async fn end_all(session: &mut Session, role: &str) -> Result<usize, Problem> {
    let ending = Ending {
        role: role.to_owned(),
        before: None,
    };
    end(session, &ending).await
}

/// Ends the sessions that are due, and those that the password or the login opened that has just ended. Returns what to
/// report: only what follows from a change is one itself.
pub(super) async fn end_due(
    setup: &Setup,
    admin: &ConnectionConfig,
    due: Vec<Ending>,
    wanted: &Wanted,
    passwords: &Passwords,
    password_set: bool,
) -> Result<Vec<String>, Problem> {
    let mut endings = due;
    if passwords.terminates {
        let mut ended: Vec<&str> = passwords.retiring().map(|login| login.name.as_str()).collect();
        // A later pass may set the password that an earlier one generated: until then the old one opened sessions.
        let is_new = passwords.rotated.is_some() || passwords.source_changed;
        if !passwords.is_dual() && password_set && is_new {
            ended.push(&wanted.username);
        }
        endings.retain(|ending| !ended.contains(&ending.role.as_str()));
        endings.extend(ended.into_iter().map(|role| Ending {
            role: role.to_owned(),
            before: None,
        }));
    }
    let mut report = Vec::new();
    if endings.is_empty() {
        return Ok(report);
    }
    let mut session = setup.pools.get(admin).await?;
    for ending in endings {
        let ended = end(&mut session, &ending).await?;
        if ended > 0 && passwords.is_moving() {
            report.push(format!("{ended} sessions of {} ended", ending.role));
        }
    }
    Ok(report)
}

/// Applies a change of these roles, also if one of them locks itself: see `stanchion_postgres::unblock`.
pub(super) async fn apply(
    setup: &Setup,
    session: &mut Session,
    batch: &Batch,
    roles: &[&str],
) -> Result<(), Error> {
    match session.apply(batch).await {
        Err(error) => apply_again(setup, session, batch, roles, error).await,
        Ok(_) => Ok(()),
    }
}

/// Applies a change of these roles after this error, if it was a lock.
pub(super) async fn apply_again(
    setup: &Setup,
    session: &mut Session,
    batch: &Batch,
    roles: &[&str],
    error: Error,
) -> Result<(), Error> {
    let blocked = blocked(session, roles, error).await?;
    setup.pools.unblock(blocked, session.apply(batch)).await.map(drop)
}

/// The session that a lock on one of these roles made fail; any other error is returned.
pub(super) async fn blocked(session: &Session, roles: &[&str], error: Error) -> Result<Blocked, Error> {
    if error.met_a_lock() {
        session.blocked_by(roles).await
    } else {
        Err(error)
    }
}
