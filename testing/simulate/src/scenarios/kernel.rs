//! The kernel by itself: the toy controller, whose world is a model in memory.

mod prompt;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use rand::Rng as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use serde_json::{Value, json};
use stanchion_kernel::Scope;
use stanchion_kernel::driver::Operator;
use stanchion_kernel::problem::Class;
use stanchion_toy::{POKE, WidgetController, World, crd};

use super::{CONFIG_MAP, SECRET};
use crate::properties::Violation;
use crate::scenario::{CANARY, Kind, Operation, Scenario, Seat};

const WIDGET: Kind = Kind {
    api_version: "test.stanchion.dev/v1",
    kind: "Widget",
    plural: "widgets",
};
const SECRETS: [&str; 2] = ["one", "two"];
/// How the world fails a widget that lives. What is permanent does not come and go then: only another spec would help.
const CLASSES: [Class; 3] = [Class::Transient, Class::Dependency, Class::Human];

/// The scenario of the kernel.
pub struct Kernel {
    world: World,
    /// Nothing outside breaks any more.
    healed: AtomicBool,
}

impl Scenario for Kernel {
    const NAME: &'static str = "kernel";
    const SCHEDULES: u64 = 1000;
    const PRIMARY: &'static [Kind] = &[WIDGET];
    const OTHERS: &'static [Kind] = &[CONFIG_MAP, SECRET];

    fn definitions() -> Vec<CustomResourceDefinition> {
        vec![crd()]
    }

    fn operations(random: &mut StdRng) -> Vec<(Duration, Operation)> {
        let names: Vec<String> = (0..random.random_range(1..=5)).map(name_of).collect();
        let length = random.random_range(10_000..240_000);
        let mut operations: Vec<(Duration, Operation)> = SECRETS
            .iter()
            .map(|name| (Duration::ZERO, Operation::Apply(SECRET, secret(name, random))))
            .collect();
        for _ in 0..random.random_range(3..=25) {
            let at = Duration::from_millis(random.random_range(0..length));
            let name = names.choose(random).expect("a name");
            operations.push((at, anything(name, random)));
        }
        // What is true at the end: of each widget, and that nothing outside fails any more.
        let end = Duration::from_millis(length);
        operations.extend(SECRETS.map(|name| (end, Operation::Apply(SECRET, secret(name, random)))));
        for name in &names {
            let last = match random.random_range(0..10) {
                0 | 1 => Operation::Delete(WIDGET, name.clone()),
                2 => widget(name, &json!({ "size": unreadable(random) })),
                3 => widget(name, &json!({ "size": 0 })),
                _ => widget(name, &valid(random)),
            };
            operations.push((end, last));
        }
        operations.sort_by_key(|(at, _)| *at);
        operations
    }

    fn new() -> Self {
        Self {
            world: World::default(),
            healed: AtomicBool::new(false),
        }
    }

    fn add(&self, operator: &mut Operator, scope: &Scope, seat: Seat) {
        let witness = seat.witness;
        let world = self
            .world
            .witnessed(move |name| witness(&format!("thing {name}")));
        operator.add(WidgetController { world }, scope);
    }

    fn outside(&self, what: &Value) {
        // Users may be late: they act in order, and wait for what they have asked for.
        if self.healed.load(Ordering::Relaxed) {
            return;
        }
        let name = what["name"].as_str().unwrap_or_default();
        // A cleanup is never given up, whatever stands in its way.
        self.world.sticks(name, what["stuck"] == true);
        let class = what["class"]
            .as_u64()
            .and_then(|index| CLASSES.get(usize::try_from(index).ok()?));
        self.world.fails(name, class.copied());
    }

    fn heal(&self) {
        self.healed.store(true, Ordering::Relaxed);
        for name in self.world.things().keys() {
            self.world.fails(name, None);
            self.world.sticks(name, false);
        }
        for name in (0..5).map(name_of) {
            self.world.fails(&name, None);
            self.world.sticks(&name, false);
        }
    }

    fn prompt(seed: u64) -> Vec<Violation> {
        prompt::run(seed)
    }

