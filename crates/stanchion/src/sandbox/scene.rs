//! The state of the demo: the progress of the objects, and the events about them. Pure: the view compares two scenes,
//! the previous and the current one.

use k8s_openapi::api::events::v1::Event;
use serde_json::Value;

use super::examples::Kind;

/// One snapshot of the cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Scene {
    /// The objects, in the order of the examples.
    pub(super) things: Vec<Thing>,
    /// The operator's events, oldest first.
    pub(super) notes: Vec<Note>,
}

/// One object.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Thing {
    /// `PostgresUser/alice`, with the namespace if it is not the default one.
    pub(super) name: String,
    /// Its phase, if its kind has one.
    pub(super) phase: Option<String>,
    /// Its status message.
    pub(super) message: Option<String>,
    /// The conditions to reach, and which of them are true.
    pub(super) steps: Vec<(&'static str, bool)>,
}

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Note {
    /// Its identity; a repeated event is another note.
    id: (String, i32),
    /// The time, for sorting.
    at: String,
    /// `PostgresUser/alice`.
    pub(super) about: String,
    /// Whether it is a warning.
    pub(super) is_warning: bool,
    pub(super) reason: String,
    /// The message.
    pub(super) text: String,
}

impl Thing {
    /// From an object.
    pub(super) fn of(kind: &Kind, word: &str, object: &Value) -> Self {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).map(str::to_owned);
        let generation = object.pointer("/metadata/generation");
        let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
        let stated = |step: &str| {
            conditions
                .into_iter()
                .flatten()
                .find(|condition| condition.get("type").and_then(Value::as_str) == Some(step))
        };
        // A condition of an older spec does not count.
        let is_true = |step: &str| {
            stated(step).is_some_and(|condition| {
                condition.get("status").and_then(Value::as_str) == Some("True")
                    && condition.get("observedGeneration") == generation
            })
        };
        let last_words = || {
            let last = stated(kind.steps.last()?)?;
            last.get("message")?.as_str().map(str::to_owned)
        };
        Self {
            name: named(
                word,
                text("/metadata/namespace").as_deref(),
                &text("/metadata/name").unwrap_or_default(),
            ),
            phase: text("/status/phase"),
            message: text("/status/message").or_else(last_words),
            steps: kind.steps.iter().map(|&step| (step, is_true(step))).collect(),
        }
    }

    /// Whether the last condition is true.
    pub(super) fn is_ready(&self) -> bool {
        self.steps.last().is_some_and(|&(_, done)| done)
    }

    /// Why it is not ready, from its status.
    fn reason(&self) -> String {
        let said = self.message.as_deref().or(self.phase.as_deref());
        format!("{}: {}", self.name, said.unwrap_or("no status yet"))
    }
}

impl Note {
    /// From an event.
    pub(super) fn of(event: &Event) -> Self {
        let about = event.regarding.clone().unwrap_or_default();
        let count = event.series.as_ref().map_or(1, |series| series.count);
        let at = event
            .series
            .as_ref()
            .map(|series| series.last_observed_time.0)
            .or(event.event_time.as_ref().map(|time| time.0));
        Self {
            id: (event.metadata.uid.clone().unwrap_or_default(), count),
            at: at.map(|time| time.to_string()).unwrap_or_default(),
            about: named(
                about.kind.as_deref().unwrap_or_default(),
                about.namespace.as_deref(),
                about.name.as_deref().unwrap_or_default(),
            ),
            is_warning: event.type_.as_deref() == Some("Warning"),
            reason: event.reason.clone().unwrap_or_default(),
            text: event.note.clone().unwrap_or_default(),
        }
    }

    /// Whether it is about one of these kinds, or a warning: events about scheduled pods are omitted.
    pub(super) fn concerns(&self, kinds: &[String]) -> bool {
        let kind = self.about.split('/').next().unwrap_or_default();
        self.is_warning || kinds.iter().any(|known| known == kind)
    }
}

impl Scene {
    /// The scene, with its notes sorted.
    pub(super) fn new(things: Vec<Thing>, mut notes: Vec<Note>) -> Self {
        notes.sort_by(|one, other| (&one.at, &one.id).cmp(&(&other.at, &other.id)));
        Self { things, notes }
    }

    /// Whether everything is ready.
    pub(super) fn is_ready(&self) -> bool {
        !self.things.is_empty() && self.things.iter().all(Thing::is_ready)
    }

    /// The number of true conditions, and of all.
    pub(super) fn progress(&self) -> (usize, usize) {
        let steps = || self.things.iter().flat_map(|thing| &thing.steps);
        (steps().filter(|(_, done)| *done).count(), steps().count())
    }

    /// The objects that are not ready, with reasons.
    pub(super) fn reasons(&self) -> String {
        let waiting = self.things.iter().filter(|thing| !thing.is_ready());
        let reasons: Vec<String> = waiting.map(Thing::reason).collect();
        if reasons.is_empty() {
            return "nothing was applied".to_owned();
        }
        reasons.join("; ")
    }

