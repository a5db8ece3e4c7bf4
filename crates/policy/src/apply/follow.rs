//! What a decision means for the plans that there are.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt};
use stanchion_api::PostgresPolicyPlan;
use stanchion_api::policy::{PlanPhase, PostgresPolicyPlanStatus};
use stanchion_kernel::apply::Intent;
use stanchion_kernel::context::Subject;
use stanchion_kernel::{Problem, Writer};
use stanchion_roles::inspect::Mark;
use stanchion_roles::plan::Plan as Changes;
use stanchion_roles::render;

use super::decision::decide;
use super::{Applied, End, Happening, Told};
use crate::controller::PolicyController;
use crate::observe::Seen;
use crate::plan::Decided;
use crate::plans::{Decision, Next, age, draft, summary, truncated};
use crate::steady::{Basis, Names};
use crate::target::Wanted;

/// One pass over a policy that is looked after.
pub(super) struct Pass<'a> {
    pub(super) controller: &'a PolicyController,
    pub(super) write: &'a Writer,
    pub(super) wanted: &'a Wanted,
    pub(super) seen: &'a Seen,
}

impl Pass<'_> {
    /// Does what was decided.
    pub(super) async fn follow(&self, decided: Decided, applied: &mut Applied) -> Result<(), Problem> {
        let Decided {
            changes,
            course,
            options,
        } = decided;
        self.controller.setup.metrics.planned(changes.changes.len());
        let mut read = self.seen.read.clone();
        let mut told = self.told(&changes);
        for (plan, mut status) in course.closing {
            if status.phase == PlanPhase::Applied {
                // It was carried out by somebody who could not say so any more.
                status.applied_at = Some(Timestamp::now());
                status.applying_since = None;
                told.end = End::Applied;
                told.summary = status.change_summary.unwrap_or_default();
                told.plan = Some(plan.name_any());
                let count = usize::try_from(told.summary.total).unwrap_or_default();
                applied
                    .happened
                    .push(Happening::Succeeded(plan.name_any(), count));
            }
            self.set(&plan.name_any(), &status).await?;
        }
        for plan in course.pruned {
            self.write.delete::<PostgresPolicyPlan>(plan.meta()).await?;
            read.plans.retain(|name| *name != plan.name_any());
        }
        let mut mark = self.seen.mark.clone();
        match course.next {
            Next::InSync => {
                self.catch_up(&mut told);
                told.marks = Some(self.seen.passwords.marks());
                // A Secret whose verifier or label went is made whole, except by who only looks.
                if self.wanted.mode.applies() {
                    self.write_secrets().await?;
                }
            }
            Next::Wait(plan, decision) => {
                let (name, mut status) = self.present(plan, &changes, applied).await?;
                told.plan = Some(name.clone());
                told.end = if self.wanted.mode.applies() {
                    End::Waiting
                } else {
                    End::Observed
                };
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

    /// The last plan was carried out, and whoever did it was killed before the policy said so.
    fn catch_up(&self, told: &mut Told) {
        let reported = self.wanted.before.current_plan_ref.as_ref();
        let last = self.seen.plans.iter().max_by_key(|plan| age(plan));
        if let Some(plan) = last
            && let Some(status) = &plan.status
            && status.phase == PlanPhase::Applied
            && reported.is_none_or(|reported| reported.name != plan.name_any())
        {
            told.end = End::Applied;
            told.summary = status.change_summary.unwrap_or_default();
            told.plan = Some(plan.name_any());
        }
    }

    fn told(&self, changes: &Changes) -> Told {
        let mut warnings = self.seen.content.warnings.clone();
        warnings.extend(changes.warnings.iter().cloned());
        warnings.extend(self.seen.warnings.iter().cloned());
        let blocked = changes
            .blockers
            .iter()
            .map(|line| format!("apply would refuse this plan: {line}"));
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
        let (name, status, is_new) = self.written(plan, changes).await?;
        if is_new {
            self.set(&name, &status).await?;
            applied.happened.push(Happening::Created(name.clone()));
        }
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
        let (name, mut status, _) = self.written(plan, changes).await?;
        if let Some(decision) = &decision {
            decide(&mut status, &name, decision, applied);
            // Somebody waits for it. Of a plan that nobody was asked about, its end is news enough.
            applied.happened.push(Happening::Started(name.clone()));
        }
        status.phase = PlanPhase::Applying;
        status.applying_since = Some(Timestamp::now());
        status.last_error = None;
        status.failed_at = None;
        self.set(&name, &status).await?;
        Ok((name, status))
    }

    /// Writes what is missing of a plan: its object, its SQL. What comes of it is in its status, which is not written
    /// here; whether there is none yet is returned.
    async fn written(
        &self,
        plan: Option<Box<PostgresPolicyPlan>>,
        changes: &Changes,
    ) -> Result<(String, PostgresPolicyPlanStatus, bool), Problem> {
        let described = |status: &PostgresPolicyPlanStatus| status.change_digest.is_some();
        if let Some(plan) = &plan
            && let Some(status) = plan.status.clone().filter(described)
        {
            return Ok((plan.name_any(), status, false));
        }
        let (identity, now) = (self.seen.identity.to_string(), Timestamp::now());
        let name = plan.as_ref().map(|plan| plan.name_any());
        let draft = draft(
            self.wanted,
            &self.seen.content.desired,
            &identity,
            changes,
            (name, now),
        );
        let plan = if let Some(plan) = plan {
            // Somebody was killed after the object and before its status.
            *plan
        } else {
            let intent = Intent::new(&draft.plan, self.write.subject())?;
            self.write.apply(&intent).await?
        };
        if let Some(sql) = &draft.sql {
            // It goes with the plan, not with the policy.
            let intent = Intent::new(sql, &subject(&plan, self.write.subject()))?;
            match self.write.apply::<ConfigMap>(&intent).await {
                Err(problem) if problem.reason == "Conflict" => {}
                stored => drop(stored.map_err(|problem| problem.with_reason("PlanSqlStorageFailed"))?),
            }
        }
        Ok((plan.name_any(), draft.status, true))
    }

    pub(super) async fn set(&self, name: &str, status: &PostgresPolicyPlanStatus) -> Result<(), Problem> {
        self.write
            .apply_status::<PostgresPolicyPlan>(name, status)
            .await
            .map(drop)
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

    /// Everything is as it should be, or waits for somebody: the next pass need not look at all of it.
    fn remember(&self, mark: Mark, read: Names) {
        let basis = Basis {
            uid: self.wanted.who.uid.clone(),
            generation: self.wanted.generation,
            requested: self.wanted.requested.clone(),
            target: self.seen.database.clone(),
            identity: self.seen.identity.clone(),
            needs: Arc::clone(&self.seen.needs),
            mark,
            read,
        };
        self.controller.steady.remember(&self.wanted.who.key, basis);
    }
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
