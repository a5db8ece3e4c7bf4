//! Runs the steps: under the lock, in one transaction, and then in the internal database.

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use stanchion_kernel::{Class, Problem};
use stanchion_postgres::{
    Begin, ConnectionConfig, Error, Kind, Pools, ReadSession, Session, Statement, lock,
};

use super::catalog::{self, Catalog, Source};
use super::created_objects;
use super::isolation;
use super::pending::{self, Pending};
use super::request::{Outcome, Request, VerifiedPasswords};
use super::steps::Step;

/// Once to run and once to verify; the rest is for concurrent creation of the same roles by others.
const PASSES: usize = 6;

/// Checks whether everything is there: two round trips, no writes. `None` if something is left to do.
///
/// `known` is what an earlier check with the same passwords has proven.
pub async fn inspect(
    session: &ReadSession,
    request: &Request,
    known: Option<VerifiedPasswords>,
) -> Result<Option<Outcome>, Problem> {
    let answers = session.snapshot(&catalog::questions(&request.project)).await?;
    let mut catalog = understood(&Source::Session(session), request, &answers).await?;
    let verified = VerifiedPasswords::of(&catalog.verifiers);
    catalog.proven = known == Some(verified);
    // The statements do not run, so any salts will do.
    let mut salts = StdRng::from_seed(Default::default());
    let pending = pending::pending(&catalog, request, &mut salts)?;
    Ok(pending.is_empty().then(|| Outcome {
        names: pending.names,
        ran: Vec::new(),
        notes: pending.notes,
        verified,
    }))
}

/// Does what is left to do. The target's role is the administrator. `random` makes the salts of new verifiers.
pub async fn initialise(
    pools: &Pools,
    target: &ConnectionConfig,
    request: &Request,
    mut random: StdRng,
) -> Result<Outcome, Problem> {
    let mut ran = Vec::new();
    let mut last = None;
    for _ in 0..PASSES {
        match once(pools, target, request, &mut random, &mut ran).await {
            Ok(Some(outcome)) => return Ok(outcome),
            // Something was done: check what is left, and what could not be done.
            Ok(None) => {}
            // The lock belongs to the database: somebody else on the same server can create the same role at once.
            Err(problem) if is_collision(&problem) => last = Some(problem),
            Err(problem) => return Err(problem),
        }
    }
    Err(last.unwrap_or_else(|| {
        let message = format!(
            "database {:?} does not converge: somebody else keeps changing it",
            target.database()
        );
        Problem::transient("DatabaseUnsettled", message)
    }))
}

fn is_collision(problem: &Problem) -> bool {
    let cause = std::error::Error::source(problem).and_then(|cause| cause.downcast_ref::<Error>());
    problem.class == Class::Transient
        && cause.is_some_and(|error| error.kind() == Kind::Server && !error.is_connectivity())
}

/// One attempt: `None` if it changed something.
async fn once(
    pools: &Pools,
    target: &ConnectionConfig,
    request: &Request,
    random: &mut StdRng,
    ran: &mut Vec<&'static str>,
) -> Result<Option<Outcome>, Problem> {
    // Roles belong to the server: two concurrent projects would wait for each other within their transactions.
    let (_turns, mut session) = pools.exclusive_on_server(target, lock::TURN).await?;
    let (transaction, answers) = session
        .begin(&begin(), &catalog::questions(&request.project))
        .await?;
    let catalog = understood(&Source::Transaction(&transaction), request, &answers).await?;
    let pending = pending::pending(&catalog, request, random)?;
    if pending.is_empty() {
        transaction.roll_back().await;
        return Ok(Some(Outcome {
            names: pending.names,
            ran: std::mem::take(ran),
            notes: pending.notes,
            verified: VerifiedPasswords::of(&catalog.verifiers),
        }));
    }
    if pending.statements.is_empty() {
        transaction.roll_back().await;
    } else {
        let committed = transaction.commit(&pending.statements).await;
        committed.map_err(|error| blamed(error, &pending))?;
        tracing::info!(server = %target, database = target.database(), steps = ?pending.steps(), "database initialised");
        ran.extend(pending.steps());
    }
    if pending.creates_database {
        let name = pending.names.internal_database();
        let oid = created_objects::database_oid(&request.project, catalog.database.oid, &name);
        create_database(&mut session, &name, oid).await?;
    }
    // One connection at a time, so that two projects do not wait for each other's second one.
    drop(session);
    if !pending.internal.is_empty() {
        in_internal_database(pools, target, &pending).await?;
        ran.extend(pending.internal.iter().map(|step| step.name));
    }
    Ok(None)
}

