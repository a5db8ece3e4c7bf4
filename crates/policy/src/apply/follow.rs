//! Applies a decision to the existing plans.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt};
use stanchion_api::PostgresPolicyPlan;
use stanchion_api::policy::{PlanPhase, PostgresPolicyPlanStatus};
use stanchion_kernel::apply::Intent;
use stanchion_kernel::context::Subject;
use stanchion_kernel::{Problem, Writer, ambient};
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

/// One reconcile of an active policy.
pub(super) struct Pass<'a> {
    pub(super) controller: &'a PolicyController,
    pub(super) write: &'a Writer,
    pub(super) wanted: &'a Wanted,
    pub(super) seen: &'a Seen,
}

impl Pass<'_> {
    /// Carries out the decision.
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
                // The plan was executed by a process that ended before it could record that.
                status.applied_at = Some(ambient::now());
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
        match course.next.proven(&self.controller.setup.fingerprints) {
            Next::InSync => {
                self.catch_up(&mut told);
                told.marks = Some(self.seen.passwords.marks());
                // Restore a Secret that lost its verifier or label, unless the policy only observes.
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

    /// Reports a plan that was executed by a process that was killed before it updated the policy's status.
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

    /// The plan's object, created if it does not exist yet.
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

    /// The same for a plan that is executed at once: its first status says so.
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
            // Send the event only for a plan that waited for approval; otherwise the result is enough.
            applied.happened.push(Happening::Started(name.clone()));
        }
        status.phase = PlanPhase::Applying;
        status.applying_since = Some(ambient::now());
        status.last_error = None;
        status.failed_at = None;
        self.set(&name, &status).await?;
        Ok((name, status))
    }

    /// Writes what is missing of a plan: its object and its SQL, but not its status. Returns whether the plan has no
    /// status yet.
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
        let (identity, now) = (self.seen.identity.to_string(), ambient::now());
        let name = plan.as_ref().map(|plan| plan.name_any());
        let draft = draft(
            self.wanted,
            &self.seen.content.desired,
            &identity,
            changes,
            (name, now),
        );
        let plan = if let Some(plan) = plan {
            // A process was killed after it wrote the object and before it wrote its status.
            *plan
        } else {
            let intent = Intent::new(&draft.plan, self.write.subject())?;
            self.write.apply(&intent).await?
        };
        if let Some(sql) = &draft.sql {
            // The plan owns it, not the policy.
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

    /// Records a decision in a plan that is not executed now.
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

    /// Remembers a converged or waiting policy, so that the next reconcile need not read everything.
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
