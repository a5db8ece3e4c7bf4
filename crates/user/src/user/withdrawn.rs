//! A server that no longer allows the namespace of an object: the object's logins there are disabled, at once, and also
//! while the object is suspended or invalid.

use stanchion_api::PostgresUser;
use stanchion_kernel::marks::Seal;
use stanchion_kernel::{Problem, Reader, Writer};
use stanchion_postgres::{Batch, ConnectionConfig, Statement};

use super::catalog::{self, CatalogQuery, RoleFacts};
use super::sessions;
use super::target::{Before, Identity, Reason, login_names};
use crate::server::{self, Access, Server, Setup};

/// A role on a server that may no longer be used.
pub struct Withdrawn {
    pub server: Server,
    /// The object's roles that can still log in, or have a session.
    pub logins: Vec<String>,
}

/// Reads which of the object's roles can still log in, or have a session.
pub(super) async fn read(
    setup: &Setup,
    server: Server,
    identity: &Identity,
    username: &str,
) -> Result<Withdrawn, Problem> {
    let session = setup.pools.read_only(&server.target).await?;
    let names = login_names(username);
    let open = sessions::read(
        &session,
        names.iter().chain([&username.to_owned()]).cloned().collect(),
    )
    .await?;
    let mut logins = Vec::new();
    for name in names.iter().map(String::as_str).chain([username]) {
        let catalog = catalog::read(&session, &CatalogQuery::about(&server.viewer, name)).await?;
        let is_open = |role: &RoleFacts| role.login || open.contains_key(name);
        let role = catalog.role.as_ref().filter(|role| is_ours(role, identity));
        if role.is_some_and(is_open) {
            logins.push(name.to_owned());
        }
    }
    Ok(Withdrawn { server, logins })
}

/// Whether a role carries the object's mark, of this version or of an earlier one.
pub(super) fn is_ours(role: &RoleFacts, identity: &Identity) -> bool {
    let mark = role.mark.as_ref();
    mark.is_some_and(|found| found.seal != Seal::Forged && identity.owns(&found.mark))
}

/// Disables the logins without waiting for any lock, and ends their sessions.
pub(super) async fn lock_out(
    setup: &Setup,
    write: &Writer,
    server: &ConnectionConfig,
    logins: &[String],
) -> Result<(), Problem> {
    if logins.is_empty() {
        return Ok(());
    }
    write.may_write()?;
    let mut session = setup.pools.get(server).await?;
    let disable = |name: &String| Statement::new("ALTER ROLE ").ident(name).sql(" NOLOGIN");
    let disable = Batch::new(logins.iter().map(disable).collect());
    let roles: Vec<&str> = logins.iter().map(String::as_str).collect();
    sessions::apply(setup, &mut session, &disable, &roles).await?;
    for name in roles {
        sessions::end_all(&mut session, name).await?;
    }
    Ok(())
}

/// The problem that the object reports from then on. It can be deleted, and continues when the namespace is allowed
/// again.
pub(super) fn problem() -> Problem {
    Problem::human(
        Reason::NamespaceNotAllowed.as_str(),
        "the instance no longer allows this namespace, so its roles cannot log in; add the namespace to the instance's \
         spec.allowedNamespaces, or delete this object",
    )
}

/// Checks a suspended or an invalid object. Only another namespace's server can withdraw its permission; what else is
/// wrong with the server does not matter now.
pub(super) async fn inactive(
    setup: &Setup,
    read: &Reader,
    write: &Writer,
    user: &PostgresUser,
) -> Result<(), Problem> {
    let identity = Identity::of(user);
    let Before {
        username, instance, ..
    } = Before::of(user);
    let home = instance.as_ref().and_then(|instance| instance.namespace.as_ref());
    let (Some(username), true) = (username, home.is_some_and(|home| *home != identity.namespace)) else {
        return Ok(());
    };
    match server::resolve(read, setup, instance.as_ref(), true).await {
        Ok(Access::Withdrawn(server)) => {
            let Withdrawn { server, logins } = self::read(setup, server, &identity, &username).await?;
            lock_out(setup, write, &server.target, &logins).await?;
            Err(problem())
        }
        Ok(Access::Open(_)) | Err(_) => Ok(()),
    }
}
