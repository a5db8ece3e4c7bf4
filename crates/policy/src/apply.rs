//! Doing it: plans are written before what they say is done, and again after it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, OwnerReference, Time};
use kube::{Resource, ResourceExt};
use stanchion_api::policy::{Decider, PlanPhase, PostgresPolicyPlanStatus};
use stanchion_api::{PostgresPolicy, PostgresPolicyPlan};
use stanchion_kernel::apply::Intent;
use stanchion_kernel::context::Subject;
use stanchion_kernel::{Problem, Writer};
use stanchion_roles::apply::{Options, apply as engine};
use stanchion_roles::diff::{self, diff};
use stanchion_roles::inspect::{Mark, inspect_and_mark};
use stanchion_roles::plan::Plan as Changes;
use stanchion_roles::render;

use crate::controller::PolicyController;
use crate::observe::{Left, Observed, Seen, slow};
use crate::plan::{Decided, Plan};
use crate::plans::{Decision, Next, draft, summary, truncated};
use crate::problems;
use crate::setup::TURN;
use crate::steady::Basis;
use crate::target::{Target, Wanted};

/// What was done.
#[derive(Default)]
pub struct Applied {
    /// What was found and what came of it; `None` when no pass came so far.
    pub told: Option<Told>,
    /// What happened to plans, in order.
    pub happened: Vec<Happening>,
}

/// What was found, and what came of it.
pub struct Told {
    /// What separates the database from what is declared, in numbers.
    pub summary: stanchion_api::policy::ChangeSummary,
    /// The same as SQL, where it was not carried out, and whether it is only the beginning.
    pub sql: Option<(String, bool)>,
    /// What should be known.
    pub warnings: Vec<String>,
    /// The plan.
    pub plan: Option<String>,
    /// What came of it.
    pub end: End,
    /// The marks of the passwords that are set now.
    pub marks: Option<BTreeMap<String, String>>,
}

/// What came of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// There was nothing to do.
    InSync,
    /// It was carried out.
    Applied,
    /// It waits for somebody.
    Waiting,
    /// Somebody said no.
    Rejected,
    /// The policy only looks.
    Observed,
}

/// Something that happened to a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Happening {
    Created(String),
    Approved(String, String),
    Rejected(String, String),
    Succeeded(String, usize),
    Failed(String, String),
}

