//! The deletion of a policy: revokes what only this policy granted, if its deletion policy says so.

use stanchion_api::PostgresPolicy;
use stanchion_api::policy::DeletionPolicy;
use stanchion_kernel::watch::dependencies::Key;
use stanchion_kernel::{Problem, Reader, Writer};
use stanchion_postgres::ConnectionConfig;
use stanchion_roles::apply::{Options, apply as engine};
use stanchion_roles::expand::{Desired, after_deletion};

use crate::claims::DatabaseKey;
use crate::passwords::Secrets;
use crate::policy::PolicyController;
use crate::policy::target::{CleanupTarget, Content};
use crate::{connection, problems, profiles};

/// What a deleted policy granted, and where.
pub struct Granted {
    /// The connection to the database.
    pub database: ConnectionConfig,
    /// The database.
    pub place: DatabaseKey,
    /// The server's address.
    pub peer: String,
    /// The desired state before the deletion.
    pub content: Content,
}

/// What is revoked; `None` if the database stays as it is.
pub async fn observe(
    controller: &PolicyController,
    read: &Reader,
    cleanup: &CleanupTarget,
) -> Result<Option<Granted>, Problem> {
    let revokes = cleanup.policy == DeletionPolicy::Revoke;
    // A policy that never reached its database has granted nothing.
    let Some(wanted) = cleanup
        .wanted
        .as_ref()
        .filter(|wanted| revokes && wanted.before.managed_database_identity.is_some())
    else {
        return Ok(None);
    };
    let stuck = |problem: Problem| {
        problem.while_doing("deletionPolicy is Revoke (set it to Retain to let go without)")
    };
    let mut secrets = Secrets::new(read);
    let database = connection::resolve(&wanted.connection, &mut secrets)
        .await
        .map_err(stuck)?;
    let content = profiles::complete(read, wanted).await.map_err(stuck)?;
    let found = controller.setup.pools.place(&database).await;
    let found = found.map_err(|error| stuck(problems::of_postgres(error, problems::During::Connect)))?;
    Ok(Some(Granted {
        database,
        place: DatabaseKey::from(&found.identity),
        peer: found.peer,
        content,
    }))
}

/// Revokes, forgets the policy and lets the others go on.
pub async fn apply(
    controller: &PolicyController,
    write: &Writer,
    cleanup: &CleanupTarget,
    granted: Option<&Granted>,
) -> Result<(), Problem> {
    if let Some(granted) = granted {
        Box::pin(revoke(controller, write, cleanup, granted)).await?;
    }
    release(controller, write, &cleanup.who.key);
    Ok(())
}

/// Forgets a policy that enforces nothing any more, and enqueues those that waited for it.
pub fn release(controller: &PolicyController, write: &Writer, policy: &Key) {
    controller.converged.forget(policy);
    for other in controller.setup.claims.release(policy) {
        write.wake::<PostgresPolicy>(&other);
    }
}

/// Revokes what no other policy declares. Another policy claims before it waits for its turn at the database, so all that
/// could be applied before this turn ends are known.
async fn revoke(
    controller: &PolicyController,
    write: &Writer,
    cleanup: &CleanupTarget,
    granted: &Granted,
) -> Result<(), Problem> {
    write.may_write()?;
    let setup = &controller.setup;
    let exclusive = setup.pools.exclusive(&granted.database, setup.turn).await;
    let (_turn, mut session) =
        exclusive.map_err(|error| problems::of_postgres(error, problems::During::Apply))?;
    let others = setup
        .claims
        .others(&cleanup.who.key, &granted.place, &granted.peer);
    let others: Vec<&Desired> = others.iter().map(AsRef::as_ref).collect();
    let desired = after_deletion(&granted.content.desired, &others);
    let options = Options {
        lock_wait: setup.turn,
        ..Options::default()
    };
    engine(&mut session, &desired, &options)
        .await
        .map_err(problems::of_apply)?;
    Ok(())
}
