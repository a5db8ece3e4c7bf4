//! Which changes of an object cause a pass.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::runtime::watcher::Event;
use stanchion_kernel::watch::{Fingerprints, Primary, PrimaryChange, key};

use crate::test_env::{FINALIZER, POKE, Widget, WidgetController, WidgetSpec, WidgetStatus};

fn widget(name: &str, version: u64) -> Widget {
    let mut widget = Widget::new(name, WidgetSpec::default());
    widget.metadata.namespace = Some("ns".into());
    widget.metadata.uid = Some(format!("uid of {name}"));
    widget.metadata.generation = Some(1);
    widget.metadata.resource_version = Some(version.to_string());
    widget
}

fn changed(version: u64, change: impl FnOnce(&mut Widget)) -> Widget {
    let mut widget = widget("one", version);
    change(&mut widget);
    widget
}

fn annotate(widget: &mut Widget, name: &str, value: &str) {
    let annotations = widget.metadata.annotations.get_or_insert_default();
    annotations.insert(name.into(), value.into());
}

struct Watch {
    fingerprints: Fingerprints,
    primary: Primary<WidgetController>,
}

impl Watch {
    fn new() -> Self {
        let fingerprints = Fingerprints::default();
        let primary = Primary::new(fingerprints.clone());
        Self {
            fingerprints,
            primary,
        }
    }

    fn list(&mut self, widgets: &[Widget]) -> Vec<PrimaryChange> {
        let mut changes = self.primary.handle::<Widget>(&Event::Init);
        for widget in widgets {
            // The cache does not contain it yet, so a pass would read the old state.
            assert_eq!(self.primary.handle(&Event::InitApply(widget.clone())), []);
        }
        changes.extend(self.primary.handle::<Widget>(&Event::InitDone));
        changes
    }

    fn apply(&mut self, widget: &Widget) -> Vec<PrimaryChange> {
        self.primary.handle(&Event::Apply(widget.clone()))
    }
}

fn woken(name: &str) -> PrimaryChange {
    PrimaryChange::Changed(key(&widget(name, 0).metadata))
}

