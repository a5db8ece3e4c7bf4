//! What is there: the instance, the Secrets, the role, the databases. Reads only.

pub mod leaving;
pub mod password;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use kube::core::ObjectMeta;
use stanchion_api::user::AppliedGrant;
use stanchion_kernel::apply::{self, Intent, Takeover};
use stanchion_kernel::{Problem, Reader};
use stanchion_postgres::{Pooled, Query, Session, Statement};

pub use leaving::{Dependency, LeavingRole, Left, look};

use super::catalog::{self, Catalog, Question};
use super::contents::{self, Contents};
use super::look::{looks_inside, question, schemas_of};
use super::passwords::Passwords;
use super::plan::{grants, guards};
use super::target::{Target, Wanted};
use crate::server::{self, Server};
use crate::setup::Setup;
use crate::user::output;

/// What was read.
pub enum Observed {
    /// For a role that shall be there.
    Present(Box<Present>),
    /// For a role that shall go.
    Leaving(Box<Left>),
    /// Nothing was looked at.
    Nothing,
}

/// What there is of a role that shall be there.
pub struct Present {
    /// The server.
    pub server: Server,
    /// What its catalog says.
    pub catalog: Catalog,
    /// What is inside the databases where more than the database itself matters.
    pub contents: BTreeMap<String, Contents>,
    /// The passwords.
    pub passwords: Passwords,
    /// The Secret for the application, when it has to be written.
    pub credentials: Option<Intent>,
    /// The Secret that was written under another name before, and is still there.
    pub stale_secret: Option<ObjectMeta>,
}

/// Reads everything that the plan needs.
pub async fn observe(setup: &Setup, read: &Reader, target: &Target) -> Result<Observed, Problem> {
    match target {
        Target::Suspended => Ok(Observed::Nothing),
        Target::Present(wanted) => Ok(Observed::Present(Box::new(
            Box::pin(present(setup, read, wanted)).await?,
        ))),
        Target::Absent(leaving) => leaving::observe(setup, read, leaving).await,
    }
}

async fn present(setup: &Setup, read: &Reader, wanted: &Wanted) -> Result<Present, Problem> {
    let server = server::resolve(read, setup, wanted.instance.as_ref()).await?;
    guards::check_role(&wanted.role, &server.allowed)?;
    let live: Option<Secret> = match &wanted.credentials {
        Some(secret) => read.get(&secret.name).await?,
        None => None,
    };
    let source = password::source(read, wanted, live.as_ref()).await?;
    let session = connect(setup, &server, &wanted.database).await?;
    let catalog = catalog::read(&session, &question(wanted)).await?;
    guards::check_memberships(&wanted.member_of, &catalog.existing, &server.allowed)?;
    let mut logins = Vec::new();
    for name in source.login_names(wanted) {
        let question = Question {
            role: name.clone(),
            roles: Vec::new(),
            databases: Vec::new(),
        };
        logins.push((name, catalog::read(&session, &question).await?));
    }
    let passwords = password::decide(setup, wanted, source, &catalog, logins)?;
    let contents = read_contents(setup, &server, wanted, &catalog, session).await?;
    let credentials = credentials(read, wanted, &server, &passwords, live.as_ref())?;
    let stale_secret = stale_secret(read, wanted).await?;
    Ok(Present {
        server,
        catalog,
        contents,
        passwords,
        credentials,
        stale_secret,
    })
}

/// A session in the object's database, or in the administrator's while that one is not there.
pub async fn connect(setup: &Setup, server: &Server, database: &str) -> Result<Pooled, Problem> {
    let target = server.target.with_database(database).map_err(invalid)?;
    match setup.pools.get(&target).await {
        Err(error) if error.sqlstate() == Some("3D000") => Ok(setup.pools.get(&server.target).await?),
        other => Ok(other?),
    }
}

/// Looks into the databases where schemas matter. The others need no connection: what a role holds on a
/// database itself is the same from everywhere.
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
        if !looks_inside(wanted, name, &schemas) {
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
        contents.insert(name.clone(), read_one(&here, &wanted.username, &schemas).await?);
    }
    Ok(contents)
}

/// Reads what is inside the database of a session.
pub async fn read_one(session: &Session, role: &str, schemas: &[String]) -> Result<Contents, Problem> {
    let results = session.snapshot(&contents::queries(role, schemas)).await?;
    Ok(contents::answer(&results)?)
}

fn credentials(
    read: &Reader,
    wanted: &Wanted,
    server: &Server,
    passwords: &Passwords,
    live: Option<&Secret>,
) -> Result<Option<Intent>, Problem> {
    // While the password cannot be read, the Secret that was made from it is the best there is.
    let Some(secret) = wanted
        .credentials
        .as_ref()
        .filter(|_| passwords.unavailable.is_none())
    else {
        return Ok(None);
    };
    let child = output::secret(secret, wanted, server, passwords)?;
    let intent = Intent::new(&child, read.subject())?;
    apply::decide(intent, live, read.subject(), Takeover::Refuse)
        .map_err(|problem| problem.with_reason("SecretConflict"))
}

/// The Secret of an earlier spec, if it is there and ours.
async fn stale_secret(read: &Reader, wanted: &Wanted) -> Result<Option<ObjectMeta>, Problem> {
    let now = wanted.credentials.as_ref().map(|secret| &secret.name);
    let Some(name) = wanted
        .before
        .credentials_secret
        .as_ref()
        .filter(|name| Some(*name) != now)
    else {
        return Ok(None);
    };
    let secret: Option<Secret> = read.get(name).await?;
    Ok(secret
        .map(|secret| secret.metadata)
        .filter(|meta| apply::is_owned(meta, read.subject())))
}

/// A name that cannot be one.
pub fn invalid(error: stanchion_postgres::TargetError) -> Problem {
    Problem::permanent("InvalidSpec", error.to_string()).caused_by(error)
}

/// Ends the sessions of a role and says how many there were. Each gets five seconds: a role that is dropped under a
/// session leaves one without a name behind.
pub async fn terminate(session: &Session, role: &str) -> Result<usize, Problem> {
    let query = Query::new(
        "SELECT pg_catalog.pg_terminate_backend(pid, 5000) FROM pg_catalog.pg_stat_activity \
         WHERE usename = $1 AND pid <> pg_catalog.pg_backend_pid()",
    );
    Ok(session.query(&query.text(role)).await?.len())
}

/// The statements that take back what earlier passes gave in this database and is still held.
pub async fn left_over(
    session: &Session,
    role: &str,
    database: &str,
    before: &[AppliedGrant],
) -> Result<Vec<Statement>, Problem> {
    let here = grants::within(database, before);
    let question = Question {
        role: role.into(),
        roles: Vec::new(),
        databases: vec![database.into()],
    };
    let catalog = catalog::read(session, &question).await?;
    let schemas: Vec<String> = here.iter().filter_map(|grant| grant.schema.clone()).collect();
    let contents = read_one(session, role, &schemas).await?;
    let Some(facts) = catalog.databases.get(database) else {
        return Ok(Vec::new());
    };
    let changes = grants::diff(role, &[], &here, facts, &contents);
    Ok(changes.into_iter().map(|change| change.statement).collect())
}
