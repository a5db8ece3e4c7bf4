//! The two paths of the toy controller.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt as _;
use serde_json::json;
use stanchion_kernel::apply::{Intent, ObjectChange, Takeover, Written, decide};
use stanchion_kernel::condition::{Conditions, Truth};
use stanchion_kernel::context::Parent;
use stanchion_kernel::events::{Severity, TransitionEvent};
use stanchion_kernel::rbac::{self, Rule};
use stanchion_kernel::watch::Watch;
use stanchion_kernel::watch::dependencies::Key;
use stanchion_kernel::{
    Cleanup, CleanupOutcome, Done, Inactive, Inputs, Outcome, Problem, Reader, Reconciler, Report, Writer,
};

use crate::{Boom, Thing, Widget, WidgetSpec, WidgetStatus, World};

/// The finalizer for the thing in the world.
pub const FINALIZER: &str = "test.stanchion.dev/world";
/// The annotation that the toy honours.
pub const POKE: &str = "test.stanchion.dev/poke";
const CONDITION: &str = "Ready";

/// The controller.
pub struct WidgetController {
    /// The state outside of the cluster.
    pub world: World,
}

/// A valid widget.
pub struct Target {
    name: String,
    spec: WidgetSpec,
    /// Whether the pass was given an object with managedFields.
    managed_fields: bool,
}

/// What was read.
pub struct Observed {
    parent: Parent,
    password: Option<String>,
    child: Option<ConfigMap>,
    thing: Option<Thing>,
}

/// What is to be done.
pub struct Plan {
    /// The desired thing, if it differs from the current one.
    thing: Option<Thing>,
    child: Option<ObjectChange>,
    boom: bool,
}

impl Reconciler for WidgetController {
    type Object = Widget;
    type Target = Target;
    type Observed = Observed;
    type Plan = Plan;
    type Applied = Written;
    type Cleanup = WidgetCleanup;

    const NAME: &'static str = "toy";
    const ANNOTATIONS: &'static [&'static str] = &[POKE];
    const CONDITIONS: &'static [&'static str] = &[CONDITION];
    const TRANSITION_EVENTS: &'static [TransitionEvent] = &[
        TransitionEvent {
            condition: CONDITION,
            status: "True",
            kind: Severity::Normal,
            action: "Reconcile",
        },
        TransitionEvent {
            condition: CONDITION,
            status: "False",
            kind: Severity::Warning,
            action: "Reconcile",
        },
    ];

    fn watches() -> Vec<Watch> {
        vec![Watch::owned::<ConfigMap>(), Watch::referred::<Secret>()]
    }

    fn lane(object: &Widget) -> Option<String> {
        let name = object.name_any();
        name.split_once('.').map(|(lane, _)| lane.to_owned())
    }

    fn rules() -> Vec<Rule> {
        vec![
            Rule::new("", &["configmaps"], rbac::OWN),
            Rule::new("", &["secrets"], rbac::READ),
        ]
    }

    async fn external_events(&self) -> Vec<Key> {
        self.world.next_signal().await
    }

    fn is_suspended(object: &Widget) -> bool {
        object.spec.suspend
    }

    fn validate(object: &Widget) -> Result<Target, Problem> {
        assert_ne!(object.spec.boom, Some(Boom::Validate), "boom in validate");
        if object.spec.size == 0 {
            return Err(Problem::permanent("InvalidSize", "size must be at least 1"));
        }
        Ok(Target {
            name: object.name_any(),
            spec: object.spec.clone(),
            managed_fields: !object.managed_fields().is_empty(),
        })
    }

    async fn observe(&self, read: &Reader, target: &Target) -> Result<Observed, Problem> {
        let Target { name, spec, .. } = target;
        let _inside = self.world.enter(name);
        if target.managed_fields {
            self.world.saw_managed_fields();
        }
        assert_ne!(spec.boom, Some(Boom::Observe), "boom in observe");
        self.world.check(name)?;
        let child = read.get(name).await?;
        let password = match &spec.secret_ref {
            Some(name) => Some(password(read, name).await?),
            None => None,
        };
        self.world.pause(name).await;
        Ok(Observed {
            parent: read.parent().clone(),
            password,
            child,
            thing: self.world.thing(name),
        })
    }

    fn plan(target: &Target, observed: &Observed, _: &mut Inputs<'_>) -> Result<Plan, Problem> {
        let Target { name, spec, .. } = target;
        assert_ne!(spec.boom, Some(Boom::Plan), "boom in plan");
        let wanted = Thing {
            size: spec.size,
            password: observed.password.clone(),
        };
        let child = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "name": name },
            "data": { "size": spec.size.to_string() },
            "immutable": spec.frozen.then_some(true),
        });
        let parent = &observed.parent;
        let intent = Intent::new(&child, parent)?;
        Ok(Plan {
            thing: Some(wanted).filter(|wanted| observed.thing.as_ref() != Some(wanted)),
            child: decide(intent, observed.child.as_ref(), parent, Takeover::Refuse)?
                .map(ObjectChange::Apply),
            boom: spec.boom == Some(Boom::Apply),
        })
    }

    async fn apply(
        &self,
        write: &Writer,
        target: &Target,
        _: &Observed,
        plan: Plan,
        written: &mut Written,
    ) -> Result<Done, Problem> {
        if plan.thing.is_some() {
            write.may_write()?;
            self.world.put(&target.name, plan.thing);
        }
        assert!(!plan.boom, "boom in apply");
        write.apply_all(plan.child, written).await?;
        Ok(self
            .world
            .blocker(&target.name)
            .map_or(Done::Complete, Done::Blocked))
    }

    async fn inactive(
        &self,
        _: &Reader,
        _: &Writer,
        object: &Widget,
        why: Inactive<'_>,
    ) -> Result<(), Problem> {
        self.world.inactive(&object.name_any(), why)
    }

    fn report(object: &Widget, outcome: &Outcome<'_, Self>, now: Timestamp) -> Report<WidgetStatus> {
        assert_ne!(object.spec.boom, Some(Boom::Report), "boom in report");
        Report {
            requeue_after: object.spec.interval.map(Duration::from_secs),
            ..Report::new(status_of(object, outcome.problem, now))
        }
    }

    fn report_suspended(object: &Widget, now: Timestamp) -> Report<WidgetStatus> {
        let mut status = object.status.clone().unwrap_or_default();
        let mut conditions = Conditions::new(&status.conditions, object.metadata.generation, now);
        conditions.set(CONDITION, Truth::False, "Suspended", "nothing is touched");
        status.conditions = conditions.finish();
        Report {
            idle_reason: "Suspended",
            ..Report::new(status)
        }
    }
}

