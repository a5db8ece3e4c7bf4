//! Reads the instance, the Secrets, the role and the databases. Reads only: `plan` decides whether the object may have what
//! it requests.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::core::ObjectMeta;
use secrecy::{ExposeSecret, SecretString};
use stanchion_api::user::{Encoding, SecretKeyRef};
use stanchion_kernel::context::Parent;
use stanchion_kernel::problem::Cause;
use stanchion_kernel::redact::SecretValues;
use stanchion_kernel::{Problem, Reader, apply};
use stanchion_postgres::session::Security;
use stanchion_postgres::{Query, ReadPooled, Row, scram};

use super::catalog::databases::{self, Contents};
use super::catalog::{self, Catalog, CatalogQuery, Unexpected, Viewer};
use super::guards;
use super::passwords::{Generated, Roles, Source};
use super::sessions::{self, Sessions};
use super::target::{Password, PasswordRequest, Wanted};
use super::withdrawn::{self, Withdrawn};
use crate::server::{self, Access, Server, Setup};

/// The observed state.
pub enum Observed {
    /// Of a role on a server that may be used.
    Open(Box<Current>),
    /// Of a role on a server that may no longer be used.
    Withdrawn(Box<Withdrawn>),
}

/// The state of a role, and of what belongs to it.
pub struct Current {
    /// The object.
    pub parent: Parent,
    pub server: Server,
    /// How far the server was verified.
    pub security: Security,
    /// The server's catalog.
    pub catalog: Catalog,
    /// The two logins of the role, if it has or had them.
    pub logins: Vec<(String, Arc<Catalog>)>,
    /// The sessions that may have to end.
    pub(super) sessions: Sessions,
    /// The contents of the databases where more than the database itself matters.
    pub contents: BTreeMap<String, Contents>,
    /// The source of the password.
    pub source: Source,
    /// The Secret that has the name of the credentials Secret.
    pub credentials: Option<Secret>,
    /// The existing Secrets of earlier names.
    pub stale_secrets: Vec<ObjectMeta>,
}

impl Current {
    /// The roles of the object.
    pub fn roles(&self) -> Roles<'_> {
        Roles {
            main: &self.catalog,
            logins: &self.logins,
        }
    }
}

/// Reads everything that the plan needs.
pub(super) async fn observe(setup: &Setup, read: &Reader, wanted: &Wanted) -> Result<Observed, Problem> {
    let provisioned = wanted.before.username.is_some();
    let server = match server::resolve(read, setup, wanted.instance.as_ref(), provisioned).await? {
        Access::Open(server) => server,
        Access::Withdrawn(server) => {
            let withdrawn = withdrawn::read(setup, server, &wanted.identity, &wanted.username).await?;
            return Ok(Observed::Withdrawn(Box::new(withdrawn)));
        }
    };
    let credentials: Option<Secret> = match &wanted.credentials {
        Some(secret) => read.get(&secret.name).await?,
        None => None,
    };
    let source = source(read, wanted, credentials.as_ref()).await?;
    let session = connect(setup, &server, wanted).await?;
    let security = session.security();
    let catalog = catalog::read(&session, &query(wanted, &server.viewer)).await?;
    let mut logins = Vec::new();
    for name in wanted.logins() {
        let query = CatalogQuery::about(&server.viewer, &name);
        logins.push((name, Arc::new(catalog::read(&session, &query).await?)));
    }
    let sessions = match sessions::of_interest(wanted) {
        roles if roles.is_empty() => Sessions::new(),
        roles => sessions::read(&session, roles).await?,
    };
    let contents = read_contents(setup, &server, wanted, &catalog, session).await?;
    let stale_secrets = stale_secrets(read, wanted).await?;
    Ok(Observed::Open(Box::new(Current {
        parent: read.parent().clone(),
        server,
        security,
        catalog,
        logins,
        sessions,
        contents,
        source,
        credentials,
        stale_secrets,
    })))
}

