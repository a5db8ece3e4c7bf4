use proptest::prelude::*;
use serde_json::Map;
use stanchion_api::gitlab::ChartOf;

use super::*;
use crate::versions::resolve;

fn map<'a>(versions: impl IntoIterator<Item = &'a str>) -> GitlabVersionMapSpec {
    let chart = |version: &str| {
        let chart_version = format!("chart-of-{version}");
        (
            version.to_owned(),
            ChartOf {
                chart_version,
                values: Map::new(),
            },
        )
    };
    GitlabVersionMapSpec {
        versions: versions.into_iter().map(chart).collect(),
        ..GitlabVersionMapSpec::default()
    }
}

/// A complete list of stops.
fn ladder() -> GitlabVersionMapSpec {
    map([
        "17.3.0", "17.5.5", "17.8.7", "17.11.7", "18.2.8", "18.5.7", "18.8.9", "18.8.10", "18.11.6", "19.1.1",
    ])
}

fn way(map: &GitlabVersionMapSpec, running: &str, target: &str) -> Result<String, Blocked> {
    let steps = path(map, &running.parse().unwrap(), &resolve(map, target).unwrap())?;
    let names: Vec<_> = steps.iter().map(|step| step.version.to_string()).collect();
    Ok(names.join(" "))
}

#[test]
fn every_stop_between_is_on_the_way_with_its_newest_patch() {
    let way = |running, target| way(&ladder(), running, target).unwrap();
    assert_eq!(way("17.3.7", "18.2.8"), "17.5.5 17.8.7 17.11.7 18.2.8");
    assert_eq!(way("18.5.0", "19.1.1"), "18.8.10 18.11.6 19.1.1");
    assert_eq!(way("18.6.2", "18.8.9"), "18.8.9");
    assert_eq!(way("18.2.0", "18.2.8"), "18.2.8");
    assert_eq!(way("18.2.8", "18.2.8"), "");
}

#[test]
fn a_stop_is_passed_with_any_patch_of_it() {
    assert_eq!(way(&ladder(), "18.8.0", "18.11").unwrap(), "18.11.6");
}

#[test]
fn a_downgrade_has_no_path() {
    let error = way(&ladder(), "18.8.10", "18.8.9").unwrap_err();
    insta::assert_snapshot!(error, @"18.8.10 runs, and GitLab cannot go back to 18.8.9: the database has been migrated. Ask for 18.8.10 or newer, or restore a backup that was made with 18.8.9 into a new instance");
}

#[test]
fn a_stop_that_the_map_lacks_is_named() {
    let gap = map(["17.5.5", "17.11.7", "17.8.x", "18.2.8"]);
    let error = way(&gap, "17.5.5", "18.2.8").unwrap_err();
    insta::assert_snapshot!(error, @"an upgrade from 17.5.5 to 18.2.8 has the required stop 17.8, and the version map has no 17.8.x. Add its newest patch to the map");
    // An instance beyond the gap does not need it.
    assert_eq!(way(&gap, "17.8.0", "18.2.8").unwrap(), "17.11.7 18.2.8");
}

/// Nothing older than what was begun is installed, and nothing newer before it is complete.
#[test]
fn what_was_begun_is_completed_first() {
    let way = |running: Option<&str>, begun: &str, target: &str| {
        let running: Option<Version> = running.map(|running| running.parse().unwrap());
        let target = resolve(&ladder(), target).unwrap();
        let steps = path_after_begun(&ladder(), running.as_ref(), begun.parse().unwrap(), &target)?;
        let names: Vec<_> = steps.iter().map(|step| step.version.to_string()).collect();
        Ok::<_, Blocked>(names.join(" "))
    };
    let after = |running, begun, target| way(running, begun, target).unwrap();
    assert_eq!(
        after(Some("17.11.7"), "18.2.8", "18.8.10"),
        "18.2.8 18.5.7 18.8.10"
    );
    assert_eq!(after(None, "18.8.9", "18.11.6"), "18.8.10 18.11.6");
    assert_eq!(after(Some("18.5.7"), "18.8.9", "18.8.10"), "18.8.10");
    assert_eq!(after(None, "18.8.10", "18.8.10"), "18.8.10");
    // Later versions do not rely on a patch.
    assert_eq!(after(Some("18.8.9"), "18.8.10", "18.11.6"), "18.11.6");
    for (running, begun, target) in [
        (Some("17.11.7"), "18.2.8", "17.11.7"),
        (None, "18.8.10", "18.8.9"),
    ] {
        let refused = way(running, begun, target);
        assert!(matches!(refused, Err(Blocked::BelowBegun { .. })), "{refused:?}");
    }
    for begun in ["18.3.1", "18.2.9"] {
        let refused = way(Some("17.11.7"), begun, "18.5.7");
        assert!(
            matches!(refused, Err(Blocked::BegunMissing { .. })),
            "{refused:?}"
        );
    }
}

#[test]
fn the_stops_are_those_that_gitlab_names() {
    let all = |major, minor| Minor { major, minor };
    let named: Vec<_> = stops(all(14, 10), all(20, 3))
        .map(|stop| stop.to_string())
        .collect();
    assert_eq!(
        named.join(" "),
        "15.0 15.4 15.11 16.3 16.7 16.11 17.3 17.5 17.8 17.11 18.2 18.5 18.8 18.11 19.2 19.5 19.8 19.11 20.2"
    );
}

prop_compose! {
    fn version()(major in 15..21_u32, minor in 0..12_u32, patch in 0..12_u32) -> Version {
        Version::new(major, minor, patch)
    }
}

proptest! {
    #[test]
    fn a_way_climbs_leaves_no_stop_out_and_is_the_same_from_each_of_its_steps(
        known in prop::collection::btree_set(version(), 1..600),
        running in version(),
        index in any::<prop::sample::Index>(),
    ) {
        let names: Vec<_> = known.iter().map(Version::to_string).collect();
        let map = map(names.iter().map(String::as_str));
        let target = resolve(&map, index.get(&names).as_str()).unwrap();
        match path(&map, &running, &target) {
            Err(Blocked::Downgrade { .. }) => prop_assert!(target.version < running),
            Err(Blocked::StopMissing { stop, .. }) => {
                prop_assert!(known.iter().all(|version| version.minor() != stop));
                prop_assert!(running.minor() < stop && stop < target.version.minor());
            }
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
            Ok(steps) => {
                prop_assert_eq!(steps.is_empty(), running == target.version);
                let mut at = running;
                for (done, step) in steps.iter().enumerate() {
                    prop_assert!(at < step.version);
                    prop_assert_eq!(stops(at.minor(), step.version.minor()).count(), 0);
                    at = step.version;
                    prop_assert_eq!(&path(&map, &at, &target).unwrap(), &steps[done + 1..]);
                }
                prop_assert_eq!(at, target.version);
            }
        }
    }
}