/// The name of the change, whether it wakes the object, and the change.
type Row = (&'static str, bool, fn(&mut Widget));

fn epoch() -> Time {
    Time(jiff::Timestamp::UNIX_EPOCH)
}

#[rustfmt::skip]
#[test]
fn only_what_we_act_on_wakes() {
    let rows: [Row; 9] = [
        ("its spec", true, |it| it.metadata.generation = Some(2)),
        ("its deletion", true, |it| it.metadata.deletion_timestamp = Some(epoch())),
        ("our finalizer", true, |it| it.metadata.finalizers = Some(vec![FINALIZER.into()])),
        ("our annotation", true, |it| annotate(it, POKE, "now")),
        ("another object", true, |it| it.metadata.uid = Some("another".into())),
        ("its status", false, |it| it.status = Some(WidgetStatus::default())),
        ("a foreign finalizer", false, |it| it.metadata.finalizers = Some(vec!["x/y".into()])),
        ("a foreign annotation", false, |it| annotate(it, "x/y", "z")),
        ("a label", false, |it| it.metadata.labels = Some([("a".into(), "b".into())].into())),
    ];
    for (what, wakes, change) in rows {
        let mut watch = Watch::new();
        assert_eq!(watch.list(&[widget("one", 1)]), [woken("one")]);
        let expected = if wakes { vec![woken("one")] } else { Vec::new() };
        assert_eq!(watch.apply(&changed(2, change)), expected, "{what}");
        assert_eq!(watch.apply(&changed(3, change)), [], "{what}, once more");
    }
}

#[test]
fn a_relist_reports_missed_changes() {
    let mut watch = Watch::new();
    watch.list(&[widget("one", 1), widget("two", 1), widget("three", 1)]);
    let changes = watch.list(&[
        widget("one", 1),
        changed(5, |one| one.metadata.name = Some("four".into())),
    ]);
    assert!(changes.contains(&woken("four")), "{changes:?}");
    let gone = |name| PrimaryChange::Gone(key(&widget(name, 0).metadata));
    assert_eq!(changes.len(), 3);
    assert!(
        changes.contains(&gone("two")) && changes.contains(&gone("three")),
        "{changes:?}"
    );
}

#[test]
fn the_echo_of_our_finalizer_enqueues_nothing() {
    let mut watch = Watch::new();
    watch.list(&[widget("one", 1)]);
    let ours = |widget: &mut Widget| widget.metadata.finalizers = Some(vec![FINALIZER.into()]);
    watch
        .fingerprints
        .expect::<WidgetController>(&changed(2, ours).metadata);
    assert_eq!(watch.apply(&changed(2, ours)), []);
}

/// Somebody changes the spec right before our write: the echo of the write contains that change, too.
#[test]
fn a_spec_that_changes_before_our_write_is_news() {
    let mut watch = Watch::new();
    watch.list(&[widget("one", 1)]);
    let written = changed(2, |one| {
        one.metadata.finalizers = Some(vec![FINALIZER.into()]);
        one.metadata.generation = Some(7);
    });
    let mut expected = written.metadata.clone();
    expected.generation = widget("one", 1).metadata.generation;
    watch.fingerprints.expect::<WidgetController>(&expected);
    assert_eq!(watch.apply(&written), [woken("one")]);
}

/// Our next write is expected with the current version, which the watch has reported.
#[test]
fn an_early_echo_of_our_finalizer_enqueues_nothing() {
    let mut watch = Watch::new();
    watch.list(&[widget("one", 1)]);
    let ours = |widget: &mut Widget| widget.metadata.finalizers = Some(vec![FINALIZER.into()]);
    watch
        .fingerprints
        .expect::<WidgetController>(&changed(1, ours).metadata);
    assert_eq!(watch.apply(&changed(2, ours)), []);
}

/// The watch can be faster than the response to our own write. The result of the write is then outdated, and must not
/// hide a later change.
#[test]
fn an_answer_that_comes_late_hides_no_change() {
    let mut watch = Watch::new();
    watch.list(&[widget("one", 1)]);
    let written = changed(2, |one| one.metadata.finalizers = Some(vec![FINALIZER.into()]));
    let mut poked = written.clone();
    annotate(&mut poked, POKE, "now");
    poked.metadata.resource_version = Some("3".into());
    watch.apply(&written);
    assert_eq!(watch.apply(&poked), [woken("one")]);
    watch.fingerprints.expect::<WidgetController>(&written.metadata);
    let mut back = written.clone();
    back.metadata.resource_version = Some("4".into());
    assert_eq!(
        watch.apply(&back),
        [woken("one")],
        "the annotation was taken back"
    );
}

/// A list can be older than a write of ours that ended while it was running.
#[test]
fn a_list_older_than_our_write_is_ignored() {
    let mut watch = Watch::new();
    watch.list(&[widget("one", 1)]);
    let ours = |widget: &mut Widget| widget.metadata.finalizers = Some(vec![FINALIZER.into()]);
    watch
        .fingerprints
        .expect::<WidgetController>(&changed(2, ours).metadata);
    assert_eq!(watch.list(&[widget("one", 1)]), []);
    assert_eq!(watch.apply(&changed(2, ours)), []);
}

/// An interrupted list starts again, and its first part has no effect.
#[test]
fn an_incomplete_list_reports_nothing() {
    let mut watch = Watch::new();
    watch.list(&[widget("one", 1)]);
    watch.primary.handle::<Widget>(&Event::Init);
    watch.primary.handle(&Event::InitApply(changed(2, |one| {
        one.metadata.generation = Some(2);
    })));
    let changes = watch.list(&[changed(3, |one| one.metadata.generation = Some(3))]);
    assert_eq!(changes, [woken("one")]);
}