/// A session in the object's database, or in the administrator's if that one does not exist, or if it is unknown
/// whether the object may use it: a pooled session prevents a database from being copied or dropped.
async fn connect(setup: &Setup, server: &Server, wanted: &Wanted) -> Result<ReadPooled, Problem> {
    if wanted.before.database.as_ref() != Some(&wanted.database) {
        return Ok(setup.pools.read_only(&server.target).await?);
    }
    let target = server::database(&server.target, &wanted.database)?;
    match setup.pools.read_only(&target).await {
        Err(error) if error.sqlstate() == Some("3D000") => Ok(setup.pools.read_only(&server.target).await?),
        other => Ok(other?),
    }
}

/// Inspects the databases in which schemas matter. The others need no connection: privileges on a database itself are
/// visible from every database. An object does not make the operator connect to a database that is closed to it.
async fn read_contents(
    setup: &Setup,
    server: &Server,
    wanted: &Wanted,
    catalog: &Catalog,
    session: ReadPooled,
) -> Result<BTreeMap<String, Contents>, Problem> {
    let mut contents = BTreeMap::new();
    let mut session = Some(session);
    for (name, facts) in &catalog.databases {
        let request = wanted.databases.get(name);
        if request.is_some_and(|asked| guards::check_database(name, asked, facts, wanted, catalog).is_err()) {
            continue;
        }
        let schemas = schemas_of(wanted, name);
        if !reads_contents(wanted, name, &schemas) {
            contents.insert(name.clone(), Contents::default());
            continue;
        }
        let here = session
            .take()
            .filter(|session| session.target().database() == name);
        let here = if let Some(session) = here {
            session
        } else {
            let there = server::database(&server.target, name)?;
            setup.pools.read_only(&there).await?
        };
        let inside = databases::read(&here, &server.viewer, &wanted.username, &schemas).await?;
        contents.insert(name.clone(), inside);
    }
    Ok(contents)
}

/// Finds the password: in the user's Secret, or in the credentials Secret.
async fn source(read: &Reader, wanted: &Wanted, credentials: Option<&Secret>) -> Result<Source, Problem> {
    match &wanted.password {
        PasswordRequest::None => Ok(Source::None),
        PasswordRequest::From(reference, encoding) => {
            match from_secret(read, reference, *encoding).await {
                // A working role keeps working; only the condition of its password reports what is missing.
                Err(problem)
                    if wanted.before.password_fingerprint.is_some() && problem.is(Cause::PasswordSecret) =>
                {
                    Ok(Source::Lost(problem.reason, problem.message))
                }
                other => other,
            }
        }
        PasswordRequest::Generated(rules, rotation) => {
            let ours = credentials.filter(|secret| apply::is_owned(&secret.metadata, read.parent()));
            let values = ours.map(|secret| SecretValues::from(secret.clone()));
            Ok(Source::Generated(Box::new(Generated {
                rules: rules.clone(),
                rotation: rotation.clone(),
                stored: values.and_then(|values| values.text("password").ok()),
                annotations: ours.map(|secret| secret.annotations().clone()),
            })))
        }
    }
}

