//! Versions that were begun and never ran: they may have migrated the database, or not.

use super::*;

const RAN: Option<Version> = Some(Version::new(17, 5, 5));
const BEGUN: Option<Version> = Some(Version::new(17, 8, 7));

/// The release is deleted, and its database has the schema of one version or of both.
#[test]
fn what_was_begun_is_neither_taken_back_nor_skipped() {
    let mut current = current();
    let here = with_login(&mut current);
    current.record = Some(record(RAN, BEGUN, here));
    current.database = answered(16, 0);
    let upgrade = find(&at("18"), &current, None).unwrap();
    assert_eq!((upgrade.now.chart.as_str(), upgrade.held), ("8.8.7", None));
    assert_eq!((upgrade.running, upgrade.begun), (RAN, BEGUN));
    let path: Vec<_> = upgrade.path.iter().map(ToString::to_string).collect();
    assert_eq!(path, ["17.8.7", "17.11.7", "18.2.8"]);
    // Nothing runs that could finish what was begun.
    for database in [
        answered(16, 7),
        Database::NoAnswer("no route".into()),
        Database::NotAsked,
    ] {
        current.database = database;
        let upgrade = find(&at("18"), &current, None).unwrap();
        assert_eq!((upgrade.now.chart.as_str(), upgrade.held), ("8.8.7", None));
    }
    let itself = find(&at("17.8.7"), &current, None).unwrap();
    assert_eq!((itself.now.chart.as_str(), itself.path.len()), ("8.8.7", 1));
    for older in ["17.8.6", "17.5.5", "17.3.7"] {
        let refused = find(&at(older), &current, None);
        assert_eq!(reason(&refused), "UpgradeBlocked", "{older}");
        let words = refused.unwrap_err().message;
        let source = "ConfigMap shop-gitlab-installed records 17.8.7";
        assert!(words.contains(source), "{words}");
    }
}

/// A patch has no migrations that later versions rely on, but is not taken back either.
#[test]
fn a_patch_that_was_begun_need_not_be_completed() {
    let mut current = current();
    let here = with_login(&mut current);
    current.record = Some(record(Some(Version::new(17, 8, 6)), BEGUN, here));
    let held = find(&at("18"), &current, None);
    assert_eq!(reason(&held), ASKING);
    assert_eq!(held.unwrap().now.chart, "8.8.7", "the newer of both comes back");
    current.database = answered(16, 0);
    let upgrade = find(&at("18"), &current, None).unwrap();
    assert_eq!((upgrade.now.chart.as_str(), upgrade.held), ("8.11.8", None));
    assert_eq!(reason(&find(&at("17.8.6"), &current, None)), "UpgradeBlocked");
}

/// A failed release refuses what a deleted one refuses, except for the version that still runs.
#[test]
fn a_failed_release_goes_back_only_to_what_still_runs() {
    let mut current = current();
    let here = with_login(&mut current);
    let installed = release("9.2.8", None, "False");
    let refused = find(&at("17"), &current, Some(&installed));
    assert_eq!(reason(&refused), "UpgradeBlocked");
    let words = refused.unwrap_err().message;
    assert!(
        words.contains("HelmRelease shop-gitlab records 18.2.8"),
        "{words}"
    );
    let upgraded = release("9.2.8", Some(("8.8.6", "17.8.6")), "False");
    current.record = Some(record(
        Some(Version::new(17, 8, 6)),
        Some(Version::new(18, 2, 8)),
        here,
    ));
    assert_eq!(
        reason(&find(&at("17.11"), &current, Some(&upgraded))),
        "UpgradeBlocked"
    );
    let back = find(&at("17.8.6"), &current, Some(&upgraded)).unwrap();
    assert_eq!((back.now.chart.as_str(), back.held), ("8.8.6", None));
    assert_eq!(
        back.begun,
        Some(Version::new(18, 2, 8)),
        "it stays recorded until a release is complete"
    );
    // What was not fetched was not begun.
    current.record = None;
    let mut absent = installed;
    absent.progress = Progress::Failed {
        what: crate::flux::Failure::Begin,
        reason: "ArtifactFailed".into(),
        message: "words".into(),
    };
    assert_eq!(reason(&find(&at("17"), &current, Some(&absent))), "");
}
