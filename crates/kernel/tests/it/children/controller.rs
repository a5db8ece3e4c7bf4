//! A controller with a child cache: as many `ConfigMap`s as a widget's size, and a Deployment.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use serde_json::{Value, json};
use stanchion_kernel::apply::{Intent, ObjectChange, Takeover, Written};
use stanchion_kernel::children::{ChildKinds, Children, Rollout};
use stanchion_kernel::condition::{Conditions, Truth};
use stanchion_kernel::context::Parent;
use stanchion_kernel::events::TransitionEvent;
use stanchion_kernel::rbac::Rule;
use stanchion_kernel::watch::Watch;
use stanchion_kernel::{Done, Inputs, NoCleanup, Outcome, Problem, Reader, Reconciler, Report, Writer};

use crate::test_env::{Widget, WidgetStatus};

/// The controller, with or without adoption of objects without a controller.
pub(crate) struct ManyChildren(pub(crate) Takeover);

pub(crate) struct Target {
    name: String,
    size: u32,
}

pub(crate) struct Observed {
    parent: Parent,
    takeover: Takeover,
    children: Children,
}

/// With a quantity that the API server writes in another form, and a port whose key it completes.
fn deployment(name: &str) -> Value {
    let labels = json!({ "app": name });
    let container = json!({
        "name": "only", "image": "an-image", "ports": [{ "containerPort": 80 }],
        "resources": { "limits": { "cpu": "1000m", "memory": "1024Mi" } },
    });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": [container] } },
        },
    })
}

fn map(target: &Target, number: u32) -> Value {
    let name = format!("{}-{number}", target.name);
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "of": target.name } })
}

impl Reconciler for ManyChildren {
    type Object = Widget;
    type Target = Target;
    type Observed = Observed;
    type Plan = Vec<ObjectChange>;
    type Applied = Written;
    type Cleanup = NoCleanup<Self>;

    const NAME: &'static str = "brood";
    const CONDITIONS: &'static [&'static str] = &["Ready"];
    const TRANSITION_EVENTS: &'static [TransitionEvent] = &[];

    fn watches() -> Vec<Watch> {
        Vec::new()
    }

    fn child_kinds() -> ChildKinds {
        ChildKinds::default().with::<ConfigMap>().with::<Deployment>()
    }

    fn rules() -> Vec<Rule> {
        Vec::new()
    }

    fn validate(object: &Widget) -> Result<Target, Problem> {
        Ok(Target {
            name: object.name_any(),
            size: object.spec.size,
        })
    }

    async fn observe(&self, read: &Reader, _target: &Target) -> Result<Observed, Problem> {
        Ok(Observed {
            parent: read.parent().clone(),
            takeover: self.0,
            children: read.all_children(),
        })
    }

    fn plan(target: &Target, observed: &Observed, _: &mut Inputs<'_>) -> Result<Vec<ObjectChange>, Problem> {
        let maps = (0..target.size).map(|number| map(target, number));
        let objects = maps.chain([deployment(&target.name)]);
        let intents = objects
            .map(|object| Intent::new(&object, &observed.parent))
            .collect::<Result<Vec<_>, Problem>>()?;
        observed.children.changes(&intents, observed.takeover)
    }

    async fn apply(
        &self,
        write: &Writer,
        _target: &Target,
        _observed: &Observed,
        plan: Vec<ObjectChange>,
        written: &mut Written,
    ) -> Result<Done, Problem> {
        write.apply_all(plan, written).await?;
        Ok(Done::Complete)
    }

    fn report(object: &Widget, outcome: &Outcome<'_, Self>, now: Timestamp) -> Report<WidgetStatus> {
        let mut status = object.status.clone().unwrap_or_default();
        let complete = outcome.observed.is_some_and(|observed| {
            let rollouts = observed.children.rollouts();
            let is_complete =
                |(name, rollout): &(_, Rollout)| *name == object.name_any() && rollout.is_complete();
            rollouts.iter().any(is_complete)
        });
        let mut conditions = Conditions::new(&status.conditions, object.metadata.generation, now);
        match outcome.problem {
            Some(problem) => conditions.set("Ready", Truth::False, problem.reason, &problem.message),
            None if complete => conditions.set("Ready", Truth::True, "Complete", ""),
            None => conditions.set("Ready", Truth::False, "Rolling", ""),
        }
        status.conditions = conditions.finish();
        Report::new(status)
    }
}
