//! What is there: the Secrets, the other policies, the plans, the database. Reads only.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use stanchion_api::policy::{DeletionPolicy, POLICY_LABEL, PostgresPolicyStatus, condition};
use stanchion_api::{PostgresPolicy, PostgresPolicyPlan};
use stanchion_kernel::problem::Retry;
use stanchion_kernel::{Problem, Reader};
use stanchion_postgres::server::LOG_GRANTS;
use stanchion_postgres::{Answered, Identity, Level, Security, Server, Session, Target as Database, quote};
use stanchion_roles::expand::{Desired, farewell};
use stanchion_roles::facts::Facts;
use stanchion_roles::inspect::{Mark, Needs, inspect_and_mark};

use crate::claims::{Claim, Place, Rival};
use crate::controller::PolicyController;
use crate::passwords::{self, Passwords, Secrets};
use crate::plans::label;
use crate::setup::Setup;
use crate::steady::Names;
use crate::target::{Content, Leaving, Target, Wanted};
use crate::validate::{content, created, who};
use crate::{connection, problems, profiles};

/// What was read.
pub enum Observed {
    /// Nothing was looked at.
    Nothing,
    /// Everything is as the last pass left it.
    Steady,
    /// Somebody else declares the same.
    Contested(Box<Contested>),
    /// What there is.
    Seen(Box<Seen>),
    /// What a policy that goes has given.
    Leaving(Box<Left>),
}

/// A policy that others are in the way of.
pub struct Contested {
    /// Whose policy it is.
    pub namespace: String,
    /// Which database.
    pub identity: Identity,
    /// How far the server is known.
    pub security: Security,
    /// What must hold.
    pub content: Content,
    /// The others.
    pub rivals: Vec<Rival>,
}

/// What there is.
pub struct Seen {
    /// How to get to the database.
    pub database: Database,
    /// Which one it is.
    pub identity: Identity,
    /// How far the server is known.
    pub security: Security,
    /// What should be known of the server.
    pub warnings: Vec<String>,
    /// What must hold.
    pub content: Content,
    /// What was looked at.
    pub needs: Arc<Needs>,
    /// What was found.
    pub facts: Facts,
    /// What that needs of the memory for all answers.
    pub answered: Answered,
    /// By which it is known again.
    pub mark: Mark,
    /// The passwords as they shall be.
    pub passwords: Passwords,
    /// The plans that there are.
    pub plans: Vec<PostgresPolicyPlan>,
    /// What was read.
    pub read: Names,
}

/// What a policy that goes has given.
pub struct Left {
    /// How to get to the database.
    pub database: Database,
    /// What must hold once it is gone.
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
            controller.steady.forget(&policy.key);
            for other in controller.setup.claims.release(&policy.key) {
                read.wake::<PostgresPolicy>(&other);
            }
            Ok(Observed::Nothing)
        }
        Target::Present(wanted) => {
            let seen = Box::pin(present(controller, read, wanted)).await;
            // The seed's word: what a person or another object has to mend is looked at as often as anything.
            seen.map_err(|problem| slow(problem, wanted))
        }
        Target::Absent(leaving) => Box::pin(absent(controller, read, leaving)).await,
    }
}

/// Problems that do not pass by themselves are looked at again at the usual interval.
pub fn slow(problem: Problem, wanted: &Wanted) -> Problem {
    match problem.reaction().retry {
        Retry::Backoff => problem,
        _ if problem.reason == problems::LOCK_CONTENTION => problem,
        _ => problem.with_retry(Retry::After(wanted.interval)),
    }
}

