//! The five steps of the toy controller.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt as _;
use serde_json::json;
use stanchion_kernel::apply::{Intent, Takeover, decide};
use stanchion_kernel::condition::{Conditions, Truth};
use stanchion_kernel::context::Parent;
use stanchion_kernel::events::{Severity, TransitionEvent};
use stanchion_kernel::rbac::{self, Rule};
use stanchion_kernel::watch::Watch;
use stanchion_kernel::{Outcome, Problem, Reader, Reconciler, Report, Writer};

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

/// A widget, or its removal.
pub struct Target {
    name: String,
    spec: Option<WidgetSpec>,
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
    changes: bool,
    child: Option<Intent>,
    boom: bool,
}

impl Target {
    fn of(object: &Widget, spec: Option<WidgetSpec>) -> Self {
        Self {
            name: object.name_any(),
            spec,
            managed_fields: !object.managed_fields().is_empty(),
        }
    }

    fn boom(&self) -> Option<Boom> {
        self.spec.as_ref()?.boom
    }
}

impl Reconciler for WidgetController {
    type Object = Widget;
    type Target = Target;
    type Observed = Observed;
    type Plan = Plan;
    type Applied = ();

    const NAME: &'static str = "toy";
    const FINALIZER: Option<&'static str> = Some(FINALIZER);
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

    fn validate(object: &Widget) -> Result<Target, Problem> {
        assert_ne!(object.spec.boom, Some(Boom::Validate), "boom in validate");
        if object.spec.size == 0 {
            return Err(Problem::permanent("InvalidSize", "size must be at least 1"));
        }
        Ok(Target::of(object, Some(object.spec.clone())))
    }

    fn cleanup_target(object: &Widget) -> Target {
        Target::of(object, None)
    }

    async fn observe(&self, read: &Reader, target: &Target) -> Result<Observed, Problem> {
        let _inside = self.world.enter(&target.name);
        if target.managed_fields {
            self.world.saw_managed_fields();
        }
        assert_ne!(target.boom(), Some(Boom::Observe), "boom in observe");
        self.world.check(&target.name)?;
        if target.spec.is_none() {
            self.world.check_removal(&target.name)?;
        }
        let child = read.get(&target.name).await?;
        let password = match target.spec.as_ref().and_then(|spec| spec.secret_ref.as_ref()) {
            Some(name) => Some(password(read, name).await?),
            None => None,
        };
        self.world.pause(&target.name).await;
        Ok(Observed {
            parent: read.parent().clone(),
            password,
            child,
            thing: self.world.thing(&target.name),
        })
    }

    fn plan(target: &Target, observed: &Observed) -> Result<Plan, Problem> {
        assert_ne!(target.boom(), Some(Boom::Plan), "boom in plan");
        let wanted = target.spec.as_ref().map(|spec| Thing {
            size: spec.size,
            password: observed.password.clone(),
        });
        let mut plan = Plan {
            boom: target.boom() == Some(Boom::Apply),
            changes: wanted != observed.thing,
            thing: wanted,
            child: None,
        };
        if let Some(spec) = &target.spec {
            let child = json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": { "name": target.name },
                "data": { "size": spec.size.to_string() },
                "immutable": spec.frozen.then_some(true),
            });
            let intent = Intent::new(&child, &observed.parent)?;
            plan.child = decide(
                intent,
                observed.child.as_ref(),
                &observed.parent,
                Takeover::Refuse,
            )?;
        }
        Ok(plan)
    }

    async fn apply(
        &self,
        write: &Writer,
        target: &Target,
        _: &Observed,
        plan: Plan,
        (): &mut (),
    ) -> Result<(), Problem> {
        if plan.changes {
            write.may_write()?;
            self.world.put(&target.name, plan.thing);
        }
        assert!(!plan.boom, "boom in apply");
        if let Some(intent) = plan.child {
            write.apply::<ConfigMap>(&intent).await?;
        }
        Ok(())
    }

    fn report(object: &Widget, outcome: &Outcome<'_, Self>, now: Timestamp) -> Report<WidgetStatus> {
        assert_ne!(object.spec.boom, Some(Boom::Report), "boom in report");
        let mut status = object.status.clone().unwrap_or_default();
        status.legacy = None;
        let mut conditions = Conditions::new(&status.conditions, object.metadata.generation, now);
        if let Some(problem) = outcome.problem {
            conditions.set(CONDITION, Truth::False, problem.reason, &problem.message);
        } else {
            status.size = Some(object.spec.size);
            conditions.set(CONDITION, Truth::True, "Ready", "the thing is there");
        }
        status.conditions = conditions.finish();
        Report {
            requeue_after: object.spec.interval.map(Duration::from_secs),
            ..Report::new(status)
        }
    }
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