    /// The objects that are new or have changed.
    pub(super) fn changed<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = &'a Thing> {
        let known = |thing: &&Thing| !before.things.contains(thing);
        self.things.iter().filter(known)
    }

    /// The objects that are gone.
    pub(super) fn gone<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = &'a Thing> {
        let is_gone = |thing: &&Thing| !self.things.iter().any(|now| now.name == thing.name);
        before.things.iter().filter(is_gone)
    }

    /// The new notes.
    pub(super) fn said<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = &'a Note> {
        let is_new = |note: &&Note| !before.notes.iter().any(|known| known.id == note.id);
        self.notes.iter().filter(is_new)
    }
}

fn named(kind: &str, namespace: Option<&str>, name: &str) -> String {
    match namespace {
        Some(namespace) if namespace != "default" => format!("{kind}/{namespace}/{name}"),
        _ => format!("{kind}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
    use k8s_openapi::jiff::Timestamp;
    use kube::core::ApiResource;
    use serde_json::json;

    use super::*;

    const KIND: Kind = Kind {
        resource: || ApiResource::erase::<stanchion_api::PostgresUser>(&()),
        steps: &["DatabaseConnected", "Ready"],
    };

    fn thing(connected: &str, ready: &str, observed: i64) -> Thing {
        let condition = |name: &str, status: &str| json!({"type": name, "status": status, "observedGeneration": observed});
        let object = json!({
            "metadata": {"name": "alice", "namespace": "default", "generation": 2},
            "status": {"phase": "Creating", "message": "on its way", "conditions": [
                condition("DatabaseConnected", connected), condition("Ready", ready),
            ]},
        });
        Thing::of(&KIND, "PostgresUser", &object)
    }

    #[test]
    fn an_object_is_ready_when_its_last_step_is_true_of_its_present_spec() {
        assert!(thing("True", "True", 2).is_ready());
        assert!(!thing("True", "False", 2).is_ready());
        assert!(!thing("True", "True", 1).is_ready());
        let young = Thing::of(
            &KIND,
            "PostgresUser",
            &json!({"metadata": {"name": "bob", "namespace": "x"}}),
        );
        assert!(!young.is_ready());
        assert_eq!(young.name, "PostgresUser/x/bob");
    }

    #[test]
    fn a_kind_without_a_message_is_told_by_its_last_condition() {
        let object = json!({
            "metadata": {"name": "stock"},
            "status": {"conditions": [{"type": "Ready", "status": "False", "message": "no such database"}]},
        });
        let thing = Thing::of(&KIND, "PostgresPolicy", &object);
        assert_eq!(thing.reason(), "PostgresPolicy/stock: no such database");
    }

    #[test]
    fn progress_counts_steps_and_the_reasons_name_who_waits() {
        let scene = Scene::new(
            vec![thing("True", "True", 2), thing("True", "False", 2)],
            Vec::new(),
        );
        assert_eq!(scene.progress(), (3, 4));
        assert!(!scene.is_ready());
        assert_eq!(scene.reasons(), "PostgresUser/alice: on its way");
        assert!(!Scene::default().is_ready());
    }

    #[test]
    fn only_what_changed_is_told() {
        let before = Scene::new(vec![thing("True", "False", 2)], Vec::new());
        let now = Scene::new(vec![thing("True", "True", 2)], Vec::new());
        assert_eq!(now.changed(&before).count(), 1);
        assert_eq!(now.changed(&now).count(), 0);
        assert_eq!(Scene::default().gone(&now).count(), 1);
    }

    #[test]
    fn a_repeated_event_is_told_again() {
        let event = |count: i32| Event {
            metadata: kube::api::ObjectMeta {
                uid: Some("1".into()),
                ..Default::default()
            },
            series: (count > 1).then_some(k8s_openapi::api::events::v1::EventSeries {
                count,
                last_observed_time: MicroTime(Timestamp::UNIX_EPOCH),
            }),
            ..Event::default()
        };
        let once = Scene::new(Vec::new(), vec![Note::of(&event(1))]);
        let twice = Scene::new(Vec::new(), vec![Note::of(&event(2))]);
        assert_eq!(twice.said(&once).count(), 1);
        assert_eq!(once.said(&once).count(), 0);
    }

    #[test]
    fn only_our_own_kinds_and_warnings_are_told_of() {
        let note = |kind: &str, type_: &str| {
            Note::of(&Event {
                regarding: Some(k8s_openapi::api::core::v1::ObjectReference {
                    kind: Some(kind.into()),
                    name: Some("it".into()),
                    ..Default::default()
                }),
                type_: Some(type_.into()),
                ..Event::default()
            })
        };
        let kinds = ["PostgresUser".to_owned()];
        assert!(note("PostgresUser", "Normal").concerns(&kinds));
        assert!(note("Pod", "Warning").concerns(&kinds));
        assert!(!note("Pod", "Normal").concerns(&kinds));
    }
}
