//! What is there: the Secrets, the other policies, the plans, the database. Reads only.

use std::sync::Arc;

use kube::ResourceExt;
use stanchion_api::policy::{DeletionPolicy, POLICY_LABEL};
use stanchion_api::{PostgresPolicy, PostgresPolicyPlan};
use stanchion_kernel::problem::Retry;
use stanchion_kernel::{Problem, Reader};
use stanchion_postgres::{Identity, Target as Database};
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
use crate::validate::{content, who};
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
    /// Which database.
    pub identity: Identity,
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
    /// What must hold.
    pub content: Content,
    /// What was looked at.
    pub needs: Arc<Needs>,
    /// What was found.
    pub facts: Facts,
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
    let rivals = claim(setup, read, wanted, &identity, &content).await?;
    if !rivals.is_empty() {
        return Ok(Observed::Contested(Box::new(Contested {
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
        content,
        needs,
        facts,
        mark,
        passwords,
        plans,
    })))
}

/// Declares what this policy declares, tells whom that concerns, and returns who is in the way. One that is gone
/// without a word is in nobody's way.
async fn claim(
    setup: &Setup,
    read: &Reader,
    wanted: &Wanted,
    identity: &Identity,
    content: &Content,
) -> Result<Vec<Rival>, Problem> {
    let claim = Claim {
        uid: wanted.who.uid.clone(),
        place: identity.into(),
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
    let identity = controller.setup.pools.identity(&database).await;
    let identity = identity.map_err(|error| stuck(problems::of_postgres(error, problems::CONNECTION)))?;
    let others = controller
        .setup
        .claims
        .others(&leaving.who.key, &Place::from(&identity));
    let others: Vec<&Desired> = others.iter().map(AsRef::as_ref).collect();
    Ok(Observed::Leaving(Box::new(Left {
        database,
        desired: farewell(&content.desired, &others),
    })))
}

/// What a policy declared before this process began, by its status.
pub fn remembered(policy: &PostgresPolicy) -> Option<Claim> {
    let is_active = !policy.spec.suspend && policy.metadata.deletion_timestamp.is_none();
    let identity = policy.status.as_ref()?.managed_database_identity.as_deref()?;
    Some(Claim {
        uid: policy.uid().unwrap_or_default(),
        place: Place::parse(identity).filter(|_| is_active)?,
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