    fn world(&self) -> Value {
        let things = self.world.things().into_iter();
        things
            .map(|(name, thing)| (name, json!([thing.size, thing.password])))
            .collect::<serde_json::Map<_, _>>()
            .into()
    }

    fn faults(&self) -> Vec<String> {
        match self.world.concurrency().1 {
            0 => Vec::new(),
            overlaps => vec![format!(
                "a pass began {overlaps} times while another one of its widget ran"
            )],
        }
    }

    fn left(&self) -> Vec<String> {
        self.world
            .things()
            .keys()
            .map(|name| format!("the thing of {name} is still there"))
            .collect()
    }

    /// Of a widget that is not ready only its conditions count: what it was before is what its operator saw of it.
    fn comparable(end: &mut Value) {
        let widgets = end["objects"]["Widget"].as_object().cloned().unwrap_or_default();
        for (name, widget) in widgets {
            let conditions = &widget["status"]["conditions"];
            let ready = conditions
                .as_array()
                .into_iter()
                .flatten()
                .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
            if !ready {
                end["objects"]["Widget"][&name] =
                    json!({ "spec": widget["spec"], "status": { "conditions": conditions } });
                for part in ["/objects/ConfigMap", "/world"] {
                    if let Some(objects) = end.pointer_mut(part).and_then(Value::as_object_mut) {
                        objects.shift_remove(&name);
                    }
                }
            }
        }
    }
}

/// Some widgets share a lane.
fn name_of(number: usize) -> String {
    format!("{}w{number}", if number.is_multiple_of(2) { "lane." } else { "" })
}

fn anything(name: &str, random: &mut StdRng) -> Operation {
    match random.random_range(0..20) {
        0..8 => widget(name, &valid(random)),
        8 => widget(name, &json!({ "size": 0 })),
        9 => widget(name, &json!({ "size": unreadable(random) })),
        10 => {
            let step = ["Validate", "Observe", "Plan", "Apply"].choose(random);
            widget(name, &json!({ "size": 1, "boom": step }))
        }
        11..14 => Operation::Delete(WIDGET, name.to_owned()),
        14 => {
            let poke = random.random_range(0..9).to_string();
            Operation::Merge(
                WIDGET,
                name.to_owned(),
                json!({ "metadata": { "annotations": { POKE: poke } } }),
            )
        }
        15 => Operation::Apply(SECRET, secret(SECRETS.choose(random).unwrap_or(&"one"), random)),
        16 => Operation::Delete(SECRET, (*SECRETS.choose(random).unwrap_or(&"one")).to_owned()),
        17 => Operation::Delete(CONFIG_MAP, name.to_owned()),
        18 => Operation::Merge(
            CONFIG_MAP,
            name.to_owned(),
            json!({ "data": { "size": "by hand" } }),
        ),
        _ => {
            let (class, stuck) = (random.random_range(0..5), random.random_bool(0.3));
            Operation::Outside(json!({ "name": name, "class": class, "stuck": stuck }))
        }
    }
}

fn widget(name: &str, spec: &Value) -> Operation {
    let object = json!({
        "apiVersion": WIDGET.api_version, "kind": WIDGET.kind, "metadata": { "name": name }, "spec": spec,
    });
    Operation::Apply(WIDGET, object)
}

fn valid(random: &mut StdRng) -> Value {
    let sizes = [1, 2, 3, 1000, u32::MAX];
    let mut spec = json!({ "size": sizes.choose(random) });
    if random.random() {
        spec["secretRef"] = json!(SECRETS.choose(random));
    }
    if random.random_bool(0.2) {
        // The second one is the longest that the API server stores, and no clock goes so far.
        spec["interval"] = json!(*[3600, i64::MAX].choose(random).unwrap_or(&3600));
    }
    spec
}

/// What the schema lets in, and the type does not.
fn unreadable(random: &mut StdRng) -> Value {
    let sizes = [json!("large"), json!(-1), json!(u64::from(u32::MAX) + 1)];
    sizes.choose(random).cloned().unwrap_or_default()
}

fn secret(name: &str, random: &mut StdRng) -> Value {
    let password = format!("{CANARY}-{}", random.random_range(0..1000));
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name }, "stringData": { "password": password },
    })
}
