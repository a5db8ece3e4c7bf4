//! Builds the object of a plan.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::core::ObjectMeta;
use sha2::{Digest, Sha256};
use stanchion_api::PostgresPolicyPlan;
use stanchion_api::policy::{
    ChangeSummary, Compression, DATABASE_LABEL, PLAN_LABEL, POLICY_LABEL, PlanRef, PostgresPolicyPlanSpec,
    PostgresPolicyPlanStatus, SqlRef, annotation,
};
use stanchion_roles::plan::{Plan, Summary};
use stanchion_roles::render;

use super::sql::KEY;
use super::{Storage, label, storage};
use crate::overlap::defined;
use crate::policy::target::Wanted;
use stanchion_roles::expand::Desired;

/// Lines of SQL in the preview.
const PREVIEW_LINES: usize = 5;
const PREVIEW_BYTES: usize = 1024;

/// A plan that is not written yet.
pub(crate) struct Draft {
    /// The object.
    pub plan: PostgresPolicyPlan,
    /// Its status before any decision.
    pub status: PostgresPolicyPlanStatus,
    /// The `ConfigMap` with its SQL, if that is long.
    pub sql: Option<ConfigMap>,
}

/// Builds a plan, under its existing name or a new one.
pub(crate) fn draft(
    wanted: &Wanted,
    desired: &Desired,
    identity: &str,
    plan: &Plan,
    (named, now): (Option<String>, Timestamp),
    others: &[PostgresPolicyPlan],
) -> Draft {
    let script = render::script(plan);
    let digest = plan.digest();
    let hash = format!("{:x}", Sha256::digest(&script));
    let name = named.unwrap_or_else(|| free(&name(&wanted.who.key.name, &digest, now), others));
    let mut object = PostgresPolicyPlan::new(
        &name,
        PostgresPolicyPlanSpec {
            policy_ref: PlanRef {
                name: wanted.who.key.name.clone(),
            },
            policy_generation: wanted.generation,
            reconciliation_mode: wanted.spec.reconciliation_mode,
            owned_roles: defined(desired).into_iter().map(str::to_owned).collect(),
            owned_schemas: desired.schemas.keys().cloned().collect(),
            managed_database_identity: identity.to_owned(),
        },
    );
    let policy = (POLICY_LABEL.to_owned(), label(&wanted.who.key.name));
    object.metadata.labels = Some(BTreeMap::from([
        policy.clone(),
        (DATABASE_LABEL.to_owned(), label(identity)),
    ]));
    let count = |number: usize| Some(i64::try_from(number).unwrap_or(i64::MAX));
    let mut status = PostgresPolicyPlanStatus {
        change_digest: Some(digest.clone()),
        change_summary: Some(summary(&plan.summary())),
        sql_statements: count(script.lines().filter(|line| line.ends_with(';')).count()),
        sql_original_bytes: count(script.len()),
        sql_hash: Some(digest.clone()),
        redacted_sql_hash: Some(hash.clone()),
        computed_at: Some(now),
        ..PostgresPolicyPlanStatus::default()
    };
    let mut sql = None;
    let stored = match storage(&script) {
        Storage::Inline(text) => {
            let stored = text.len();
            status.sql_inline = Some(text);
            stored
        }
        Storage::Truncated(text) => {
            let stored = text.len();
            status.sql_inline = Some(text);
            status.sql_truncated = true;
            stored
        }
        Storage::Compressed(bytes) => {
            let (stored, map_name) = (bytes.len(), format!("{name}-sql"));
            status.sql_ref = Some(SqlRef {
                name: map_name.clone(),
                key: KEY.into(),
                compression: Some(Compression::Gzip),
            });
            sql = Some(ConfigMap {
                metadata: ObjectMeta {
                    name: Some(map_name),
                    labels: Some(BTreeMap::from([policy, (PLAN_LABEL.to_owned(), label(&name))])),
                    ..ObjectMeta::default()
                },
                binary_data: Some(BTreeMap::from([(KEY.to_owned(), ByteString(bytes))])),
                // What was read before a decision is what was decided.
                immutable: Some(true),
                ..ConfigMap::default()
            });
            stored
        }
    };
    status.sql_stored_bytes = count(stored);
    object.metadata.annotations = Some(BTreeMap::from([
        (annotation::SQL_PREVIEW.to_owned(), preview(&script)),
        (annotation::SUMMARY.to_owned(), one_line(&plan.summary())),
        (annotation::SQL_HASH.to_owned(), digest),
        (annotation::REDACTED_SQL_HASH.to_owned(), hash),
        (
            annotation::SQL_ORIGINAL_BYTES.to_owned(),
            script.len().to_string(),
        ),
        (annotation::SQL_STORED_BYTES.to_owned(), stored.to_string()),
    ]));
    Draft {
        plan: object,
        status,
        sql,
    }
}

