//! Reports of single cases, without a cluster.

use serde_json::json;
use stanchion_kernel::children::Rollout;
use stanchion_kernel::condition::find;
use stanchion_kernel::context::Parent;
use stanchion_kernel::{Class, Problem};

use super::super::apply::{Applied, Stage};
use super::super::children::Children;
use super::super::observe::{Basis, Observed};
use super::super::pods::PodProblem;
use super::super::validate::validate;
use super::*;
use crate::components::wanted;

/// A reconcile of a project that was converged before.
struct Pass {
    project: SupabaseProject,
    /// Deployments that are not complete.
    behind: Vec<&'static str>,
    pod_problems: Vec<PodProblem>,
    /// Children were repaired after the start.
    repaired: bool,
    applied: Applied,
    problem: Option<Problem>,
}

impl Pass {
    fn new() -> Self {
        let object = json!({
            "apiVersion": "supabase.strrl.dev/v1alpha1", "kind": "SupabaseProject",
            "metadata": { "name": "shop", "namespace": "ns", "generation": 1 },
            "spec": {
                "projectId": "shop",
                "database": { "secretRef": { "name": "db" } }, "storage": { "secretRef": { "name": "s3" } },
            },
        });
        Self {
            project: serde_json::from_value(object).unwrap(),
            behind: Vec::new(),
            pod_problems: Vec::new(),
            repaired: false,
            applied: Applied {
                stage: Stage::Done,
                ..Applied::default()
            },
            problem: None,
        }
    }

    /// A reconcile of a running project.
    fn over_running() -> Self {
        let mut pass = Self::new();
        let report = pass.report(second(0));
        pass.believe(report);
        pass
    }

    /// Uses the reported status as the input of the next reconcile.
    fn believe(&mut self, report: Report<SupabaseProjectStatus>) {
        self.project.status = Some(SupabaseProjectStatus {
            observed_generation: self.project.metadata.generation,
            ..report.status
        });
    }

    fn report(&self, now: Timestamp) -> Report<SupabaseProjectStatus> {
        let target = Box::new(validate(&self.project).unwrap());
        let rollouts = wanted(&self.project.spec).map(|(component, options)| {
            let desired = i64::from(options.replicas);
            let there = if self.behind.contains(&component.name) {
                0
            } else {
                desired
            };
            let rollout = Rollout {
                generation: 1,
                observed: 1,
                desired,
                replicas: there,
                updated: there,
                ready: there,
                available: there,
                stuck: None,
            };
            (component.child_name("shop"), rollout)
        });
        let view = ChildrenView {
            children: Children::rolled(rollouts),
            pod_problems: self.pod_problems.clone(),
            repaired: self.repaired,
            next: Duration::from_mins(2),
            retry_delay: Duration::from_mins(1),
            stalled: None,
        };
        let observed = Observed {
            parent: Parent::of(&self.project),
            basis: Basis::Unchanged,
            view,
            route: None,
        };
        let outcome = Outcome {
            target: Some(&target),
            observed: Some(&observed),
            applied: &self.applied,
            problem: self.problem.as_ref(),
            blocked: false,
        };
        report(&self.project, &outcome, now)
    }
}

fn second(number: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + number).unwrap()
}

/// A condition's status and reason; empty if it is missing.
fn said(report: &Report<SupabaseProjectStatus>, kind: &str) -> String {
    find(&report.status.conditions, kind)
        .map(|found| format!("{} {}", found.status, found.reason))
        .unwrap_or_default()
}

#[test]
fn running_is_said_once_and_stays_as_it_was_said() {
    let mut pass = Pass::new();
    let report = pass.report(second(0));
    assert_eq!(report.status.phase, Some(Phase::Running));
    assert_eq!(said(&report, "Ready"), "True AllComponentsReady");
    assert_eq!(said(&report, "Progressing"), "False ReconciliationComplete");
    assert_eq!(said(&report, "Degraded"), "False AllComponentsReady");
    let notes: Vec<_> = report.events.iter().map(|event| event.note.as_str()).collect();
    assert_eq!(notes, ["SupabaseProject is now Running"]);
    pass.believe(report);
    let again = pass.report(second(600));
    assert_eq!(Some(&again.status), pass.project.status.as_ref());
    assert_eq!(again.events, []);
}

/// After a start, other projects wait for their repair: the status follows when the pods do.
#[test]
fn a_repair_after_a_start_is_not_reported_at_once_and_is_no_loss() {
    let mut pass = Pass::over_running();
    pass.behind = vec!["auth"];
    pass.applied.repaired = true;
    let report = pass.report(second(1));
    assert_eq!(Some(&report.status), pass.project.status.as_ref());
    assert_eq!(report.events, []);
    assert_eq!(report.requeue_after, Some(Duration::from_mins(2)));

    pass.applied.repaired = false;
    pass.repaired = true;
    let report = pass.report(second(2));
    assert_eq!(said(&report, "Ready"), "False ComponentsNotReady");
    assert_eq!(said(&report, "Degraded"), "False AllComponentsReady");
    pass.repaired = false;
    let report = pass.report(second(2));
    assert_eq!(said(&report, "Degraded"), "True ComponentsNotReady");
}

