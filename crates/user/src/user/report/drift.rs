//! Reports drift, and whether it was corrected.

use jiff::Timestamp;
use stanchion_api::user::{DriftMode, DriftStatus, PostgresUserStatus, condition};
use stanchion_kernel::condition::{Conditions, Truth, find};

use super::UserOutcome;
use crate::user::observe::Current;
use crate::user::plan::{self, About, Change};
use crate::user::target::Wanted;

/// The reason of a condition that is not True because of drift.
pub(super) const DRIFTED: &str = "Drifted";
const CORRECTED: &str = "Corrected";

/// The drift.
pub(super) struct Drift {
    mode: DriftMode,
    /// Detected, and left.
    pub(super) left: Vec<Change>,
    /// Detected and corrected, in the terms of the spec.
    pub(super) corrected: Vec<String>,
    /// Databases that the role owns although the spec does not say so.
    owns: Vec<String>,
}

impl Drift {
    pub(super) fn of(wanted: &Wanted, current: &Current, outcome: &UserOutcome<'_>) -> Self {
        let left = if plan::is_left_alone(wanted, current) {
            plan::differences(wanted, current).unwrap_or_default()
        } else {
            Vec::new()
        };
        // Before the spec was applied there is no drift; and a new password is not drift.
        let drifting = wanted.before.converged && !current.passwords.is_moving();
        let corrected = if drifting {
            outcome.applied.changed.clone()
        } else {
            Vec::new()
        };
        Self {
            mode: wanted.drift,
            left,
            corrected,
            owns: owns(wanted, current),
        }
    }

    /// Whether the role itself is missing, and stays so.
    pub(super) fn is_role_gone(&self, current: &Current) -> bool {
        !self.left.is_empty() && current.catalog.role.is_none()
    }

    /// Whether something of this kind differs from the spec.
    pub(super) fn concerns(&self, about: About) -> bool {
        self.left.iter().any(|change| change.about == about)
    }

    pub(super) fn report(
        &self,
        status: &mut PostgresUserStatus,
        conditions: &mut Conditions,
        now: Timestamp,
    ) {
        let (truth, reason) = match (self.concerns(About::Privileges), self.mode) {
            (false, _) => (Truth::True, "Granted"),
            (true, DriftMode::Ignore) => (Truth::Unknown, "Ignored"),
            (true, _) => (Truth::False, DRIFTED),
        };
        let mut privileges = self.words(|change| change.about == About::Privileges);
        privileges.extend(self.owns.iter().map(|name| {
            format!("the role owns database {name}, which the spec does not say; ALTER DATABASE OWNER TO another role changes it")
        }));
        conditions.set(
            condition::PRIVILEGES_SYNCED,
            truth,
            reason,
            &privileges.join("; "),
        );
        self.drifted(status, conditions, now);
    }

    fn drifted(&self, status: &mut PostgresUserStatus, conditions: &mut Conditions, now: Timestamp) {
        if self.mode == DriftMode::Ignore {
            status.drift = None;
            let message = "drift detection is disabled (driftPolicy.mode: Ignore)";
            conditions.set(condition::DRIFTED, Truth::Unknown, "Ignored", message);
            return;
        }
        let left = self.words(|_| true);
        if !left.is_empty() {
            record(status, &left, now, true);
            let message = format!("changed by hand: {}", left.join("; "));
            conditions.set(condition::DRIFTED, Truth::True, "ChangedByHand", &message);
        } else if !self.corrected.is_empty() {
            record(status, &self.corrected, now, false);
            let message = format!("changed by hand and put right: {}", self.corrected.join("; "));
            conditions.set(condition::DRIFTED, Truth::False, CORRECTED, &message);
        } else {
            let last = find(&status.conditions, condition::DRIFTED);
            // The last correction stays in the status until the spec changes.
            let kept = last.filter(|last| {
                last.reason == CORRECTED && last.observed_generation == status.observed_generation
            });
            if let Some(message) = kept.map(|last| last.message.clone()) {
                conditions.set(condition::DRIFTED, Truth::False, CORRECTED, &message);
            } else {
                status.drift = None;
                conditions.set(condition::DRIFTED, Truth::False, "InSync", "");
            }
        }
    }

    fn words(&self, chosen: impl Fn(&Change) -> bool) -> Vec<String> {
        let chosen = self.left.iter().filter(|change| chosen(change));
        chosen.map(|change| change.what.clone()).collect()
    }
}

/// Ownership cannot be reverted: the previous owner of the database is unknown.
fn owns(wanted: &Wanted, current: &Current) -> Vec<String> {
    let asked = |name: &String| wanted.databases.get(name).is_some_and(|request| request.owner);
    let databases = current.catalog.databases.iter();
    databases
        .filter(|(name, facts)| facts.owner == wanted.username && !asked(name))
        .map(|(name, _)| name.clone())
        .collect()
}

/// `since` keeps the time when the same drift was first detected.
fn record(status: &mut PostgresUserStatus, detected: &[String], now: Timestamp, since: bool) {
    let before = status
        .drift
        .as_ref()
        .filter(|before| since && before.detected == detected);
    let found = before.and_then(|before| before.last_checked).unwrap_or(now);
    status.drift = Some(DriftStatus {
        last_checked: Some(found),
        detected: detected.to_vec(),
    });
}
