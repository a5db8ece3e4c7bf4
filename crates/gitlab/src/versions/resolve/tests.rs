use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn map(versions: &[&str], aliases: Value) -> GitlabVersionMapSpec {
    let chart = |version: &&str| {
        let chart = format!("chart-of-{version}");
        (
            (*version).to_owned(),
            serde_json::from_value(json!({ "chartVersion": chart })).unwrap(),
        )
    };
    GitlabVersionMapSpec {
        versions: versions.iter().map(chart).collect(),
        aliases: serde_json::from_value(aliases).unwrap(),
        repository: None,
    }
}

fn found(map: &GitlabVersionMapSpec, wanted: &str) -> String {
    resolve(map, wanted).unwrap().version.to_string()
}

#[test]
fn an_alias_wins_then_the_exact_version_then_the_highest_that_begins_so() {
    let map = map(
        &["17.3.0", "17.11.7", "18.8.9", "18.8.10", "18.11.6"],
        json!({ "stable": "17", "latest": "18.11.6", "18": "18.8.9" }),
    );
    assert_eq!(found(&map, "latest"), "18.11.6");
    assert_eq!(found(&map, "stable"), "17.11.7");
    assert_eq!(found(&map, "18"), "18.8.9");
    assert_eq!(found(&map, "18.8.9"), "18.8.9");
    assert_eq!(found(&map, "18.8"), "18.8.10");
    assert_eq!(found(&map, "17"), "17.11.7");
    assert_eq!(found(&map, "v17.3.0"), "17.3.0");
}

#[test]
fn the_chart_and_its_values_come_along() {
    let mut map = map(&["18.2.8"], json!({}));
    let values = json!({ "global": { "pod": {} } }).as_object().unwrap().clone();
    map.versions.get_mut("18.2.8").unwrap().values = values.clone();
    let step = resolve(&map, "18").unwrap();
    assert_eq!((step.chart.as_str(), step.values), ("chart-of-18.2.8", values));
}

#[test]
fn a_number_is_whole_or_does_not_match() {
    let both = map(&["18.1.6", "18.11.6"], json!({}));
    assert_eq!(found(&both, "18.1"), "18.1.6");
    let other = map(&["18.11.6", "1.2.3"], json!({}));
    for wanted in ["18.1", "8.11.6", "18.11.", "18.11.6.1", "", "18.x", ".", "1.2.30"] {
        assert!(
            matches!(resolve(&other, wanted), Err(Unknown::Version { .. })),
            "{wanted}"
        );
    }
}

#[test]
fn invalid_entries_matter_only_if_requested() {
    let map = map(
        &["18.8.x", "18.5.7", "18.5.8-rc1", "nightly"],
        json!({ "edge": "nightly" }),
    );
    assert_eq!(found(&map, "18.5"), "18.5.7");
    assert_eq!(found(&map, "18"), "18.5.7");
    for (wanted, entry) in [("18.8", "18.8.x"), ("nightly", "nightly"), ("edge", "nightly")] {
        let error = resolve(&map, wanted).unwrap_err();
        assert!(
            matches!(&error, Unknown::Entry { entry: named, .. } if named == entry),
            "{error}"
        );
    }
}

#[test]
fn errors_say_what_there_is_and_what_to_do() {
    let map = map(
        &["17.3.0", "17.11.7", "18.2.8"],
        json!({ "latest": "18.2.8", "a": "b", "b": "a", "next": "soon", "soon": "19" }),
    );
    let empty = GitlabVersionMapSpec::default();
    let said = |map, wanted| resolve(map, wanted).unwrap_err().to_string();
    insta::assert_snapshot!(
        [said(&map, "99"), said(&map, "next"), said(&map, "a"), said(&empty, "18")].join("\n"),
        @r#"
    the version map has no version "99": its newest are 18.2.8, 17.11.7, 17.3.0, its aliases a (b), b (a), latest (18.2.8), next (soon), soon (19). Add it to the map, or ask for one that is there
    alias next -> soon points to 19, which is not in the version map: its newest are 18.2.8, 17.11.7, 17.3.0, its aliases a (b), b (a), latest (18.2.8), next (soon), soon (19). Add it to the map, or correct the alias
    the aliases a -> b -> a form a cycle; point one at a version
    the version map has no version "18": it has no versions at all. Add it to the map, or ask for one that is there
    "#
    );
}

proptest! {
    #[test]
    fn what_is_found_begins_as_asked_and_nothing_higher_does(
        versions in prop::collection::btree_set((15..20_u32, 0..13_u32, 0..13_u32), 1..40),
        wanted in (15..20_u32, prop::option::of(0..13_u32)),
    ) {
        let all: Vec<_> = versions.iter().map(|(a, b, c)| Version::new(*a, *b, *c)).collect();
        let texts: Vec<_> = all.iter().map(Version::to_string).collect();
        let map = map(&texts.iter().map(String::as_str).collect::<Vec<_>>(), json!({}));
        let asked = |version: &&Version| {
            version.major == wanted.0 && wanted.1.is_none_or(|minor| version.minor == minor)
        };
        let text = wanted.1.map_or(wanted.0.to_string(), |minor| format!("{}.{minor}", wanted.0));
        let found = resolve(&map, &text).ok().map(|step| step.version);
        prop_assert_eq!(found, all.iter().filter(asked).max().copied());
    }
}
