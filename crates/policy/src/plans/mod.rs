//! The objects with which people read, approve and reject changes of a policy.
//!
//! | file | subject |
//! |---|---|
//! | `lifecycle` | what happens to each existing plan, and whether the current one is executed |
//! | `author` | who decided about a plan, by the authenticated name |
//! | `decision` | whether a plan was approved or rejected, and by whom |
//! | `object` | the plan's object |
//! | `sql` | where its SQL is stored |

mod author;
mod decision;
mod lifecycle;
mod object;
mod sql;

pub use author::webhooks;
#[cfg(test)]
pub(crate) use decision::Author;
pub(crate) use decision::Decision;
pub(crate) use lifecycle::{LifecycleInputs, NextAction, Transitions, transitions};
pub(crate) use object::{draft, summary};
pub(crate) use sql::{Storage, storage, truncated};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use sha2::{Digest, Sha256};
use stanchion_api::PostgresPolicyPlan;
use stanchion_api::policy::PlanPhase;

/// The order of creation. The API server records seconds; the policy's generation orders plans of the same second.
pub(crate) fn age(plan: &PostgresPolicyPlan) -> (Option<Time>, i64, String) {
    (
        plan.creation_timestamp(),
        plan.spec.policy_generation,
        plan.name_any(),
    )
}

/// Whether a plan has changed its database. One that is being applied may have done so already.
pub(crate) fn was_applied(plan: &PostgresPolicyPlan) -> bool {
    let phase = plan.status.as_ref().map(|status| status.phase);
    matches!(phase, Some(PlanPhase::Applied | PlanPhase::Applying))
}

/// Whether one of the plans has changed this database.
pub(crate) fn applied_in(plans: &[PostgresPolicyPlan], identity: &str) -> bool {
    let mut here = plans
        .iter()
        .filter(|plan| plan.spec.managed_database_identity == identity);
    here.any(was_applied)
}

/// A name as a label value, which has at most 63 characters of a small set.
pub(crate) fn label(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let edge = |c: char| c.is_ascii_alphanumeric();
    let fits =
        value.len() <= 63 && value.chars().all(plain) && value.starts_with(edge) && value.ends_with(edge);
    if fits {
        return value.to_owned();
    }
    let text: String = value
        .chars()
        .map(|c| if plain(c) { c } else { '-' })
        .take(50)
        .collect();
    let hash = format!("{:x}", Sha256::digest(value));
    format!(
        "x{}-{}",
        text.trim_start_matches(|c| !edge(c)),
        hash.get(..8).unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::label;

    #[test]
    fn any_name_becomes_a_label() {
        assert_eq!(label("app-user"), "app-user");
        for odd in ["", "-a-", "7411/16384", &"a".repeat(99), "ä b"] {
            let made = label(odd);
            assert!(
                made.len() <= 63 && made.is_ascii() && !made.contains('/'),
                "{odd} {made}"
            );
        }
        assert_ne!(label(&"a".repeat(99)), label(&"a".repeat(98)));
    }
}
