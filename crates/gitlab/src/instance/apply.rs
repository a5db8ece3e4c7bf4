//! Applies the plan. Every write is idempotent; the process can be killed between any two.

use kube::core::DynamicObject;
use stanchion_kernel::apply::Written;
use stanchion_kernel::{Done, Problem, Writer};

use super::plan::Plan;
use super::prerequisites::Blocker;
use crate::flux::HELM_RELEASE;

/// The result of the apply step.
#[derive(Default)]
pub struct Applied {
    /// The written objects, so that the next pass need not read them again.
    pub written: Written,
    /// Whether the Secrets of the buckets are up to date.
    pub storage_resolved: bool,
}

impl Applied {
    /// The release, if it was written.
    pub fn release(&self) -> Option<&DynamicObject> {
        self.written.objects(HELM_RELEASE.kind).last()
    }
}

pub(crate) async fn apply(write: &Writer, plan: Plan, applied: &mut Applied) -> Result<Done, Problem> {
    applied.storage_resolved = plan.storage_resolved;
    write.apply_all(plan.changes, &mut applied.written).await?;
    Ok(Blocker::done(plan.blocker.as_ref()))
}
