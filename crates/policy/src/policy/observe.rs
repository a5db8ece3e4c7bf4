//! Reads the Secrets, the other policies, the plans and the database. Reads only.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use stanchion_api::policy::{DeletionPolicy, POLICY_LABEL, PostgresPolicyStatus, condition};
use stanchion_api::{PostgresPolicy, PostgresPolicyPlan};
use stanchion_kernel::problem::{Cause, Retry};
use stanchion_kernel::{Problem, Reader};
use stanchion_postgres::server::LOG_GRANTS;
use stanchion_postgres::{Answered, ConnectionConfig, Identity, Level, Security, Server, Session, quote};
use stanchion_roles::expand::{Desired, after_deletion};
use stanchion_roles::facts::Facts;
use stanchion_roles::inspect::{InspectionDigest, Needs, inspect_with_digest};

use crate::claims::{Claim, DatabaseKey, Rival};
use crate::converged_cache::Names;
use crate::passwords::{self, Passwords, Secrets};
use crate::plans::label;
use crate::policy::PolicyController;
use crate::policy::target::{CleanupTarget, Content, Target, Wanted};
use crate::policy::validate::{content, created, who};
use crate::setup::Setup;
use crate::{connection, problems, profiles};

/// The observed state.
pub enum Observed {
    /// Nothing was read.
    Nothing,
    /// Everything is unchanged since the last reconcile.
    Unchanged,
    /// Another policy declares the same.
    Conflicting(Box<Conflicting>),
    /// What there is.
    Ensure(Box<Current>),
    /// What a deleted policy granted.
    Cleanup(Box<CleanupState>),
}

/// A policy with conflicts.
pub struct Conflicting {
    /// The policy's namespace.
    pub namespace: String,
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
    /// The connection to the database.
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
    /// The desired passwords.
    pub passwords: Passwords,
    /// The existing plans.
    pub plans: Vec<PostgresPolicyPlan>,
    /// Names of the objects that were read.
    pub read: Names,
}

/// What a deleted policy granted.
pub struct CleanupState {
    /// The connection to the database.
    pub database: ConnectionConfig,
    /// The desired state after the deletion.
    pub desired: Desired,
}

/// Reads everything that the plan needs.
pub async fn observe(
    controller: &PolicyController,
    read: &Reader,
    target: &Target,
) -> Result<Observed, Problem> {
    match target {
        Target::Suspended(policy) => {
            controller.converged.forget(&policy.key);
            for other in controller.setup.claims.release(&policy.key) {
                read.wake::<PostgresPolicy>(&other);
            }
            Ok(Observed::Nothing)
        }
        Target::Ensure(wanted) => {
            let current = Box::pin(present(controller, read, wanted)).await;
            // As in pgroles: errors that need a person or another object are retried at `spec.interval`.
            current.map_err(|problem| retry_at_interval(problem, wanted))
        }
        Target::Cleanup(cleanup) => Box::pin(absent(controller, read, cleanup)).await,
    }
}

/// Retries problems that need a change elsewhere at the usual interval.
pub fn retry_at_interval(problem: Problem, wanted: &Wanted) -> Problem {
    match problem.reaction().retry {
        Retry::Backoff => problem,
        _ if problem.is(Cause::DatabaseBusy) => problem,
        _ => problem.with_retry(Retry::After(wanted.interval)),
    }
}

async fn present(controller: &PolicyController, read: &Reader, wanted: &Wanted) -> Result<Observed, Problem> {
    let setup = &controller.setup;
    if controller.converged.is_converged(setup, read, wanted).await? {
        return Ok(Observed::Unchanged);
    }
    controller.survey(read).await?;
    let mut secrets = Secrets::new(read);
    let database = connection::resolve(&wanted.connection, &mut secrets).await?;
    let content = profiles::complete(read, wanted).await?;
    let connected = setup.pools.get(&database).await;
    let mut session = connected.map_err(|error| problems::of_postgres(error, problems::During::Connect))?;
    let identity = session.identity().clone();
    connection::check_identity(&wanted.connection, &database, &identity)?;
    let server = server(&session).await?;
    // A login that may not change roles does not count for the policies of others.
    let counts = wanted.mode.applies() && server.level() != Level::Plain;
    let weight = ClaimWeight {
        identity: &identity,
        peer: session.peer(),
        counts,
    };
    let rivals = claim(setup, read, wanted, weight, &content).await?;
    if !rivals.is_empty() {
        return Ok(Observed::Conflicting(Box::new(Conflicting {
            namespace: wanted.who.key.namespace.clone(),
            security: session.security(),
            identity,
            content,
            rivals,
        })));
    }
    let applied = &wanted.before.applied_password_source_versions;
    let passwords = passwords::resolve(&wanted.passwords, &mut secrets, &setup.fingerprints, applied).await?;
    let needs = Arc::new(Needs::of(&content.desired));
    let (facts, digest) = inspect_with_digest(&mut session, &needs)
        .await
        .map_err(problems::of_inspection)?;
    let (security, answered) = (session.security(), session.keep_answer());
    drop(session);
    let selector = format!("{POLICY_LABEL}={}", label(&wanted.who.key.name));
    let mut plans: Vec<PostgresPolicyPlan> = read.list(&selector).await?;
    plans.retain(|plan| plan.spec.policy_ref.name == wanted.who.key.name);
    Ok(Observed::Ensure(Box::new(Current {
        read: Names {
            secrets: secrets.names(),
            config_maps: wanted
                .profiles_from
                .iter()
                .map(|from| from.name.clone())
                .collect(),
            plans: plans.iter().map(ResourceExt::name_any).collect(),
        },
        database,
        identity,
        security,
        warnings: warnings(wanted, &server),
        content,
        needs,
        facts,
        answered,
        digest,
        passwords,
        plans,
    })))
}

