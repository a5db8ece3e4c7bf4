//! Inspects, plans and applies, under the database's lock and in one transaction.
//!
//! The plan is computed from the same snapshot that it changes: the lock keeps other writers of Stanchion out, and a
//! concurrent change by others makes the transaction fail and start again.

use std::time::Duration;

use stanchion_postgres::{Begin, Error as PostgresError, Isolation, Session, Statement, lock};
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::diff::{self, WrongDatabase, diff};
use crate::expand::Desired;
use crate::inspect::{self, Needs, begin_and_inspect};
use crate::plan::Plan;
use crate::render;

/// How to apply.
#[derive(Clone)]
pub struct Options<'a> {
    /// Options of the comparison.
    pub diff: diff::Options,
    /// How long to wait for the database's lock.
    pub lock_wait: Duration,
    /// How often to start again after a conflict with others.
    pub retries: u32,
    /// The identity that the plan must have: that of the approved plan.
    pub expected: Option<String>,
    /// Called with the number of executed statements and their total.
    pub progress: Option<&'a (dyn Fn(usize, usize) + Send + Sync)>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            diff: diff::Options::default(),
            lock_wait: Duration::from_secs(30),
            retries: 5,
            expected: None,
            progress: None,
        }
    }
}

/// Why an apply changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// PostgreSQL returned an error, or did not answer.
    #[error(transparent)]
    Postgres(#[from] PostgresError),
    /// The catalog contains something that this version cannot read.
    #[error(transparent)]
    Unreadable(inspect::Unreadable),
    /// The manifest is for another database.
    #[error(transparent)]
    WrongDatabase(#[from] WrongDatabase),
    /// The plan has blockers.
    #[error("refusing to apply: {}", .0.refusal())]
    Blocked(Box<Plan>),
    /// The plan is no longer the approved one.
    #[error(
        "the database has changed since the plan was made: it would now be another plan, of {} change(s) ({}); make and \
         review a new one",
        .0.summary().total(),
        .0.digest()
    )]
    Moved(Box<Plan>),
}

impl From<inspect::Error> for Error {
    fn from(error: inspect::Error) -> Self {
        match error {
            inspect::Error::Postgres(error) => Self::Postgres(error),
            inspect::Error::Unreadable(error) => Self::Unreadable(error),
        }
    }
}

/// Applies the desired state; returns what was done.
pub async fn apply(session: &mut Session, desired: &Desired, options: &Options<'_>) -> Result<Plan, Error> {
    let needs = Needs::of(desired);
    let mut attempt = 0;
    loop {
        match once(session, desired, &needs, options).await {
            Err(Error::Postgres(error)) if attempt < options.retries && is_worth_another(&error) => {
                attempt += 1;
                tracing::info!(attempt, %error, "others changed the same rows; starting again");
                tokio::time::sleep(pause(attempt)).await;
            }
            result => return result,
        }
    }
}

/// Whether somebody else changed the same catalog rows, or a deadlock occurred.
fn is_worth_another(error: &PostgresError) -> bool {
    match error.sqlstate() {
        Some("40001" | "40P01") => true,
        // PostgreSQL has no error code for this case.
        Some("XX000") => error
            .message()
            .is_some_and(|message| message.message.contains("tuple concurrently")),
        _ => false,
    }
}

/// Grows with each attempt, with jitter so that two colliding writers separate.
fn pause(attempt: u32) -> Duration {
    let base = 50u64 << attempt.min(6);
    Duration::from_millis(base / 2 + rand::random_range(0..base))
}

async fn once(
    session: &mut Session,
    desired: &Desired,
    needs: &Needs,
    options: &Options<'_>,
) -> Result<Plan, Error> {
    let begin = Begin {
        isolation: Isolation::RepeatableRead,
        lock: Some(lock::ROLES),
        lock_wait: Some(options.lock_wait),
        ..Begin::default()
    };
    let (mut transaction, facts) = begin_and_inspect(session, &begin, needs).await?;
    let decided = aside(|| decide(desired, &facts, options));
    drop(facts);
    let (plan, statements) = match decided {
        Ok(decided) => decided,
        Err(error) => {
            transaction.roll_back().await;
            return Err(error);
        }
    };
    if statements.transaction.is_empty() {
        transaction.roll_back().await;
    } else {
        let total = statements.transaction.len();
        let notify = |done| options.progress.inspect(|progress| progress(done, total));
        let mut chunks = chunks(&statements.transaction);
        let last = chunks.pop().unwrap_or_default();
        let mut done = 0;
        for chunk in chunks {
            transaction.apply(chunk).await?;
            done += chunk.len();
            notify(done);
        }
        transaction.commit(last).await?;
        notify(total);
    }
    for statement in &statements.after {
        session.execute(statement).await?;
    }
    Ok(plan)
}

/// Runs work that takes a while, such as comparing passwords: the other tasks of this thread move elsewhere.
pub fn aside<T>(work: impl FnOnce() -> T) -> T {
    let movable =
        Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
    if movable {
        tokio::task::block_in_place(work)
    } else {
        work()
    }
}

fn decide(
    desired: &Desired,
    facts: &crate::facts::Facts,
    options: &Options<'_>,
) -> Result<(Plan, render::Statements), Error> {
    let plan = diff(desired, facts, &options.diff)?;
    if options
        .expected
        .as_ref()
        .is_some_and(|expected| *expected != plan.digest())
    {
        return Err(Error::Moved(Box::new(plan)));
    }
    if !plan.blockers.is_empty() {
        return Err(Error::Blocked(Box::new(plan)));
    }
    let statements = render::statements(&plan);
    Ok((plan, statements))
}

/// Splits the statements into few messages, because each is a round trip, but bounds their size, because the server
/// holds each as a whole.
fn chunks(statements: &[Statement]) -> Vec<&[Statement]> {
    const LEAST: usize = 4_000;
    const MOST_MESSAGES: usize = 6;
    statements
        .chunks(statements.len().div_ceil(MOST_MESSAGES).max(LEAST))
        .collect()
}