fn begin() -> Begin {
    Begin {
        lock: Some(lock::ROLES),
        lock_wait: Some(lock::TURN),
        ..Begin::default()
    }
}

async fn understood(
    source: &Source<'_>,
    request: &Request,
    answers: &[Vec<stanchion_postgres::Row>],
) -> Result<Catalog, Problem> {
    let catalog = catalog::read(source, &request.project, answers).await?;
    catalog.ok_or_else(|| {
        let message = "the administrator's own role does not exist any more".to_owned();
        Problem::dependency("RoleNotFound", message)
    })
}

/// Runs outside of a transaction, so the database can exist from an earlier attempt. Its oid proves that it is ours.
async fn create_database(session: &mut Session, name: &str, oid: u32) -> Result<(), Problem> {
    // From template0: what somebody put into template1 must not affect services.
    let create = Statement::new("CREATE DATABASE ")
        .ident(name)
        .sql(" TEMPLATE template0 OID ")
        .number(oid.into());
    match session.execute(&create).await {
        Err(error) if error.sqlstate() == Some("42P04") => Ok(()),
        Err(error) => {
            Err(Problem::from(error).while_doing("cannot create the database of analytics and pooler"))
        }
        Ok(_) => session
            .execute(&created_objects::database(name))
            .await
            .map(|_| ())
            .map_err(Problem::from),
    }
}

/// Runs the steps of the internal database there, and records them in the project's database, so that one query shows
/// all.
async fn in_internal_database(
    pools: &Pools,
    target: &ConnectionConfig,
    pending: &Pending,
) -> Result<(), Problem> {
    let internal = target
        .with_database(&pending.names.internal_database())
        .map_err(|error| Problem::permanent("InvalidDatabase", error.to_string()).caused_by(error))?;
    for step in &pending.internal {
        let [setting, run, record] = step.parts(&pending.seen);
        let (_turn, mut session) = pools.exclusive(&internal, lock::TURN).await?;
        let (transaction, answers) = session.begin(&begin(), &[isolation::question()]).await?;
        let found = answers.first().map(Vec::as_slice).unwrap_or_default();
        let found = isolation::of_rows(found).map_err(|error| {
            transaction
                .session()
                .error(stanchion_postgres::Doing::Reading, &error)
        })?;
        isolation::check_steps(&found, &pending.server, &pending.names, [*step])?;
        transaction
            .commit(&[pending::settings(&pending.names), setting, run])
            .await
            .map_err(|error| in_step(error, step))?;
        drop(session);
        let mut session = pools.get(target).await?;
        let forget = Statement::new("SELECT pg_catalog.set_config('stanchion.skipped', '', true)");
        let batch = stanchion_postgres::Batch::new(vec![forget, record]).locked(lock::ROLES);
        session
            .apply(&batch)
            .await
            .map_err(|error| in_step(error, step))?;
    }
    Ok(())
}

/// Adds the name of the failed step.
fn blamed(error: Error, pending: &Pending) -> Problem {
    let step = error
        .statement()
        .and_then(|statement| pending.blame.get(statement.index).copied().flatten());
    match step {
        Some(step) => in_step(error, step),
        None => Problem::from(error).while_doing("database roles"),
    }
}

/// The server's message without the step's text, which is long.
fn in_step(error: Error, step: &Step) -> Problem {
    let said = error.message().map(|said| {
        let more = [("detail", &said.detail), ("hint", &said.hint)];
        let more = more
            .into_iter()
            .filter_map(|(name, text)| Some(format!("; {name}: {}", text.as_ref()?)));
        format!(
            "{} (SQLSTATE {}){}",
            said.message,
            said.code,
            more.collect::<String>()
        )
    });
    let mut problem = Problem::from(error);
    if let Some(said) = said {
        problem.message = said;
    }
    problem.while_doing(&format!("database step {:?}", step.name))
}
