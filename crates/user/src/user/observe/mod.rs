//! Reads the instance, the Secrets, the role and the databases. Reads only.

pub mod cleanup;
pub mod password;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use kube::core::ObjectMeta;
use stanchion_api::user::AppliedGrant;
use stanchion_kernel::apply::{self, Intent, Takeover};
use stanchion_kernel::marks::Seal;
use stanchion_kernel::{Problem, Reader};
use stanchion_postgres::session::Security;
use stanchion_postgres::{Pooled, Query, Session, Statement};

pub use cleanup::{CleanupRole, CleanupState, Dependency, read_role};

use super::catalog::{self, Catalog, CatalogQuery, RoleFacts, Viewer};
use super::contents::{self, Contents};
use super::passwords::Passwords;
use super::plan::ownership::is_own;
use super::plan::{grants, guards};
use super::rotation;
use super::snapshot::{query, reads_contents, schemas_of};
use super::target::{Identity, InactiveTarget, Target, Wanted};
use crate::server::{self, Access, Server};
use crate::setup::Setup;
use crate::user::output;

/// The observed state.
pub enum Observed {
    /// Of an active role.
    Ensure(Box<Current>),
    /// Of a role to remove.
    Cleanup(Box<CleanupState>),
    /// Of a role on a server that may no longer be used.
    Withdrawn(Box<Withdrawn>),
    /// Nothing was read.
    Nothing,
}

/// A role on a server that may no longer be used.
pub struct Withdrawn {
    /// The server.
    pub server: Server,
    /// The object's roles that can still log in.
    pub logins: Vec<String>,
}

/// The state of an active role.
pub struct Current {
    /// The server.
    pub server: Server,
    /// How far the server was verified.
    pub security: Security,
    /// The server's catalog.
    pub catalog: Catalog,
    /// The contents of the databases where more than the database itself matters.
    pub contents: BTreeMap<String, Contents>,
    /// The passwords.
    pub passwords: Passwords,
    /// The credentials Secret, if it has to be written.
    pub credentials: Option<Intent>,
    /// The existing Secrets of earlier names.
    pub stale_secrets: Vec<ObjectMeta>,
}

/// Reads everything that the plan needs.
pub async fn observe(setup: &Setup, read: &Reader, target: &Target) -> Result<Observed, Problem> {
    match target {
        Target::Suspended(inactive) | Target::Invalid(inactive, _) => {
            observe_inactive(setup, read, inactive).await
        }
        Target::Ensure(wanted) => Box::pin(ensure(setup, read, wanted)).await,
        Target::Cleanup(cleanup) => cleanup::observe(setup, read, cleanup).await,
    }
}

/// Checks only whether the server may still be used. Neither `suspend` nor an invalid spec keeps a login open after its
/// server was withdrawn.
async fn observe_inactive(
    setup: &Setup,
    read: &Reader,
    inactive: &InactiveTarget,
) -> Result<Observed, Problem> {
    let InactiveTarget { identity, before } = inactive;
    let (Some(username), Some(instance)) = (&before.username, &before.instance) else {
        return Ok(Observed::Nothing);
    };
    match server::resolve(read, setup, Some(instance), true).await {
        Ok(Access::Withdrawn(server)) => withdrawn(setup, server, identity, username).await,
        Ok(Access::Open(_)) | Err(_) => Ok(Observed::Nothing),
    }
}

/// The object's logins on a server that it may no longer use.
async fn withdrawn(
    setup: &Setup,
    server: Server,
    identity: &Identity,
    username: &str,
) -> Result<Observed, Problem> {
    let session = setup.pools.get(&server.target).await?;
    let names = rotation::login_names(username);
    let mut logins = Vec::new();
    for name in names.iter().map(String::as_str).chain([username]) {
        let catalog = catalog::read(&session, &CatalogQuery::about(&server.viewer, name)).await?;
        let ours = |role: &RoleFacts| {
            let mark = role.mark.as_ref();
            role.login
                && mark.is_some_and(|found| found.seal != Seal::Forged && is_own(&found.mark, identity))
        };
        if catalog.role.as_ref().is_some_and(ours) {
            logins.push(name.to_owned());
        }
    }
    Ok(Observed::Withdrawn(Box::new(Withdrawn { server, logins })))
}

async fn ensure(setup: &Setup, read: &Reader, wanted: &Wanted) -> Result<Observed, Problem> {
    let before = &wanted.before;
    let server =
        match server::resolve(read, setup, wanted.instance.as_ref(), before.username.is_some()).await? {
            Access::Open(server) => server,
            Access::Withdrawn(server) => {
                return withdrawn(setup, server, &wanted.identity, &wanted.username).await;
            }
        };
    guards::check_role(&wanted.role, &server.viewer.rules.attributes)?;
    let live: Option<Secret> = match &wanted.credentials {
        Some(secret) => read.get(&secret.name).await?,
        None => None,
    };
    let source = password::source(read, wanted, live.as_ref()).await?;
    let session = connect(setup, &server, wanted).await?;
    let security = session.security();
    let catalog = catalog::read(&session, &query(wanted, &server.viewer)).await?;
    guards::check(wanted, &catalog)?;
    let mut logins = Vec::new();
    for name in source.login_names(wanted) {
        let query = CatalogQuery::about(&server.viewer, &name);
        logins.push((name, catalog::read(&session, &query).await?));
    }
    let passwords = password::decide(setup, wanted, source, &catalog, logins)?;
    let contents = read_contents(setup, &server, wanted, &catalog, session).await?;
    let credentials = credentials(read, wanted, &server, &passwords, live.as_ref())?;
    let stale_secrets = stale_secrets(read, wanted).await?;
    Ok(Observed::Ensure(Box::new(Current {
        server,
        security,
        catalog,
        contents,
        passwords,
        credentials,
        stale_secrets,
    })))
}