async fn from_secret(read: &Reader, reference: &SecretKeyRef, encoding: Encoding) -> Result<Source, Problem> {
    let SecretKeyRef { name, key } = reference;
    let problem = |reason, message: String| {
        Problem::dependency(reason, message)
            .with_cause(Cause::PasswordSecret)
            .while_doing("cannot read password secret")
    };
    let secret: Secret = read
        .get(name)
        .await?
        .ok_or_else(|| problem("SecretNotFound", format!("secrets {name:?} not found")))?;
    let value = SecretValues::from(secret)
        .text(key)
        .map_err(|error| problem("SecretKeyMissing", format!("secret {name:?} {error}")))?;
    let text = value.expose_secret();
    let kept = text.trim_end_matches(['\n', '\r']);
    if kept.is_empty() {
        return Err(problem(
            "SecretKeyMissing",
            format!("secret {name:?} has an empty value under {key:?}"),
        ));
    }
    if kept.contains('\0') {
        return Err(problem(
            "SecretInvalid",
            format!("secret {name:?} has a NUL byte under {key:?}"),
        ));
    }
    let trimmed = kept.len() != text.len();
    let value = SecretString::from(kept);
    let as_is = encoding == Encoding::Passthrough || scram::encoding(&value) != scram::Encoding::Clear;
    Ok(Source::Given(Password { value, as_is }, trimmed))
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

/// The inspection of one database, for one role: `apply` repeats it in its transaction.
pub(super) struct SnapshotQuery {
    query: CatalogQuery,
    /// The schemas to inspect; `None` if only the database itself matters.
    schemas: Option<Vec<String>>,
}

/// The result of an inspection.
pub(super) struct Snapshot {
    /// The server, the role, and the databases themselves.
    pub catalog: Catalog,
    /// The contents of the database.
    pub contents: Contents,
}

impl SnapshotQuery {
    /// The inspection for this role in this database.
    pub(super) fn at(wanted: &Wanted, viewer: &Viewer, database: &str) -> Self {
        let schemas = schemas_of(wanted, database);
        Self {
            query: query(wanted, viewer),
            schemas: reads_contents(wanted, database, &schemas).then_some(schemas),
        }
    }

    /// The queries, for a pipeline.
    pub(super) fn queries(&self) -> Vec<Query> {
        let mut all = self.query.queries();
        if let Some(schemas) = &self.schemas {
            all.extend(databases::queries(&self.query.role, schemas));
        }
        all
    }

    /// Decodes the answers to [`Self::queries`].
    pub(super) fn answer(&self, results: &[Vec<Row>]) -> Result<Snapshot, Unexpected> {
        let (catalog, contents) = results
            .split_at_checked(CatalogQuery::ANSWERS)
            .ok_or(Unexpected)?;
        Ok(Snapshot {
            catalog: self.query.answer(catalog)?,
            contents: match self.schemas {
                Some(_) => databases::answer(&self.query.viewer, contents)?,
                None => Contents::default(),
            },
        })
    }
}

/// The databases that the spec or an earlier spec names.
pub(super) fn databases_of(wanted: &Wanted) -> Vec<String> {
    let mut databases: Vec<String> = wanted.databases.keys().cloned().collect();
    databases.extend(
        wanted
            .before
            .grants
            .iter()
            .filter_map(|grant| grant.database.clone()),
    );
    databases.sort();
    databases.dedup();
    databases
}

/// The catalog queries for a wanted role.
pub(super) fn query(wanted: &Wanted, viewer: &Viewer) -> CatalogQuery {
    let requests = || wanted.databases.values();
    let owners = requests()
        .flat_map(|request| request.schemas.values())
        .flat_map(|schema| schema.default_for.iter());
    let mut roles: Vec<String> = wanted
        .member_of
        .iter()
        .map(|membership| &membership.role)
        .chain(owners)
        .cloned()
        .collect();
    roles.sort();
    roles.dedup();
    let parameters = wanted.role.parameters.keys();
    CatalogQuery {
        viewer: viewer.clone(),
        role: wanted.username.clone(),
        roles,
        databases: databases_of(wanted),
        template: wanted
            .create_database
            .as_ref()
            .and_then(|create| create.template.clone()),
        parameters: parameters.map(|name| name.to_ascii_lowercase()).collect(),
        extensions: requests()
            .flat_map(|request| request.extensions.iter().cloned())
            .collect(),
    }
}

/// The schemas of a database that the spec or an earlier spec names.
pub(super) fn schemas_of(wanted: &Wanted, database: &str) -> Vec<String> {
    let asked = wanted
        .databases
        .get(database)
        .into_iter()
        .flat_map(|request| request.schemas.keys().cloned());
    let before = wanted
        .before
        .grants
        .iter()
        .filter(|grant| grant.database.as_deref() == Some(database));
    let mut all: Vec<String> = asked
        .chain(before.filter_map(|grant| grant.schema.clone()))
        .collect();
    all.sort();
    all.dedup();
    all
}

/// Whether more than the database itself matters.
pub(super) fn reads_contents(wanted: &Wanted, database: &str, schemas: &[String]) -> bool {
    let request = wanted.databases.get(database);
    !schemas.is_empty()
        || request.is_some_and(|request| !request.extensions.is_empty() || request.revoke_public)
}
