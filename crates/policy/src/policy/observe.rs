//! Reads the Secrets, the other policies, the plans and the database. Reads only.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{Resource, ResourceExt};
use stanchion_api::policy::{POLICY_LABEL, PostgresPolicyStatus, condition};
use stanchion_api::{PostgresPolicy, PostgresPolicyPlan};
use stanchion_kernel::context::Parent;
use stanchion_kernel::problem::{Cause, Retry};
use stanchion_kernel::redact::FingerprintKey;
use stanchion_kernel::watch::dependencies::Key;
use stanchion_kernel::{Problem, Reader};
use stanchion_postgres::server::LOG_GRANTS;
use stanchion_postgres::{
    Answered, ConnectionConfig, Identity, Level, ReadPooled, ReadSession, Security, Server, quote,
};
use stanchion_roles::facts::Facts;
use stanchion_roles::inspect::{InspectionDigest, Needs, inspect_with_digest};

use crate::claims::{Claim, DatabaseKey, Rival};
use crate::converged_cache::Names;
use crate::passwords::{self, Secrets, StoredPassword};
use crate::plans::label;
use crate::policy::PolicyController;
use crate::policy::target::{Content, PolicyId, Wanted};
use crate::policy::validate::{content, created, reach, who};
use crate::setup::Setup;
use crate::{connection, problems, profiles};

/// The observed state.
pub enum Observed {
    /// Everything is unchanged since the last reconcile.
    Unchanged,
    /// The database, or what is needed to reach it, could not be read.
    Failed(Problem),
    /// The database answered.
    Connected(Box<Connected>),
}

/// What is known once the database has answered.
pub struct Connected {
    /// The claim of this policy, which is not set yet.
    pub claim: Claim,
    /// Policies with a conflicting claim that no longer exist.
    pub stale: Vec<Key>,
    pub found: Found,
}

pub enum Found {
    /// Another policy declares the same.
    Conflict(Conflicting),
    /// The rest could not be read.
    Failed(Problem),
    /// The state of the database.
    Database(Arc<Current>),
}

/// A policy with conflicts.
pub struct Conflicting {
    /// The database.
    pub identity: Identity,
    /// How far the server was verified.
    pub security: Security,
    /// The desired state.
    pub content: Content,
    /// The conflicting policies.
    pub rivals: Vec<Rival>,
}

/// Everything that the plan needs.
pub struct Current {
    /// The policy as the owner of its children.
    pub parent: Parent,
    pub database: ConnectionConfig,
    /// Identity of the database.
    pub identity: Identity,
    /// How far the server was verified.
    pub security: Security,
    /// Warnings about the server.
    pub warnings: Vec<String>,
    /// The desired state.
    pub content: Content,
    /// What was inspected.
    pub needs: Arc<Needs>,
    /// What the inspection found.
    pub facts: Facts,
    /// Memory reserved for the server's answers.
    pub answered: Answered,
    /// A digest of what was inspected.
    pub digest: InspectionDigest,
    /// What the Secrets contain about the passwords.
    pub passwords: Vec<StoredPassword>,
    /// Detects changed passwords.
    pub fingerprints: Arc<FingerprintKey>,
    /// The existing plans.
    pub plans: Vec<PostgresPolicyPlan>,
    /// Names of the objects that were read.
    pub read: Names,
}

/// Reads everything that the plan needs. A failure is part of the result, so that `apply` forgets what was converged.
pub(crate) async fn observe(controller: &PolicyController, read: &Reader, wanted: &Wanted) -> Observed {
    let observed = Box::pin(present(controller, read, wanted)).await;
    observed.unwrap_or_else(Observed::Failed)
}

/// Retries problems that need a person or another object at `spec.interval`, as pgroles does.
pub(crate) fn retry_at_interval(problem: Problem, wanted: &Wanted) -> Problem {
    match problem.reaction().retry {
        Retry::Backoff => problem,
        _ if problem.is(Cause::DatabaseBusy) => problem,
        _ => problem.with_retry(Retry::After(wanted.interval)),
    }
}