/// The weight of a policy's claim in other namespaces.
struct ClaimWeight<'a> {
    identity: &'a Identity,
    peer: String,
    counts: bool,
}

/// The server's properties, and the login's privileges there.
async fn server(session: &Session) -> Result<Server, Problem> {
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

/// Claims what this policy declares, enqueues affected policies, and returns the conflicting ones. A policy that no
/// longer exists does not conflict.
async fn claim(
    setup: &Setup,
    read: &Reader,
    wanted: &Wanted,
    weight: ClaimWeight<'_>,
    content: &Content,
) -> Result<Vec<Rival>, Problem> {
    let claim = Claim {
        uid: wanted.who.uid.clone(),
        created: wanted.created,
        place: weight.identity.into(),
        peer: Some(weight.peer),
        counts: weight.counts,
        waited: waits(&wanted.before),
        desired: Arc::clone(&content.desired),
    };
    let (rivals, affected) = setup.claims.claim(&wanted.who.key, claim);
    for other in &affected {
        read.wake::<PostgresPolicy>(other);
    }
    let mut present = Vec::new();
    for rival in rivals {
        let key = &rival.who.key;
        let live: Option<PostgresPolicy> = read.get_in(&key.namespace, &key.name).await?;
        let is_there = live.is_some_and(|live| {
            who(&live) == rival.who && !live.spec.suspend && live.metadata.deletion_timestamp.is_none()
        });
        if is_there {
            present.push(rival);
        } else {
            setup.claims.release(key);
        }
    }
    Ok(present)
}

async fn absent(
    controller: &PolicyController,
    read: &Reader,
    cleanup: &CleanupTarget,
) -> Result<Observed, Problem> {
    controller.converged.forget(&cleanup.who.key);
    let revokes = cleanup.policy == DeletionPolicy::Revoke;
    let Some(wanted) = cleanup.wanted.as_ref().filter(|_| revokes) else {
        return Ok(Observed::Nothing);
    };
    // A policy that never reached its database has granted nothing.
    if wanted.before.managed_database_identity.is_none() {
        return Ok(Observed::Nothing);
    }
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
    let others =
        controller
            .setup
            .claims
            .others(&cleanup.who.key, &DatabaseKey::from(&found.identity), &found.peer);
    let others: Vec<&Desired> = others.iter().map(AsRef::as_ref).collect();
    Ok(Observed::Cleanup(Box::new(CleanupState {
        database,
        desired: after_deletion(&content.desired, &others),
    })))
}

/// Whether the policy waited for another one at its last reconcile.
fn waits(status: &PostgresPolicyStatus) -> bool {
    let conflict = |one: &Condition| one.type_ == condition::CONFLICT && one.status == "True";
    status.conditions.iter().any(conflict)
}

/// The claim of a policy before this process began, from its status.
pub fn remembered(policy: &PostgresPolicy) -> Option<Claim> {
    let is_active = !policy.spec.suspend && policy.metadata.deletion_timestamp.is_none();
    let identity = policy.status.as_ref()?.managed_database_identity.as_deref()?;
    Some(Claim {
        uid: policy.uid().unwrap_or_default(),
        created: created(policy),
        place: DatabaseKey::parse(identity).filter(|_| is_active)?,
        peer: None,
        counts: policy.spec.mode.applies(),
        waited: policy.status.as_ref().is_some_and(waits),
        // Shared profiles are not read here: they are added when the policy itself is reconciled.
        desired: content(&policy.spec, std::collections::BTreeMap::new())
            .ok()?
            .desired,
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
        let Ok(Target::Ensure(wanted)) = validate(&serde_json::from_value(policy).unwrap()) else {
            panic!("not present")
        };
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
