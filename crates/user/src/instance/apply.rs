//! An instance has no changes to apply.

use stanchion_kernel::Done;

use super::plan::Plan;

/// Applies no change.
pub(super) fn apply(Plan: Plan) -> Done {
    Done::Complete
}