async fn present(controller: &PolicyController, read: &Reader, wanted: &Wanted) -> Result<Observed, Problem> {
    let setup = &controller.setup;
    if controller.converged.is_unchanged(setup, read, wanted).await? {
        return Ok(Observed::Unchanged);
    }
    controller.survey(read).await?;
    let mut secrets = Secrets::new(read);
    let database = connection::resolve(&wanted.connection, &mut secrets).await?;
    let content = profiles::complete(read, wanted).await?;
    let connected = setup.pools.read_only(&database).await;
    let session = connected.map_err(|error| problems::of_postgres(error, problems::During::Connect))?;
    connection::check_identity(&wanted.connection, &database, session.identity())?;
    let server = server(&session).await?;
    let claim = Claim {
        uid: wanted.who.uid.clone(),
        created: wanted.created,
        place: session.identity().into(),
        peer: Some(session.peer()),
        // A login that may not change roles does not count for the policies of others.
        counts: wanted.mode.applies() && server.level() != Level::Plain,
        waited: waits(&wanted.before),
        mode: wanted.reach,
        desired: Arc::clone(&content.desired),
        partial: false,
    };
    let opened = Opened {
        setup,
        read,
        wanted,
        secrets,
        database,
        content,
        session,
        server,
    };
    let mut stale = Vec::new();
    let found = Box::pin(opened.find(&claim, &mut stale)).await;
    Ok(Observed::Connected(Box::new(Connected {
        claim,
        stale,
        found: found.unwrap_or_else(Found::Failed),
    })))
}

/// A reconcile with a connection.
struct Opened<'a> {
    setup: &'a Setup,
    read: &'a Reader,
    wanted: &'a Wanted,
    secrets: Secrets<'a>,
    database: ConnectionConfig,
    content: Content,
    session: ReadPooled,
    server: Server,
}

impl Opened<'_> {
    async fn find(mut self, claim: &Claim, stale: &mut Vec<Key>) -> Result<Found, Problem> {
        let rivals = self.rivals(claim, stale).await?;
        if !rivals.is_empty() {
            return Ok(Found::Conflict(Conflicting {
                identity: self.session.identity().clone(),
                security: self.session.security(),
                content: self.content,
                rivals,
            }));
        }
        let passwords = passwords::read(&self.wanted.passwords, &mut self.secrets).await?;
        let needs = Arc::new(Needs::of(&self.content.desired));
        let (facts, digest) = inspect_with_digest(&mut self.session, &needs)
            .await
            .map_err(problems::of_inspection)?;
        let identity = self.session.identity().clone();
        let (security, answered) = (self.session.security(), self.session.keep_answer());
        drop(self.session);
        let plans = plans(self.read, &self.wanted.who).await?;
        let profiles = self.wanted.profiles_from.iter();
        Ok(Found::Database(Arc::new(Current {
            parent: self.read.parent().clone(),
            read: Names {
                secrets: self.secrets.names(),
                config_maps: profiles.map(|from| from.name.clone()).collect(),
                plans: plans.iter().map(ResourceExt::name_any).collect(),
            },
            database: self.database,
            identity,
            security,
            warnings: warnings(self.wanted, &self.server),
            content: self.content,
            needs,
            facts,
            answered,
            digest,
            passwords,
            fingerprints: Arc::clone(&self.setup.fingerprints),
            plans,
        })))
    }

    /// The policies that block this one. A policy that no longer exists does not: it is `stale`.
    async fn rivals(&self, claim: &Claim, stale: &mut Vec<Key>) -> Result<Vec<Rival>, Problem> {
        let mut present = Vec::new();
        for rival in self.setup.claims.rivals(&self.wanted.who.key, claim) {
            let key = &rival.who.key;
            let live: Option<PostgresPolicy> = self.read.get_in(&key.namespace, &key.name).await?;
            let is_there = live.is_some_and(|live| {
                who(&live) == rival.who && !live.spec.suspend && live.metadata.deletion_timestamp.is_none()
            });
            if is_there {
                present.push(rival);
            } else {
                stale.push(key.clone());
            }
        }
        Ok(present)
    }
}