/// `{policy}-plan-{YYYYMMDD-HHMMSS}-{hash12}`, short enough for a second suffix.
fn name(policy: &str, digest: &str, now: Timestamp) -> String {
    let policy = policy.get(..policy.floor_char_boundary(200)).unwrap_or_default();
    let hash = digest
        .rsplit(':')
        .next()
        .and_then(|hash| hash.get(..12))
        .unwrap_or_default();
    format!(
        "{}-plan-{}-{hash}",
        policy.trim_end_matches(['-', '.']),
        now.strftime("%Y%m%d-%H%M%S")
    )
}

/// The name, or one with a number if another plan of the same second has it: a plan that exists cannot change.
fn free(name: &str, others: &[PostgresPolicyPlan]) -> String {
    let is_free = |name: &String| others.iter().all(|plan| plan.name_any() != *name);
    let numbered = (2..=others.len() + 1).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(is_free).unwrap_or_else(|| name.to_owned())
}

fn preview(script: &str) -> String {
    let lines: Vec<_> = script.lines().take(PREVIEW_LINES).collect();
    stanchion_kernel::text::shorten(&lines.join("\n"), PREVIEW_BYTES)
}

fn one_line(summary: &Summary) -> String {
    let parts: Vec<_> = summary
        .lines()
        .filter(|(_, count)| *count > 0)
        .map(|(label, count)| format!("{count} {label}"))
        .collect();
    parts.join(", ")
}

/// The engine's summary in the form of the status.
pub(crate) fn summary(summary: &Summary) -> ChangeSummary {
    let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    ChangeSummary {
        roles_created: count(summary.roles_created),
        roles_altered: count(summary.roles_altered + summary.comments_changed),
        roles_dropped: count(summary.roles_dropped),
        schemas_created: count(summary.schemas_created),
        schema_owners_altered: count(summary.schema_owners_altered),
        grants_added: count(summary.grants_added),
        grants_revoked: count(summary.grants_revoked),
        default_privileges_set: count(summary.default_privileges_set + summary.global_default_privileges_set),
        default_privileges_revoked: count(
            summary.default_privileges_revoked + summary.global_default_privileges_revoked,
        ),
        members_added: count(summary.members_added),
        members_options_changed: count(summary.members_options_changed),
        members_removed: count(summary.members_removed),
        passwords_set: count(summary.passwords_set),
        sessions_terminated: count(summary.sessions_terminated),
        total: count(summary.total()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_the_policy_the_moment_and_the_plan() {
        let now: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        let digest = "sha256:0123456789abcdef";
        assert_eq!(
            name("shop", digest, now),
            "shop-plan-20260102-030405-0123456789ab"
        );
        let long = name(&"a.".repeat(126), digest, now);
        assert!(long.len() + "-sql".len() <= 253 && !long.contains(".-"), "{long}");
    }

    #[test]
    fn two_plans_of_a_second_have_two_names() {
        let plans: Vec<PostgresPolicyPlan> = ["p", "p-2"]
            .map(|name| {
                serde_json::from_value(serde_json::json!({
                    "apiVersion": "pgroles.io/v1alpha1", "kind": "PostgresPolicyPlan", "metadata": { "name": name },
                    "spec": { "policyRef": { "name": "p" }, "policyGeneration": 1, "reconciliationMode": "authoritative",
                              "managedDatabaseIdentity": "1/2" },
                }))
                .unwrap()
            })
            .into();
        for (others, expected) in [(0, "p"), (1, "p-2"), (2, "p-3")] {
            assert_eq!(free("p", &plans[..others]), expected);
        }
    }

    #[test]
    fn a_preview_is_short() {
        assert_eq!(preview(&"SELECT 1;\n".repeat(100)).lines().count(), PREVIEW_LINES);
        assert!(preview(&"x".repeat(10_000)).len() <= PREVIEW_BYTES);
    }

    #[test]
    fn only_what_happens_is_in_the_summary() {
        let one = Summary {
            roles_created: 2,
            grants_added: 1,
            ..Summary::default()
        };
        let line = one_line(&one);
        assert!(line.contains("2 ") && !line.contains("0 "), "{line}");
        assert_eq!(summary(&one).total, 3);
    }
}