/// Removes the thing of a deleted widget; its child is garbage-collected.
pub struct WidgetCleanup;

/// A widget that is being deleted.
pub struct CleanupTarget {
    name: String,
    managed_fields: bool,
}

/// The thing in the world, if it is still there.
pub struct CleanupState {
    thing: Option<Thing>,
}

/// Whether to remove the thing.
pub struct CleanupPlan {
    remove: bool,
}

impl Cleanup for WidgetCleanup {
    type Controller = WidgetController;
    type Target = CleanupTarget;
    type Observed = CleanupState;
    type Plan = CleanupPlan;
    type Applied = ();

    const FINALIZER: Option<&'static str> = Some(FINALIZER);

    fn target(object: &Widget) -> CleanupTarget {
        CleanupTarget {
            name: object.name_any(),
            managed_fields: !object.managed_fields().is_empty(),
        }
    }

    async fn observe(
        controller: &WidgetController,
        read: &Reader,
        target: &CleanupTarget,
    ) -> Result<CleanupState, Problem> {
        let (world, name) = (&controller.world, &target.name);
        let _inside = world.enter(name);
        if target.managed_fields {
            world.saw_managed_fields();
        }
        world.check(name)?;
        world.check_removal(name)?;
        // The child wakes its widget until the end.
        read.get::<ConfigMap>(name).await?;
        world.pause(name).await;
        Ok(CleanupState {
            thing: world.thing(name),
        })
    }

    fn plan(_: &CleanupTarget, observed: &CleanupState, _: &mut Inputs<'_>) -> Result<CleanupPlan, Problem> {
        Ok(CleanupPlan {
            remove: observed.thing.is_some(),
        })
    }

    async fn apply(
        controller: &WidgetController,
        write: &Writer,
        target: &CleanupTarget,
        _: &CleanupState,
        plan: CleanupPlan,
        (): &mut (),
    ) -> Result<Done, Problem> {
        if plan.remove {
            write.may_write()?;
            controller.world.put(&target.name, None);
        }
        Ok(Done::Complete)
    }

    fn report(object: &Widget, outcome: &CleanupOutcome<'_, Self>, now: Timestamp) -> Report<WidgetStatus> {
        assert_ne!(object.spec.boom, Some(Boom::Report), "boom in report");
        Report::new(status_of(object, outcome.problem, now))
    }
}

/// The status after a pass with this problem, or without one.
fn status_of(object: &Widget, problem: Option<&Problem>, now: Timestamp) -> WidgetStatus {
    let mut status = object.status.clone().unwrap_or_default();
    status.legacy = None;
    let mut conditions = Conditions::new(&status.conditions, object.metadata.generation, now);
    if let Some(problem) = problem {
        conditions.set(CONDITION, Truth::False, problem.reason, &problem.message);
    } else {
        status.size = Some(object.spec.size);
        conditions.set(CONDITION, Truth::True, "Ready", "the thing is there");
    }
    status.conditions = conditions.finish();
    status
}

async fn password(read: &Reader, name: &str) -> Result<String, Problem> {
    let missing = || Problem::dependency("SecretMissing", format!("Secret {name} has no password"));
    let secret: Secret = read.get(name).await?.ok_or_else(missing)?;
    let value = secret
        .data
        .unwrap_or_default()
        .remove("password")
        .ok_or_else(missing)?;
    Ok(String::from_utf8_lossy(&value.0).into_owned())
}
