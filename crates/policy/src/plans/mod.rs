//! The objects by which people see, approve and reject what a policy does.
//!
//! | file | question |
//! |---|---|
//! | `course` | given the plans that there are, what happens to each, and is the present one carried out? |
//! | `decision` | has somebody approved or rejected a plan, and who? |
//! | `object` | what does a plan look like? |
//! | `sql` | where does its SQL go? |

mod course;
mod decision;
mod object;
mod sql;

pub use course::{Course, Next, Question, course};
pub use decision::{Decision, decision};
pub use object::{Draft, draft, summary};
pub use sql::{Storage, storage, truncated};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use sha2::{Digest, Sha256};
use stanchion_api::PostgresPolicyPlan;

/// The order in which plans were made. The API server tells the second, and the policy's generation tells two of the
/// same second apart.
pub fn age(plan: &PostgresPolicyPlan) -> (Option<Time>, i64, String) {
    (
        plan.creation_timestamp(),
        plan.spec.policy_generation,
        plan.name_any(),
    )
}

/// A name as the value of a label, which has 63 characters and few of them to choose from.
pub fn label(value: &str) -> String {
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