/// The plans of a policy. It leaves out plans that are being deleted and plans of an earlier policy of this name: no decision
/// about them counts.
pub(crate) async fn plans(read: &Reader, policy: &PolicyId) -> Result<Vec<PostgresPolicyPlan>, Problem> {
    let name = &policy.key.name;
    let selector = format!("{POLICY_LABEL}={}", label(name));
    let mut plans: Vec<PostgresPolicyPlan> = read.list(&selector).await?;
    plans.retain(|plan| {
        let mut owners = plan
            .owner_references()
            .iter()
            .filter(|owner| owner.kind == PostgresPolicy::kind(&()));
        plan.spec.policy_ref.name == *name
            && plan.metadata.deletion_timestamp.is_none()
            && owners.all(|owner| owner.uid == policy.uid)
    });
    Ok(plans)
}

/// The server's properties, and the login's privileges there.
async fn server(session: &ReadSession) -> Result<Server, Problem> {
    let inspected = session.inspect(&[]).await;
    let (server, _) = inspected.map_err(|error| problems::of_postgres(error, problems::During::Inspect))?;
    Ok(server)
}

/// Warnings about the server's log, if the policy sets passwords.
fn warnings(wanted: &Wanted, server: &Server) -> Vec<String> {
    let exposed = wanted.mode.applies() && !wanted.passwords.is_empty() && !server.keeps_log_clean;
    let warning = exposed.then(|| {
        format!(
            "the login may not switch off the server's logging, so the log may contain password verifiers (never \
             passwords): {LOG_GRANTS} {}",
            quote::identifier(&server.login)
        )
    });
    warning.into_iter().collect()
}

/// Whether the policy waited for another one at its last reconcile.
fn waits(status: &PostgresPolicyStatus) -> bool {
    let conflict = |one: &Condition| one.type_ == condition::CONFLICT && one.status == "True";
    status.conditions.iter().any(conflict)
}

/// The claim of a policy before this process began, from its status.
pub(crate) fn remembered(policy: &PostgresPolicy) -> Option<Claim> {
    let is_active = !policy.spec.suspend && policy.metadata.deletion_timestamp.is_none();
    let identity = policy.status.as_ref()?.managed_database_identity.as_deref()?;
    // Shared profiles are not read here: they are added when the policy itself is reconciled.
    let partial = !policy.spec.profiles_from.is_empty();
    let desired = match content(&policy.spec, BTreeMap::new()) {
        Ok(content) => content.desired,
        Err(_) if partial => Arc::default(),
        Err(_) => return None,
    };
    Some(Claim {
        uid: policy.uid().unwrap_or_default(),
        created: created(policy),
        place: DatabaseKey::parse(identity).filter(|_| is_active)?,
        peer: None,
        counts: policy.spec.mode.applies(),
        waited: policy.status.as_ref().is_some_and(waits),
        mode: reach(policy.spec.reconciliation_mode),
        desired,
        partial,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::policy::validate::validate;

    /// As in pgroles: misconfiguration at the interval, infrastructure with backoff, a busy database soon.
    #[test]
    fn each_class_has_its_own_pace() {
        let policy = json!({
            "apiVersion": "pgroles.io/v1alpha1", "kind": "PostgresPolicy", "metadata": { "name": "p" },
            "spec": { "connection": { "secretRef": { "name": "db" } }, "interval": "7m" },
        });
        let wanted = validate(&serde_json::from_value(policy).unwrap()).unwrap();
        let interval = Retry::After(Duration::from_mins(7));
        let soon = Retry::After(Duration::from_secs(1));
        let busy = Problem::transient(problems::LOCK_CONTENTION, "")
            .with_cause(Cause::DatabaseBusy)
            .with_retry(soon);
        for (problem, expected) in [
            (Problem::permanent("InvalidSpec", ""), interval),
            (Problem::human(problems::CONFLICT, ""), interval),
            (Problem::human(problems::PRIVILEGES, ""), interval),
            (Problem::dependency("SecretFetchFailed", ""), interval),
            (Problem::transient(problems::CONNECTION, ""), Retry::Backoff),
            (busy, soon),
        ] {
            let reason = problem.reason;
            assert_eq!(
                retry_at_interval(problem, &wanted).reaction().retry,
                expected,
                "{reason}"
            );
        }
    }
}
