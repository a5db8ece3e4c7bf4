//! Applies a decision to the existing plans.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt};
use stanchion_api::PostgresPolicyPlan;
use stanchion_api::policy::{PlanPhase, PostgresPolicyPlanStatus};
use stanchion_kernel::apply::Intent;
use stanchion_kernel::context::Parent;
use stanchion_kernel::{Problem, Writer, ambient};
use stanchion_roles::diff;
use stanchion_roles::inspect::InspectionDigest;
use stanchion_roles::plan::Plan as Changes;
use stanchion_roles::render;

use super::record_decision::decide;
use super::{Applied, PassResult, PlanEvent, PlanOutcome};
use crate::converged_cache::{ConvergedInputs, Names};
use crate::passwords::Passwords;
use crate::plans::{Decision, NextAction, Transitions, age, applied_in, draft, summary, truncated};
use crate::policy::PolicyController;
use crate::policy::observe::Current;
use crate::policy::target::Wanted;

/// One reconcile of an active policy.
pub(super) struct Pass<'a> {
    pub(super) controller: &'a PolicyController,
    pub(super) write: &'a Writer,
    pub(super) wanted: &'a Wanted,
    pub(super) current: &'a Current,
    pub(super) passwords: &'a Passwords,
}

impl Pass<'_> {
    /// Carries out the decision.
    pub(super) async fn advance(
        &self,
        changes: &Changes,
        transitions: Transitions,
        options: diff::Options,
        applied: &mut Applied,
    ) -> Result<(), Problem> {
        self.controller.setup.metrics.planned(changes.changes.len());
        let mut read = self.current.read.clone();
        let mut result = self.result(changes);
        for (plan, mut status) in transitions.closing {
            if status.phase == PlanPhase::Applied {
                // The plan was executed by a process that ended before it could record that.
                status.applied_at = Some(ambient::now());
                status.applying_since = None;
                result.outcome = PlanOutcome::Applied;
                result.summary = status.change_summary.unwrap_or_default();
                result.plan = Some(plan.name_any());
                let count = usize::try_from(result.summary.total).unwrap_or_default();
                applied
                    .plan_events
                    .push(PlanEvent::Succeeded(plan.name_any(), count));
            }
            self.set(&plan.name_any(), &status).await?;
        }
        for plan in transitions.pruned {
            self.write.delete::<PostgresPolicyPlan>(plan.meta()).await?;
            read.plans.retain(|name| *name != plan.name_any());
        }
        let mut digest = self.current.digest.clone();
        match transitions.next {
            NextAction::InSync => {
                self.catch_up(&mut result);
                result.fingerprints = Some(self.passwords.fingerprints());
                // Restore a Secret that lost its verifier or label, unless the policy only observes.
                if self.wanted.mode.applies() {
                    self.write_secrets().await?;
                }
            }
            NextAction::Wait(plan, decision) => {
                let (name, mut status) = self.present(plan, changes, applied).await?;
                result.plan = Some(name.clone());
                result.outcome = if self.wanted.mode.applies() {
                    PlanOutcome::Waiting
                } else {
                    PlanOutcome::Observed
                };
                if let Some(decision) = decision {
                    self.note(&name, &mut status, &decision, applied).await?;
                }
            }
            NextAction::Rejected(plan, decision) => {
                let (name, mut status) = (plan.name_any(), plan.status.unwrap_or_default());
                result.plan = Some(name.clone());
                result.outcome = PlanOutcome::Rejected;
                self.note(&name, &mut status, &decision, applied).await?;
            }
            NextAction::Execute(plan, decision) => {
                let (name, status) = self.present_to_execute(plan, decision, changes, applied).await?;
                result.plan = Some(name.clone());
                digest = self.execute(&name, status, changes, options, applied).await?;
                result.sql = None;
                result.outcome = PlanOutcome::Applied;
                result.fingerprints = Some(self.passwords.fingerprints());
            }
        }
        if let Some(name) = &result.plan
            && !read.plans.contains(name)
        {
            read.plans.push(name.clone());
        }
        applied.result = Some(result);
        self.remember(digest, read);
        Ok(())
    }

    /// Reports a plan that was executed by a process that was killed before it updated the policy's status.
    fn catch_up(&self, result: &mut PassResult) {
        let reported = self.wanted.before.current_plan_ref.as_ref();
        let last = self.current.plans.iter().max_by_key(|plan| age(plan));
        if let Some(plan) = last
            && let Some(status) = &plan.status
            && status.phase == PlanPhase::Applied
            && reported.is_none_or(|reported| reported.name != plan.name_any())
        {
            result.outcome = PlanOutcome::Applied;
            result.summary = status.change_summary.unwrap_or_default();
            result.plan = Some(plan.name_any());
        }
    }

    fn result(&self, changes: &Changes) -> PassResult {
        let mut warnings = self.current.content.warnings.clone();
        warnings.extend(changes.warnings.iter().cloned());
        warnings.extend(self.current.warnings.iter().cloned());
        let blocked = changes
            .blockers
            .iter()
            .map(|line| format!("apply would refuse this plan: {line}"));
        warnings.extend(blocked);
        PassResult {
            summary: summary(&changes.summary()),
            sql: (!changes.is_empty()).then(|| truncated(&render::script(changes))),
            warnings,
            holdings: changes.holdings.clone(),
            plan: None,
            outcome: PlanOutcome::InSync,
            was_applied: applied_in(&self.current.plans, &self.current.identity.to_string()),
            fingerprints: None,
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
            applied.plan_events.push(PlanEvent::Created(name.clone()));
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
            decide(&mut status, &name, decision, ambient::now(), applied);
            // Send the event only for a plan that waited for approval; otherwise the result is enough.
            applied.plan_events.push(PlanEvent::Started(name.clone()));
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
        let (identity, now) = (self.current.identity.to_string(), ambient::now());
        let name = plan.as_ref().map(|plan| plan.name_any());
        let draft = draft(
            self.wanted,
            &self.current.content.desired,
            &identity,
            changes,
            (name, now),
            &self.current.plans,
        );
        let plan = if let Some(plan) = plan {
            // A process was killed after it wrote the object and before it wrote its status.
            *plan
        } else {
            let intent = Intent::new(&draft.plan, self.write.parent())?;
            self.write.apply(&intent).await?
        };
        if let Some(sql) = &draft.sql {
            // The plan owns it, not the policy.
            let intent = Intent::new(sql, &parent(&plan, self.write.parent()))?;
            // People approve what they read there, so a ConfigMap that somebody else has filled is not accepted.
            let stored = self.write.apply::<ConfigMap>(&intent).await;
            stored.map_err(|problem| problem.with_reason("PlanSqlStorageFailed"))?;
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
        decide(status, name, decision, ambient::now(), applied);
        if *status == before {
            return Ok(());
        }
        self.set(name, status).await
    }

    /// Remembers a converged or waiting policy, so that the next reconcile need not read everything.
    fn remember(&self, digest: InspectionDigest, read: Names) {
        let inputs = ConvergedInputs {
            uid: self.wanted.who.uid.clone(),
            generation: self.wanted.generation,
            requested: self.wanted.requested.clone(),
            target: self.current.database.clone(),
            identity: self.current.identity.clone(),
            needs: Arc::clone(&self.current.needs),
            digest,
            read,
        };
        self.controller.converged.remember(&self.wanted.who.key, inputs);
    }
}

/// The plan as the owner of its SQL.
fn parent(plan: &PostgresPolicyPlan, policy: &Parent) -> Parent {
    let uid = plan.uid().unwrap_or_default();
    Parent {
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
