//! An instance has no changes to apply.

use stanchion_kernel::Problem;

use super::plan::Plan;

/// Applies the plan.
pub fn apply(plan: &Plan) -> Result<(), Problem> {
    match plan {
        Plan::Nothing => Ok(()),
    }
}