/// A new spec is reported, also by the reconcile that repairs.
#[test]
fn a_repair_with_a_new_spec_is_reported() {
    let mut pass = Pass::over_running();
    pass.behind = vec!["auth"];
    pass.applied.repaired = true;
    pass.project.metadata.generation = Some(2);
    assert_eq!(said(&pass.report(second(1)), "Ready"), "False ComponentsNotReady");
}

#[test]
fn a_first_rollout_is_a_deployment_and_a_later_one_an_update() {
    let mut first = Pass::new();
    first.behind = vec!["auth", "storage"];
    let report = first.report(second(0));
    assert_eq!(report.status.phase, Some(Phase::DeployingComponents));
    assert_eq!(
        report.status.message.as_deref(),
        Some("waiting for auth, storage")
    );
    assert_eq!(said(&report, "Ready"), "False ComponentsNotReady");
    assert_eq!(said(&report, "Available"), "False EndpointsUnavailable");
    assert_eq!(said(&report, "AuthReady"), "False DeploymentNotReady");
    assert_eq!(said(&report, "KongReady"), "True DeploymentReady");
    assert_eq!(said(&report, "Degraded"), "", "it never was any better");

    let mut later = Pass::over_running();
    later.project.metadata.generation = Some(2);
    // The rollout was read before this reconcile wrote the Deployment.
    later.applied.rolled = vec!["shop-auth".into()];
    let report = later.report(second(60));
    assert_eq!(report.status.phase, Some(Phase::Updating));
    assert_eq!(report.status.message.as_deref(), Some("waiting for auth"));
    assert_eq!(said(&report, "Degraded"), "False AllComponentsReady");
}

#[test]
fn a_pod_that_is_lost_without_a_change_degrades() {
    let mut pass = Pass::over_running();
    pass.behind = vec!["meta"];
    let report = pass.report(second(60));
    assert_eq!(said(&report, "Degraded"), "True ComponentsNotReady");
    assert_eq!(said(&report, "Ready"), "False ComponentsNotReady");
}

#[test]
fn a_pod_that_cannot_run_is_reported_with_its_message() {
    let mut pass = Pass::over_running();
    pass.behind = vec!["auth"];
    let message = "pod shop-auth-1: CrashLoopBackOff: back-off".to_owned();
    pass.pod_problems = vec![PodProblem {
        component: "auth".into(),
        reason: "CrashLoopBackOff".into(),
        message: message.clone(),
    }];
    let report = pass.report(second(60));
    assert_eq!(report.status.phase, Some(Phase::Failed));
    assert_eq!(report.status.message, Some(format!("auth: {message}")));
    assert_eq!(said(&report, "Degraded"), "True ComponentFailed");
    assert_eq!(said(&report, "AuthReady"), "False DeploymentFailed");
    let auth = &report.status.components["auth"];
    assert_eq!(
        (auth.phase, auth.message.as_ref()),
        (Some(ComponentPhase::Failed), Some(&message))
    );
}

#[test]
fn zero_replicas_are_ready() {
    let mut pass = Pass::new();
    pass.project.spec.meta.options.replicas = 0;
    let report = pass.report(second(0));
    assert_eq!(report.status.phase, Some(Phase::Running));
    assert_eq!(said(&report, "MetaReady"), "True NoReplicasWanted");
    assert_eq!(
        report.status.components["meta"].phase,
        Some(ComponentPhase::Stopped)
    );
}

/// A rollout does not write the status for each pod; a failure is reported at once.
#[test]
fn a_rollout_is_not_reported_pod_by_pod() {
    let mut pass = Pass::new();
    pass.behind = vec!["auth", "meta", "studio"];
    let report = pass.report(second(0));
    pass.believe(report);
    pass.behind = vec!["studio"];
    let soon = pass.report(second(1));
    assert_eq!(Some(&soon.status), pass.project.status.as_ref());
    let later = pass.report(second(0) + STANDS);
    assert_eq!(later.status.message.as_deref(), Some("waiting for studio"));
    pass.pod_problems = vec![PodProblem {
        component: "studio".into(),
        reason: "ImagePullBackOff".into(),
        message: "no such image".into(),
    }];
    let failed = pass.report(second(1));
    assert_eq!(failed.status.phase, Some(Phase::Failed));
}

