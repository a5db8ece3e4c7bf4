//! Schemas of the server and of the operator. Nobody gets anything in them: a privilege on all tables of `pg_catalog` shows
//! the passwords of the server, and one on its functions opens files and programs. Earlier versions granted such privileges
//! in a database of the object's own, so they are revoked, also while the object is refused or suspended.

use stanchion_api::PostgresUser;
use stanchion_api::user::AppliedGrant;
use stanchion_kernel::{Problem, Reader, Writer};
use stanchion_postgres::lock::{ROLES, TURN};
use stanchion_postgres::{Batch, ReadSession, Statement};

use super::catalog::{self, CatalogQuery, Viewer, databases};
use super::plan::grants;
use super::target::{Before, Identity};
use super::withdrawn;
use crate::server::{self, Access, Setup};

/// The operator's own schema in the database of a `SupabaseProject`.
const OWN: &str = "_stanchion";

/// Whether a schema belongs to the server or to the operator.
pub(crate) fn is_closed(name: &str) -> bool {
    name.starts_with("pg_") || name == "information_schema" || name == OWN
}

/// Revokes what an earlier version granted in closed schemas, for an object that has no steps: a refused or a suspended
/// one. For any other object it is left over, like every privilege that its spec does not contain.
pub(super) async fn revoke_closed(
    setup: &Setup,
    read: &Reader,
    write: &Writer,
    user: &PostgresUser,
) -> Result<(), Problem> {
    let Before {
        username: Some(username),
        instance,
        mut grants,
        ..
    } = Before::of(user)
    else {
        return Ok(());
    };
    grants.retain(|grant| grant.schema.as_deref().is_some_and(is_closed));
    if grants.is_empty() {
        return Ok(());
    }
    // What else is wrong with the server does not matter now.
    let Ok(Access::Open(server) | Access::Withdrawn(server)) =
        server::resolve(read, setup, instance.as_ref(), true).await
    else {
        return Ok(());
    };
    let identity = Identity::of(user);
    for database in grants::databases(&grants) {
        let address = server::database(&server.target, &database)?;
        let session = match setup.pools.read_only(&address).await {
            Err(error) if error.sqlstate() == Some("3D000") => continue,
            other => other?,
        };
        let asked = Given {
            role: &username,
            database: &database,
            grants: &grants,
        };
        if asked
            .left_over(&session, &server.viewer, Some(&identity))
            .await?
            .is_empty()
        {
            continue;
        }
        drop(session);
        write.may_write()?;
        let (_turn, mut session) = setup.pools.exclusive(&address, TURN).await?;
        let statements = asked.left_over(&session, &server.viewer, Some(&identity)).await?;
        session.apply(&Batch::new(statements).locked(ROLES)).await?;
    }
    Ok(())
}

/// What a role was granted in one database.
pub(super) struct Given<'a> {
    pub(super) role: &'a str,
    pub(super) database: &'a str,
    /// The grants in all databases.
    pub(super) grants: &'a [AppliedGrant],
}

impl Given<'_> {
    /// The statements that revoke what of it is still held in the session's database; none if the role is not the
    /// object's.
    pub(super) async fn left_over(
        &self,
        session: &ReadSession,
        viewer: &Viewer,
        owner: Option<&Identity>,
    ) -> Result<Vec<Statement>, Problem> {
        let here = grants::within(self.database, self.grants);
        let query = CatalogQuery {
            databases: vec![self.database.to_owned()],
            ..CatalogQuery::about(viewer, self.role)
        };
        let catalog = catalog::read(session, &query).await?;
        let is_theirs = |owner: &Identity| {
            let role = catalog.role.as_ref();
            !role.is_some_and(|role| withdrawn::is_ours(role, owner))
        };
        let Some(facts) = catalog.databases.get(self.database) else {
            return Ok(Vec::new());
        };
        if owner.is_some_and(is_theirs) {
            return Ok(Vec::new());
        }
        let schemas: Vec<String> = here.iter().filter_map(|grant| grant.schema.clone()).collect();
        let contents = databases::read(session, viewer, self.role, &schemas).await?;
        let changes = grants::diff(self.role, &[], &here, facts, &contents);
        Ok(changes.into_iter().map(|change| change.statement).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::is_closed;

    #[test]
    fn a_schema_of_the_server_is_closed() {
        for name in [
            "pg_catalog",
            "pg_toast",
            "pg_temp_1",
            "information_schema",
            "_stanchion",
        ] {
            assert!(is_closed(name), "{name}");
        }
        for name in ["public", "PG_CATALOG", "pgcrypto", "app", "information"] {
            assert!(!is_closed(name), "{name}");
        }
    }
}
