//! The checks of a plan, with their coverage and result.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::Subject;
use crate::plan::{Change, Check};

/// The result of one check.
#[derive(Debug, Serialize)]
pub(super) struct Evidence {
    check: Check,
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    actor_role: Option<String>,
    issue_count: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    issues: Vec<Issue>,
    coverage: Coverage,
}

/// `Unknown` promises nothing: the check found nothing in what it covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Passed,
    Failed,
    NotRun,
    Unknown,
}

#[derive(Debug, Serialize)]
struct Issue {
    code: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<String>,
}

#[derive(Debug, Serialize)]
struct Coverage {
    kind: &'static str,
    checks_performed: Vec<&'static str>,
    checked_change_indices: Vec<usize>,
    unchecked_change_indices: Vec<usize>,
}

impl Coverage {
    /// The changes that a check covers; `looks` names the subject of each.
    fn of(changes: &[Change], looks: impl Fn(&Change) -> Option<&'static str>) -> Self {
        let mut coverage = Self {
            kind: "targeted",
            checks_performed: vec![],
            checked_change_indices: vec![],
            unchecked_change_indices: vec![],
        };
        for (index, change) in changes.iter().enumerate() {
            if let Some(what) = looks(change) {
                coverage.checks_performed.push(what);
                coverage.checked_change_indices.push(index);
            } else {
                coverage.unchecked_change_indices.push(index);
            }
        }
        coverage.checks_performed.sort_unstable();
        coverage.checks_performed.dedup();
        coverage
    }
}

/// Every check and its result.
pub(super) fn preflight(subject: &Subject<'_>) -> Vec<Evidence> {
    let changes = &subject.plan.changes;
    let inspector = &subject.server.user;
    // A superuser may do everything, so nothing is looked up.
    let authority = Coverage::of(changes, |change| match change {
        _ if subject.server.superuser => None,
        Change::Grant(_) => Some("grantor_reachability"),
        Change::Revoke(_) => Some("revoke_acl_ownership"),
        Change::SetDefaultPrivilege(_) | Change::RevokeDefaultPrivilege(_) => Some("default_privilege_owner"),
        _ => None,
    });
    let drops = Coverage::of(changes, |change| {
        matches!(change, Change::DropRole { .. }).then_some("drop_role_safety")
    });
    let dropped = if drops.checked_change_indices.is_empty() {
        Status::Unknown
    } else {
        Status::Passed
    };
    let transfers = Coverage {
        kind: "complete",
        checks_performed: vec!["schema_owner_transfer"],
        ..Coverage::of(changes, |_| Some("schema_owner_transfer"))
    };
    let nothing = || Coverage::of(changes, |_| None);
    let mut all = vec![
        evidence(
            subject,
            Check::ExecutorAuthority,
            Status::Unknown,
            Some(inspector),
            authority,
        ),
        evidence(subject, Check::RoleDropSafety, dropped, None, drops),
        evidence(
            subject,
            Check::SchemaOwnerTransfer,
            Status::Passed,
            None,
            transfers,
        ),
        evidence(
            subject,
            Check::ServerCompatibility,
            Status::Unknown,
            None,
            nothing(),
        ),
    ];
    all.extend(
        subject
            .executor
            .filter(|executor| executor != inspector)
            .map(|executor| Evidence {
                check: Check::ExecutorAuthority,
                status: Status::NotRun,
                actor_role: Some(executor.to_owned()),
                issue_count: 0,
                issues: vec![],
                coverage: nothing(),
            }),
    );
    all
}

fn evidence(
    subject: &Subject<'_>,
    check: Check,
    otherwise: Status,
    actor: Option<&String>,
    coverage: Coverage,
) -> Evidence {
    let issues: Vec<_> = subject
        .plan
        .blockers
        .iter()
        .filter(|blocker| blocker.check == check)
        .map(|blocker| Issue {
            code: blocker.code,
            message: blocker.message.clone(),
            role: blocker.role.clone(),
        })
        .collect();
    Evidence {
        check,
        status: if issues.is_empty() {
            otherwise
        } else {
            Status::Failed
        },
        actor_role: actor.cloned(),
        issue_count: issues.len(),
        issues,
        coverage,
    }
}

/// Default privileges of owners whose relation to the executor is unknown.
pub(super) fn findings(subject: &Subject<'_>) -> Vec<Value> {
    let Some(executor) = subject.executor.filter(|name| *name != subject.server.user) else {
        return vec![];
    };
    let mut owners: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, change) in subject.plan.changes.iter().enumerate() {
        if let Change::SetDefaultPrivilege(default) | Change::RevokeDefaultPrivilege(default) = change {
            owners.entry(&default.owner).or_default().push(index);
        }
    }
    let finding = |(owner, indices): (&str, Vec<usize>)| {
        json!({
            "kind": "required_role_reachability_unknown",
            "severity": "warning",
            "change_indices": indices,
            "role": owner,
            "message": format!(
                "\"{executor}\" must be a member of \"{owner}\" to change its default privileges; \"{}\", which \
                 inspected the database, cannot see whether it is",
                subject.server.user
            ),
        })
    };
    owners.into_iter().map(finding).collect()
}