#[test]
fn a_failure_is_reported_with_its_step() {
    use Class::{Dependency, Human, Transient};
    for (stage, class, phase, message, reason, event) in [
        (
            Stage::Dependencies,
            Dependency,
            Phase::Failed,
            "Dependency validation failed: no luck",
            "DependencyValidationFailed",
            "ValidationFailed",
        ),
        (
            Stage::Dependencies,
            Transient,
            Phase::ValidatingDependencies,
            "Dependency validation failed: no luck",
            "DependencyValidationFailed",
            "ValidationFailed",
        ),
        (
            Stage::Secrets,
            Human,
            Phase::Failed,
            "Secret generation failed: no luck",
            "SecretGenerationFailed",
            "SecretsFailed",
        ),
        (
            Stage::Database,
            Transient,
            Phase::InitializingDatabase,
            "Database initialization failed: no luck",
            "DatabaseInitializationFailed",
            "DatabaseInitFailed",
        ),
        (
            Stage::Components,
            Human,
            Phase::Failed,
            "Component deployment failed: no luck",
            "ComponentDeploymentFailed",
            "DeploymentFailed",
        ),
    ] {
        let mut pass = Pass::new();
        pass.applied.stage = stage;
        pass.problem = Some(Problem::new(class, "BadLuck", "no luck".to_owned()));
        let report = pass.report(second(0));
        assert_eq!(report.status.phase, Some(phase), "{stage:?}");
        assert_eq!(report.status.message.as_deref(), Some(message), "{stage:?}");
        assert_eq!(said(&report, "Ready"), format!("False {reason}"), "{stage:?}");
        let events: Vec<_> = report.events.iter().map(|event| event.reason.as_str()).collect();
        assert_eq!(events, [event], "{stage:?}");
        // The same again is not reported.
        pass.believe(report);
        assert_eq!(pass.report(second(60)).events, [], "{stage:?}");
    }
}

#[test]
fn a_transient_failure_does_not_degrade_a_running_project() {
    let mut pass = Pass::over_running();
    pass.problem = Some(Problem::new(
        Class::Transient,
        "Throttled",
        "try again".to_owned(),
    ));
    let report = pass.report(second(60));
    assert_eq!(Some(&report.status), pass.project.status.as_ref());
    assert_eq!(report.events, []);
}

/// The view of the children is current, whatever else fails.
#[test]
fn components_are_reported_although_the_reconcile_fails() {
    for class in [Class::Transient, Class::Dependency] {
        let mut pass = Pass::over_running();
        pass.behind = vec!["postgrest"];
        pass.problem = Some(Problem::new(class, "BadLuck", "no luck".to_owned()));
        let report = pass.report(second(60));
        assert_eq!(
            said(&report, "PostgRESTReady"),
            "False DeploymentNotReady",
            "{class:?}"
        );
        assert_eq!(
            said(&report, "Available"),
            "False EndpointsUnavailable",
            "{class:?}"
        );
        assert!(said(&report, "Ready").starts_with("False"), "{class:?}");
        assert_eq!(said(&report, "KongReady"), "True DeploymentReady", "{class:?}");
    }
    // What was never deployed has no state.
    let mut pass = Pass::new();
    pass.problem = Some(Problem::dependency("BadLuck", "no luck"));
    assert_eq!(said(&pass.report(second(0)), "PostgRESTReady"), "");
}

#[test]
fn a_suspended_project_keeps_what_was_known() {
    let mut pass = Pass::over_running();
    pass.project.spec.suspend = true;
    let report = suspended(&pass.project, second(60));
    assert_eq!(report.status.phase, Some(Phase::Suspended));
    assert_eq!(said(&report, "KongReady"), "True DeploymentReady");
    assert_eq!(report.idle_reason, "Suspended");
}

/// The columns of `kubectl get` show `Ready`.
#[test]
fn a_project_that_was_suspended_from_the_beginning_says_so() {
    let mut pass = Pass::new();
    pass.project.spec.suspend = true;
    let report = suspended(&pass.project, second(0));
    assert_eq!(said(&report, "Ready"), "Unknown Suspended");
    pass.believe(report);
    let again = suspended(&pass.project, second(60));
    assert_eq!(Some(&again.status), pass.project.status.as_ref());
    let mut known = Pass::over_running();
    known.project.spec.suspend = true;
    let report = suspended(&known.project, second(60));
    assert_eq!(said(&report, "Ready"), "True AllComponentsReady");
}

#[test]
fn a_project_that_ran_is_updated_after_an_outage_and_a_suspension() {
    for interruption in [Phase::ValidatingDependencies, Phase::Failed, Phase::Suspended] {
        let mut pass = Pass::over_running();
        pass.project.status.as_mut().unwrap().phase = Some(interruption);
        pass.behind = vec!["auth"];
        let report = pass.report(second(60));
        assert_eq!(report.status.phase, Some(Phase::Updating), "{interruption:?}");
    }
}

#[test]
fn every_component_has_its_condition() {
    assert_eq!(CONDITIONS.first(), Some(&condition::READY));
    for component in ALL {
        let said = CONDITIONS.iter().filter(|known| **known == component.condition);
        assert_eq!(said.count(), 1, "{}", component.condition);
    }
}