/// A session in the object's database, or in the administrator's if that one does not exist, or if it is unknown
/// whether the object may use it: a pooled session prevents a database from being copied or dropped.
async fn connect(setup: &Setup, server: &Server, wanted: &Wanted) -> Result<Pooled, Problem> {
    if wanted.before.database.as_ref() != Some(&wanted.database) {
        return Ok(setup.pools.get(&server.target).await?);
    }
    let target = server.target.with_database(&wanted.database).map_err(invalid)?;
    match setup.pools.get(&target).await {
        Err(error) if error.sqlstate() == Some("3D000") => Ok(setup.pools.get(&server.target).await?),
        other => Ok(other?),
    }
}

/// Inspects the databases in which schemas matter. The others need no connection: privileges on a database itself are
/// visible from every database.
async fn read_contents(
    setup: &Setup,
    server: &Server,
    wanted: &Wanted,
    catalog: &Catalog,
    session: Pooled,
) -> Result<BTreeMap<String, Contents>, Problem> {
    let mut contents = BTreeMap::new();
    let mut session = Some(session);
    for name in catalog.databases.keys() {
        let schemas = schemas_of(wanted, name);
        if !reads_contents(wanted, name, &schemas) {
            contents.insert(name.clone(), Contents::default());
            continue;
        }
        let here = session
            .take()
            .filter(|session| session.target().database() == name);
        let here = match here {
            Some(session) => session,
            None => {
                setup
                    .pools
                    .get(&server.target.with_database(name).map_err(invalid)?)
                    .await?
            }
        };
        let inside = read_one(&here, &server.viewer, &wanted.username, &schemas).await?;
        contents.insert(name.clone(), inside);
    }
    Ok(contents)
}

/// Reads the contents of a session's database.
pub async fn read_one(
    session: &Session,
    viewer: &Viewer,
    role: &str,
    schemas: &[String],
) -> Result<Contents, Problem> {
    let results = session.snapshot(&contents::queries(role, schemas)).await?;
    Ok(contents::answer(viewer, &results)?)
}

fn credentials(
    read: &Reader,
    wanted: &Wanted,
    server: &Server,
    passwords: &Passwords,
    live: Option<&Secret>,
) -> Result<Option<Intent>, Problem> {
    // While the password cannot be read, the existing Secret stays.
    let Some(secret) = wanted
        .credentials
        .as_ref()
        .filter(|_| passwords.unavailable.is_none())
    else {
        return Ok(None);
    };
    let child = output::secret(secret, wanted, server, passwords)?;
    let intent = Intent::new(&child, read.parent())?;
    apply::decide(intent, live, read.parent(), Takeover::Refuse)
        .map_err(|problem| problem.with_reason("SecretConflict"))
}

/// The existing Secrets of earlier specs that belong to the object.
async fn stale_secrets(read: &Reader, wanted: &Wanted) -> Result<Vec<ObjectMeta>, Problem> {
    let now = wanted.credentials.as_ref().map(|secret| &secret.name);
    let mut stale = Vec::new();
    for name in &wanted.before.credentials_secrets {
        if Some(name) != now {
            let secret: Option<Secret> = read.get(name).await?;
            stale.extend(secret.map(|secret| secret.metadata));
        }
    }
    stale.retain(|meta| apply::is_owned(meta, read.parent()));
    Ok(stale)
}

/// An invalid name.
pub fn invalid(error: stanchion_postgres::ConnectionConfigError) -> Problem {
    Problem::permanent("InvalidSpec", error.to_string()).caused_by(error)
}

/// Terminates the sessions of a role and returns their number. Each gets five seconds: a session whose role is dropped
/// would continue without a name.
pub async fn terminate(session: &Session, role: &str) -> Result<usize, Problem> {
    let query = Query::new(
        "SELECT pg_catalog.pg_terminate_backend(pid, 5000) FROM pg_catalog.pg_stat_activity \
         WHERE usename = $1 AND pid <> pg_catalog.pg_backend_pid()",
    );
    Ok(session.query(&query.text(role)).await?.len())
}

/// The statements that revoke what earlier reconciles granted in this database and is still held.
pub async fn left_over(
    session: &Session,
    viewer: &Viewer,
    role: &str,
    database: &str,
    before: &[AppliedGrant],
) -> Result<Vec<Statement>, Problem> {
    let here = grants::within(database, before);
    let query = CatalogQuery {
        databases: vec![database.into()],
        ..CatalogQuery::about(viewer, role)
    };
    let catalog = catalog::read(session, &query).await?;
    let schemas: Vec<String> = here.iter().filter_map(|grant| grant.schema.clone()).collect();
    let contents = read_one(session, viewer, role, &schemas).await?;
    let Some(facts) = catalog.databases.get(database) else {
        return Ok(Vec::new());
    };
    let changes = grants::diff(role, &[], &here, facts, &contents);
    Ok(changes.into_iter().map(|change| change.statement).collect())
}
