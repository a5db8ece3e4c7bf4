//! Reads the instance, the Secrets, the role and the databases. Reads only.

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
use stanchion_postgres::{ReadPooled, scram};

use super::catalog::{self, Catalog, CatalogQuery};
use super::contents::{self, Contents, query, reads_contents, schemas_of};
use super::guards;
use super::passwords::{Generated, Roles, Source};
use super::target::{Password, PasswordRequest, Wanted};
use super::withdrawn::{self, Withdrawn};
use crate::server::{self, Access, Server};
use crate::setup::Setup;

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
    /// The server.
    pub server: Server,
    /// How far the server was verified.
    pub security: Security,
    /// The server's catalog.
    pub catalog: Catalog,
    /// The two logins of the role, if it has or had them.
    pub logins: Vec<(String, Arc<Catalog>)>,
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

/// Reads everything that the plan needs. What the server's rules refuse ends it: the object does not make the operator
/// connect to a database that it may not use.
pub async fn observe(setup: &Setup, read: &Reader, wanted: &Wanted) -> Result<Observed, Problem> {
    let provisioned = wanted.before.username.is_some();
    let server = match server::resolve(read, setup, wanted.instance.as_ref(), provisioned).await? {
        Access::Open(server) => server,
        Access::Withdrawn(server) => {
            let withdrawn = withdrawn::read(setup, server, &wanted.identity, &wanted.username).await?;
            return Ok(Observed::Withdrawn(Box::new(withdrawn)));
        }
    };
    guards::check_role(&wanted.role, &server.viewer.rules.attributes)?;
    let credentials: Option<Secret> = match &wanted.credentials {
        Some(secret) => read.get(&secret.name).await?,
        None => None,
    };
    let source = source(read, wanted, credentials.as_ref()).await?;
    let session = connect(setup, &server, wanted).await?;
    let security = session.security();
    let catalog = catalog::read(&session, &query(wanted, &server.viewer)).await?;
    guards::check(wanted, &catalog)?;
    let mut logins = Vec::new();
    for name in wanted.logins() {
        let query = CatalogQuery::about(&server.viewer, &name);
        logins.push((name, Arc::new(catalog::read(&session, &query).await?)));
    }
    let contents = read_contents(setup, &server, wanted, &catalog, session).await?;
    let stale_secrets = stale_secrets(read, wanted).await?;
    Ok(Observed::Open(Box::new(Current {
        parent: read.parent().clone(),
        server,
        security,
        catalog,
        logins,
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
/// visible from every database.
async fn read_contents(
    setup: &Setup,
    server: &Server,
    wanted: &Wanted,
    catalog: &Catalog,
    session: ReadPooled,
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
        let here = if let Some(session) = here {
            session
        } else {
            let there = server::database(&server.target, name)?;
            setup.pools.read_only(&there).await?
        };
        let inside = contents::read(&here, &server.viewer, &wanted.username, &schemas).await?;
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