async fn present(controller: &PolicyController, read: &Reader, wanted: &Wanted) -> Result<Observed, Problem> {
    let setup = &controller.setup;
    if controller.steady.holds(setup, read, wanted).await? {
        return Ok(Observed::Steady);
    }
    controller.survey(read).await?;
    let mut secrets = Secrets::new(read);
    let database = connection::resolve(&wanted.connection, &mut secrets).await?;
    let content = profiles::complete(read, wanted).await?;
    let connected = setup.pools.get(&database).await;
    let mut session = connected.map_err(|error| problems::of_postgres(error, problems::CONNECTION))?;
    let identity = session.identity().clone();
    connection::check_identity(&wanted.connection, &database, &identity)?;
    let server = server(&session).await?;
    // A login that may change no role has no say in what becomes of other people's.
    let counts = wanted.mode.applies() && server.level() != Level::Plain;
    let standing = Standing {
        identity: &identity,
        peer: session.peer(),
        counts,
    };
    let rivals = claim(setup, read, wanted, standing, &content).await?;
    if !rivals.is_empty() {
        return Ok(Observed::Contested(Box::new(Contested {
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
    let (facts, mark) = inspect_and_mark(&mut session, &needs)
        .await
        .map_err(problems::of_inspection)?;
    let (security, answered) = (session.security(), session.keep_answer());
    drop(session);
    let selector = format!("{POLICY_LABEL}={}", label(&wanted.who.key.name));
    let mut plans: Vec<PostgresPolicyPlan> = read.list(&selector).await?;
    plans.retain(|plan| plan.spec.policy_ref.name == wanted.who.key.name);
    Ok(Observed::Seen(Box::new(Seen {
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
        mark,
        passwords,
        plans,
    })))
}

/// What a policy's word is worth in other namespaces.
struct Standing<'a> {
    identity: &'a Identity,
    peer: String,
    counts: bool,
}

/// What the server is, and what the login may do there.
async fn server(session: &Session) -> Result<Server, Problem> {
    let inspected = session.inspect(&[]).await;
    let (server, _) = inspected.map_err(|error| problems::of_postgres(error, "DatabaseInspectionFailed"))?;
    Ok(server)
}

/// Where passwords are set, what should be known of the server's log.
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

/// Declares what this policy declares, tells whom that concerns, and returns who is in the way. One that is gone
/// without a word is in nobody's way.
async fn claim(
    setup: &Setup,
    read: &Reader,
    wanted: &Wanted,
    standing: Standing<'_>,
    content: &Content,
) -> Result<Vec<Rival>, Problem> {
    let claim = Claim {
        uid: wanted.who.uid.clone(),
        created: wanted.created,
        place: standing.identity.into(),
        peer: Some(standing.peer),
        counts: standing.counts,
        waited: waits(&wanted.before),
        desired: Arc::clone(&content.desired),
    };
    let (rivals, told) = setup.claims.claim(&wanted.who.key, claim);
    for other in &told {
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
    leaving: &Leaving,
) -> Result<Observed, Problem> {
    controller.steady.forget(&leaving.who.key);
    let revokes = leaving.policy == DeletionPolicy::Revoke;
    let Some(wanted) = leaving.wanted.as_ref().filter(|_| revokes) else {
        return Ok(Observed::Nothing);
    };
    // One that never came as far as its database has given nothing.
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
    let found = found.map_err(|error| stuck(problems::of_postgres(error, problems::CONNECTION)))?;
    let others = controller
        .setup
        .claims
        .others(&leaving.who.key, &Place::from(&found.identity), &found.peer);
    let others: Vec<&Desired> = others.iter().map(AsRef::as_ref).collect();
    Ok(Observed::Leaving(Box::new(Left {
        database,
        desired: farewell(&content.desired, &others),
    })))
}

/// Whether the policy waited for another one when it was looked at last.
fn waits(status: &PostgresPolicyStatus) -> bool {
    let conflict = |one: &Condition| one.type_ == condition::CONFLICT && one.status == "True";
    status.conditions.iter().any(conflict)
}

/// What a policy declared before this process began, by its status.
pub fn remembered(policy: &PostgresPolicy) -> Option<Claim> {
    let is_active = !policy.spec.suspend && policy.metadata.deletion_timestamp.is_none();
    let identity = policy.status.as_ref()?.managed_database_identity.as_deref()?;
    Some(Claim {
        uid: policy.uid().unwrap_or_default(),
        created: created(policy),
        place: Place::parse(identity).filter(|_| is_active)?,
        peer: None,
        counts: policy.spec.mode.applies(),
        waited: policy.status.as_ref().is_some_and(waits),
        // Shared profiles are not looked up here: what they add is known once the policy itself is looked at.
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
    use crate::validate::validate;

    /// The seed's classes: misconfiguration at the interval, infrastructure with backoff, a busy database soon.
    #[test]
    fn each_class_has_its_own_pace() {
        let policy = json!({
            "apiVersion": "pgroles.io/v1alpha1", "kind": "PostgresPolicy", "metadata": { "name": "p" },
            "spec": { "connection": { "secretRef": { "name": "db" } }, "interval": "7m" },
        });
        let Ok(Target::Present(wanted)) = validate(&serde_json::from_value(policy).unwrap()) else {
            panic!("not present")
        };
        let interval = Retry::After(Duration::from_mins(7));
        let soon = Retry::After(Duration::from_secs(1));
        let busy = Problem::transient(problems::LOCK_CONTENTION, "").with_retry(soon);
        for (problem, expected) in [
            (Problem::permanent("InvalidSpec", ""), interval),
            (Problem::human(problems::CONFLICT, ""), interval),
            (Problem::human(problems::PRIVILEGES, ""), interval),
            (Problem::dependency("SecretFetchFailed", ""), interval),
            (Problem::transient(problems::CONNECTION, ""), Retry::Backoff),
            (busy, soon),
        ] {
            let reason = problem.reason;
            assert_eq!(slow(problem, &wanted).reaction().retry, expected, "{reason}");
        }
    }
}