/// Does it.
pub async fn apply(
    controller: &PolicyController,
    write: &Writer,
    target: &Target,
    observed: &Observed,
    plan: Plan,
    applied: &mut Applied,
) -> Result<(), Problem> {
    match (target, observed, plan) {
        (Target::Present(wanted), Observed::Seen(seen), Plan::Follow(decided)) => {
            let pass = Pass {
                controller,
                write,
                wanted,
                seen,
            };
            let done = Box::pin(pass.follow(*decided, applied)).await;
            done.map_err(|problem| slow(problem, wanted))
        }
        (Target::Absent(leaving), observed, _) => {
            if let Observed::Leaving(left) = observed {
                Box::pin(take_back(controller, write, left)).await?;
            }
            for other in controller.setup.claims.release(&leaving.who.key) {
                write.wake::<PostgresPolicy>(&other);
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Revokes what only this policy granted.
async fn take_back(controller: &PolicyController, write: &Writer, left: &Left) -> Result<(), Problem> {
    write.may_write()?;
    let exclusive = controller.setup.pools.exclusive(&left.database, TURN).await;
    let (_turn, mut session) = exclusive.map_err(|error| problems::of_postgres(error, "ApplyFailed"))?;
    let options = Options {
        lock_wait: TURN,
        ..Options::default()
    };
    engine(&mut session, &left.desired, &options)
        .await
        .map_err(problems::of_apply)?;
    Ok(())
}

struct Pass<'a> {
    controller: &'a PolicyController,
    write: &'a Writer,
    wanted: &'a Wanted,
    seen: &'a Seen,
}

impl Pass<'_> {
    async fn follow(&self, decided: Decided, applied: &mut Applied) -> Result<(), Problem> {
        let Decided {
            changes,
            course,
            options,
        } = decided;
        self.controller.setup.metrics.planned(changes.changes.len());
        let mut read = self.seen.read.clone();
        for (plan, mut status) in course.closing {
            if status.phase == PlanPhase::Applied {
                status.applied_at = Some(Timestamp::now());
            }
            self.set(&plan.name_any(), &status).await?;
        }
        for plan in course.pruned {
            self.write.delete::<PostgresPolicyPlan>(plan.meta()).await?;
            read.plans.retain(|name| *name != plan.name_any());
        }
        let mut told = self.told(&changes);
        let mut mark = self.seen.mark.clone();
        match course.next {
            Next::InSync => {
                told.marks = Some(self.seen.passwords.marks());
                // A Secret that somebody has emptied or whose verifier went is made whole.
                self.write_secrets().await?;
            }
            Next::Wait(plan, decision) => {
                let (name, mut status) = self.present(plan, &changes, applied).await?;
                told.plan = Some(name.clone());
                told.end = if self.wanted.mode.applies() { End::Waiting } else { End::Observed };
                if let Some(decision) = decision {
                    self.note(&name, &mut status, &decision, applied).await?;
                }
            }
            Next::Rejected(plan, decision) => {
                let (name, mut status) = (plan.name_any(), plan.status.unwrap_or_default());
                told.plan = Some(name.clone());
                told.end = End::Rejected;
                self.note(&name, &mut status, &decision, applied).await?;
            }
            Next::Execute(plan, decision) => {
                let (name, status) = self.present_to_execute(plan, decision, &changes, applied).await?;
                told.plan = Some(name.clone());
                mark = self.execute(&name, status, &changes, options, applied).await?;
                told.sql = None;
                told.end = End::Applied;
                told.marks = Some(self.seen.passwords.marks());
            }
        }
        if let Some(name) = &told.plan
            && !read.plans.contains(name)
        {
            read.plans.push(name.clone());
        }
        applied.told = Some(told);
        self.remember(mark, read);
        Ok(())
    }

    fn told(&self, changes: &Changes) -> Told {
        let mut warnings = self.seen.content.warnings.clone();
        warnings.extend(changes.warnings.iter().cloned());
        let blocked = changes.blockers.iter().map(|line| format!("apply would refuse this plan: {line}"));
        warnings.extend(blocked);
        Told {
            summary: summary(&changes.summary()),
            sql: (!changes.is_empty()).then(|| truncated(&render::script(changes))),
            warnings,
            plan: None,
            end: End::InSync,
            marks: None,
        }
    }

    /// The plan's object, made if it is not there yet.
    async fn present(
        &self,
        plan: Option<Box<PostgresPolicyPlan>>,
        changes: &Changes,
        applied: &mut Applied,
    ) -> Result<(String, PostgresPolicyPlanStatus), Problem> {
        if let Some(plan) = plan {
            return Ok((plan.name_any(), plan.status.unwrap_or_default()));
        }
        let (name, status) = self.create(changes).await?;
        self.set(&name, &status).await?;
        applied.happened.push(Happening::Created(name.clone()));
        Ok((name, status))
    }

    /// The same for one that is carried out at once: it says so with its first status.
    async fn present_to_execute(
        &self,
        plan: Option<Box<PostgresPolicyPlan>>,
        decision: Option<Decision>,
        changes: &Changes,
        applied: &mut Applied,
    ) -> Result<(String, PostgresPolicyPlanStatus), Problem> {
        let (name, mut status) = match plan {
            Some(plan) => (plan.name_any(), plan.status.unwrap_or_default()),
            None => self.create(changes).await?,
        };
        if let Some(decision) = &decision {
            decide(&mut status, &name, decision, applied);
        }
        status.phase = PlanPhase::Applying;
        status.applying_since = Some(Timestamp::now());
        status.last_error = None;
        status.failed_at = None;
        self.set(&name, &status).await?;
        Ok((name, status))
    }

    /// Writes the object and its SQL; what comes of it is in its status, which is not written yet.
    async fn create(&self, changes: &Changes) -> Result<(String, PostgresPolicyPlanStatus), Problem> {
        let identity = self.seen.identity.to_string();
        let draft = draft(self.wanted, &self.seen.content.desired, &identity, changes, Timestamp::now());
        let intent = Intent::new(&draft.plan, self.write.subject())?;
        let plan: PostgresPolicyPlan = self.write.apply(&intent).await?;
        if let Some(sql) = &draft.sql {
            // It goes with the plan, not with the policy.
            let intent = Intent::new(sql, &subject(&plan, self.write.subject()))?;
            let stored = self.write.apply::<ConfigMap>(&intent).await;
            stored.map_err(|problem| problem.with_reason("PlanSqlStorageFailed"))?;
        }
        Ok((plan.name_any(), draft.status))
    }

    async fn set(&self, name: &str, status: &PostgresPolicyPlanStatus) -> Result<(), Problem> {
        self.write.apply_status::<PostgresPolicyPlan>(name, status).await.map(drop)
    }

    /// Notes a decision in a plan that is not carried out now.
    async fn note(
        &self,
        name: &str,
        status: &mut PostgresPolicyPlanStatus,
        decision: &Decision,
        applied: &mut Applied,
    ) -> Result<(), Problem> {
        let before = status.clone();
        decide(status, name, decision, applied);
        if *status == before {
            return Ok(());
        }
        self.set(name, status).await
    }

    async fn write_secrets(&self) -> Result<(), Problem> {
        for secret in &self.seen.passwords.secrets {
            self.write.apply::<Secret>(secret).await?;
        }
        Ok(())
    }

    /// Carries the plan out, and says in it how that went.
    async fn execute(
        &self,
        name: &str,
        mut status: PostgresPolicyPlanStatus,
        changes: &Changes,
        options: diff::Options,
        applied: &mut Applied,
    ) -> Result<Mark, Problem> {
        let metrics = &self.controller.setup.metrics;
        let done = self.run(changes, options).await;
        let now = Timestamp::now();
        match done {
            Ok(mark) => {
                let statements = usize::try_from(status.sql_statements.unwrap_or_default()).unwrap_or_default();
                metrics.applied(Some(statements));
                status.phase = PlanPhase::Applied;
                status.applied_at = Some(now);
                status.applying_since = None;
                self.set(name, &status).await?;
                let count = changes.changes.len();
                applied.happened.push(Happening::Succeeded(name.into(), count));
                Ok(mark)
            }
            Err(problem) => {
                metrics.applied(None);
                status.phase = match problem.reason {
                    // Nothing was tried, or the database needs something else: another pass decides.
                    problems::LOCK_CONTENTION => PlanPhase::Approved,
                    "PlanSuperseded" => PlanPhase::Superseded,
                    _ => PlanPhase::Failed,
                };
                if status.phase == PlanPhase::Failed {
                    status.failed_at = Some(now);
                    status.last_error = Some(problem.message.clone());
                    let failed = Happening::Failed(name.into(), problem.message.clone());
                    applied.happened.push(failed);
                }
                status.applying_since = None;
                self.set(name, &status).await?;
                Err(problem)
            }
        }
    }

    /// One transaction under the database's lock, which does what was planned or nothing; then another look, for what
    /// is not seen is not true.
    async fn run(&self, changes: &Changes, options: diff::Options) -> Result<Mark, Problem> {
        self.write_secrets().await?;
        self.write.may_write()?;
        let exclusive = self.controller.setup.pools.exclusive(&self.seen.database, TURN).await;
        let (_turn, mut session) = exclusive.map_err(|error| problems::of_postgres(error, "ApplyFailed"))?;
        let desired = &self.seen.content.desired;
        let how = Options {
            diff: options.clone(),
            lock_wait: TURN,
            expected: Some(changes.digest()),
            ..Options::default()
        };
        engine(&mut session, desired, &how).await.map_err(problems::of_apply)?;
        let (facts, mark) = inspect_and_mark(&mut session, &self.seen.needs)
            .await
            .map_err(problems::of_inspection)?;
        let passwords = if facts.server.reads_passwords { options.passwords } else { BTreeMap::new() };
        let left = diff(desired, &facts, &diff::Options { passwords, ..options })
            .map_err(|error| Problem::permanent("InvalidDatabaseTarget", error.to_string()))?;
        if left.is_empty() {
            return Ok(mark);
        }
        Err(Problem::transient(
            "NotConverged",
            format!(
                "the plan was carried out, and {} change(s) are still needed: somebody else changes the same",
                left.changes.len()
            ),
        ))
    }

    /// Everything is as it should be, or waits for somebody: the next pass need not look at all of it.
    fn remember(&self, mark: Mark, read: crate::steady::Names) {
        let basis = Basis {
            uid: self.wanted.who.uid.clone(),
            generation: self.wanted.generation,
            requested: self.wanted.requested.clone(),
            target: self.seen.database.clone(),
            identity: self.seen.identity.clone(),
            needs: std::sync::Arc::clone(&self.seen.needs),
            mark,
            read,
        };
        self.controller.steady.remember(&self.wanted.who.key, basis);
    }
}

/// Writes a decision into a status, once.
fn decide(status: &mut PostgresPolicyPlanStatus, name: &str, decision: &Decision, applied: &mut Applied) {
    let (kind, who, phase) = match decision {
        Decision::Approved(who) => ("Approved", who, PlanPhase::Approved),
        Decision::Rejected(who) => ("Denied", who, PlanPhase::Rejected),
    };
    if !matches!(status.phase, PlanPhase::Failed | PlanPhase::Applying) || phase == PlanPhase::Rejected {
        status.phase = phase;
    }
    let is_noted = |condition: &Condition| condition.type_ == kind && condition.status == "True";
    if status.decided_by.is_some() && status.conditions.iter().any(is_noted) {
        return;
    }
    let Decider { username, .. } = who;
    status.decided_by.get_or_insert_with(|| who.clone());
    status.conditions.retain(|condition| !["Approved", "Denied"].contains(&condition.type_.as_str()));
    status.conditions.push(Condition {
        type_: kind.into(),
        status: "True".into(),
        reason: "Decided".into(),
        message: format!("by {username}"),
        observed_generation: None,
        last_transition_time: Time(Timestamp::now()),
    });
    applied.happened.push(match decision {
        Decision::Approved(_) => Happening::Approved(name.into(), username.clone()),
        Decision::Rejected(_) => Happening::Rejected(name.into(), username.clone()),
    });
}

/// The plan as the owner of its SQL.
fn subject(plan: &PostgresPolicyPlan, policy: &Subject) -> Subject {
    let uid = plan.uid().unwrap_or_default();
    Subject {
        key: policy.key.clone(),
        owner: OwnerReference {
            api_version: PostgresPolicyPlan::api_version(&()).into(),
            kind: PostgresPolicyPlan::kind(&()).into(),
            name: plan.name_any(),
            uid: uid.clone(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        },
        uid,
    }
}
