//! Conditions of the components, from their Deployments, and their addresses.

use jiff::Timestamp;
use stanchion_api::supabase::{
    ComponentPhase, ComponentStatus, Endpoints, Options, SupabaseProjectStatus, condition,
};
use stanchion_kernel::children::Rollout;
use stanchion_kernel::condition::{Conditions, Truth};

use super::super::apply::Applied;
use super::super::observe::ChildrenView;
use super::super::render_inputs::RenderInputs;
use super::super::target::Wanted;
use crate::components::{self, ALL, Component};
use crate::database::Names;

/// The summary of all components.
pub(super) enum Overview {
    Ready,
    /// These are rolling out.
    Rolling(Vec<String>),
    /// These need more than waiting.
    Failed(Vec<String>),
}

impl Overview {
    pub(super) fn message(&self) -> String {
        match self {
            Self::Ready => "All components running".into(),
            Self::Rolling(which) => format!("waiting for {}", which.join(", ")),
            Self::Failed(which) => which.join("; "),
        }
    }
}

/// The observed state of one component.
struct Found<'a> {
    component: &'static Component,
    options: &'a Options,
    rollout: Option<&'a Rollout>,
    pod_problem: Option<String>,
    ready: bool,
}

/// Reports every component, and returns the summary.
pub(super) fn report(
    status: &mut SupabaseProjectStatus,
    conditions: &mut Conditions,
    wanted: &Wanted,
    view: &ChildrenView,
    applied: &Applied,
    now: Timestamp,
) -> Overview {
    let found: Vec<Found<'_>> = components::wanted(&wanted.spec)
        .map(|(component, options)| find(component, options, wanted, view, applied))
        .collect();
    for component in ALL {
        if !found.iter().any(|found| found.component.name == component.name) {
            conditions.clear(component.condition);
            status.components.remove(component.field);
        }
    }
    for found in &found {
        state(status, conditions, found, now);
    }
    let available = found.iter().all(|found| {
        found
            .rollout
            .is_some_and(|rollout| rollout.available > 0 || rollout.desired == 0)
    });
    let (reason, message) = if available {
        ("EndpointsAvailable", String::new())
    } else {
        ("EndpointsUnavailable", overview(&found).message())
    };
    conditions.set(condition::AVAILABLE, available.into(), reason, &message);
    overview(&found)
}

fn find<'a>(
    component: &'static Component,
    options: &'a Options,
    wanted: &Wanted,
    view: &'a ChildrenView,
    applied: &Applied,
) -> Found<'a> {
    let name = component.child_name(&wanted.name);
    let rollout = view.children.rollout(&name);
    // The rollout was read before this reconcile wrote the Deployment.
    let ready = rollout.is_some_and(Rollout::is_complete) && !applied.rolled.contains(&name);
    let said = view
        .pod_problems
        .iter()
        .find(|pod_problem| pod_problem.component == component.name)
        .map(|pod_problem| pod_problem.message.clone());
    let stuck = rollout.and_then(|rollout| rollout.stuck.clone());
    Found {
        component,
        options,
        rollout,
        pod_problem: said
            .or(stuck)
            .filter(|_| !ready && !applied.rolled.contains(&name)),
        ready,
    }
}

fn overview(found: &[Found<'_>]) -> Overview {
    let failed: Vec<String> = found
        .iter()
        .filter_map(|found| {
            Some(format!(
                "{}: {}",
                found.component.name,
                found.pod_problem.as_ref()?
            ))
        })
        .collect();
    if !failed.is_empty() {
        return Overview::Failed(failed);
    }
    let rolling: Vec<String> = found
        .iter()
        .filter(|found| !found.ready)
        .map(|found| found.component.name.to_owned())
        .collect();
    if rolling.is_empty() {
        Overview::Ready
    } else {
        Overview::Rolling(rolling)
    }
}

fn state(status: &mut SupabaseProjectStatus, conditions: &mut Conditions, found: &Found<'_>, now: Timestamp) {
    let before = status.components.get(found.component.field);
    let desired = found
        .rollout
        .map_or(i64::from(found.options.replicas), |rollout| rollout.desired);
    let ready = found.rollout.map_or(0, |rollout| rollout.ready);
    let was_up = before.is_some_and(|before| {
        matches!(
            before.phase,
            Some(ComponentPhase::Running | ComponentPhase::Updating | ComponentPhase::Stopped)
        )
    });
    let phase = match (found.ready, &found.pod_problem) {
        (true, _) if desired == 0 => ComponentPhase::Stopped,
        (true, _) => ComponentPhase::Running,
        (false, Some(_)) => ComponentPhase::Failed,
        (false, None) if was_up => ComponentPhase::Updating,
        (false, None) => ComponentPhase::Deploying,
    };
    let image = found.options.image.as_deref().unwrap_or(found.component.image);
    let mut new = ComponentStatus {
        phase: Some(phase),
        ready: found.ready,
        version: Some(image.to_owned()),
        replicas: i32::try_from(desired).unwrap_or(i32::MAX),
        ready_replicas: i32::try_from(ready).unwrap_or(i32::MAX),
        message: found.pod_problem.clone(),
        conditions: Vec::new(),
        last_update_time: before.and_then(|before| before.last_update_time),
    };
    if before != Some(&new) {
        new.last_update_time = Some(now);
    }
    status.components.insert(found.component.field.to_owned(), new);
    let message = format!("{ready} of {desired} pods are ready");
    match phase {
        ComponentPhase::Running => {
            conditions.set(
                found.component.condition,
                Truth::True,
                "DeploymentReady",
                &message,
            );
        }
        ComponentPhase::Stopped => {
            conditions.set(
                found.component.condition,
                Truth::True,
                "NoReplicasWanted",
                &message,
            );
        }
        ComponentPhase::Failed => {
            let why = found.pod_problem.as_deref().unwrap_or_default();
            conditions.set(found.component.condition, Truth::False, "DeploymentFailed", why);
        }
        ComponentPhase::Deploying | ComponentPhase::Updating => {
            conditions.set(
                found.component.condition,
                Truth::False,
                "DeploymentNotReady",
                &message,
            );
        }
    }
}

/// A warning if links in mails lead to an address that a browser cannot reach. Empty otherwise.
pub(super) fn url_warning(wanted: &Wanted, render_inputs: &RenderInputs) -> String {
    let names = Names::default();
    let project = render_inputs.project(wanted, &names);
    if wanted.secrets.smtp.is_none() || project.stated_url().is_some() {
        return String::new();
    }
    format!(
        "auth.smtpSecretRef is set, but no public URL: the links in mails lead to {}, which only pods reach; \
         set studio.publicUrl, ingress.host or gateway.hostnames",
        project.public_url()
    )
}

/// The addresses of a project. A component's address is its Service with the first port of its row.
pub(super) fn endpoints(wanted: &Wanted, render_inputs: &RenderInputs) -> Endpoints {
    let at = |field: &str| {
        let (component, _) = components::wanted(&wanted.spec).find(|(row, _)| row.field == field)?;
        let port = component.ports.iter().find(|port| port.service)?;
        Some(format!(
            "http://{}:{}",
            component.child_name(&wanted.name),
            port.number
        ))
    };
    Endpoints {
        api: Some(render_inputs.project(wanted, &Names::default()).public_url()),
        auth: at("auth"),
        realtime: at("realtime"),
        storage: at("storageApi"),
        rest: at("postgrest"),
    }
}
