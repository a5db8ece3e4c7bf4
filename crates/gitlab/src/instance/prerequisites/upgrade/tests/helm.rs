//! What Helm itself installed before the instance existed.

use super::*;
use crate::flux::Running;
use crate::helm::{Deployed, Unreadable};

fn deployed(chart: &str, version: &str, app: &str) -> Deployed {
    let running = Running {
        chart: version.into(),
        version: app.parse().ok(),
    };
    Deployed {
        chart: chart.into(),
        running,
        runs: true,
        gone: false,
    }
}

/// A plain `helm install` is a predecessor like any other: its upgrade goes through every required stop.
#[test]
fn what_helm_has_installed_itself_is_where_an_upgrade_begins() {
    let helm = |chart: &str, version: &str, app: &str| Some(Ok(deployed(chart, version, app)));
    let mut current = current();
    current.helm = helm("gitlab", "8.8.7", "v17.8.7");
    let upgrade = find(&at("18"), &current, None);
    assert_eq!(reason(&upgrade), ASKING);
    let upgrade = upgrade.unwrap();
    assert_eq!(
        upgrade.now.chart, "8.8.7",
        "what is there stays until the database has answered"
    );
    current.database = answered(16, 0);
    let upgrade = find(&at("18"), &current, None).unwrap();
    assert_eq!(upgrade.now.chart, "8.11.8", "and then the next stop comes");
    assert_eq!(upgrade.running, Some(Version::new(17, 8, 7)));
    assert_eq!(reason(&find(&at("17.5"), &current, None)), "UpgradeBlocked");
    current.helm = helm("gitlab", "1.2.3", "unknown");
    assert_eq!(reason(&find(&at("18"), &current, None)), "UpgradeBlocked");
    current.helm = helm("nextcloud", "1.2.3", "1.0.0");
    assert_eq!(reason(&find(&at("18"), &current, None)), "NotOurs");
    current.helm = Some(Ok(Deployed {
        runs: false,
        gone: true,
        ..deployed("nextcloud", "1.2.3", "1.0.0")
    }));
    assert_eq!(
        reason(&find(&at("18"), &current, None)),
        "",
        "another chart that is uninstalled is in nobody's way"
    );
    current.helm = Some(Err(Unreadable::Malformed));
    assert_eq!(reason(&find(&at("18"), &current, None)), "UpgradeBlocked");
}

/// What Helm has begun may have migrated the database, and never ran: its own version is completed first.
#[test]
fn what_helm_has_only_begun_did_not_run() {
    let mut current = current();
    current.helm = Some(Ok(Deployed {
        runs: false,
        ..deployed("gitlab", "8.8.6", "v17.8.6")
    }));
    let upgrade = find(&at("18"), &current, None).unwrap();
    assert_eq!((upgrade.now.chart.as_str(), upgrade.held), ("8.8.7", None));
    assert_eq!(
        (upgrade.running, upgrade.begun),
        (None, Some(Version::new(17, 8, 6)))
    );
    // Flux has not begun yet, and its release says nothing: the plan has recorded what Helm tried.
    let here = with_login(&mut current);
    current.helm = None;
    current.record = Some(record(None, upgrade.begun, here));
    for ready in ["Waiting", "Unknown"] {
        let mut written = release("8.8.7", None, ready);
        written.working_since = None;
        let upgrade = find(&at("18"), &current, Some(&written)).unwrap();
        assert_eq!(
            (upgrade.now.chart.as_str(), upgrade.held),
            ("8.8.7", None),
            "{ready}"
        );
    }
    // What is uninstalled did run.
    current.record = None;
    current.helm = Some(Ok(Deployed {
        runs: false,
        gone: true,
        ..deployed("gitlab", "8.8.6", "v17.8.6")
    }));
    let upgrade = find(&at("18"), &current, None);
    assert_eq!(reason(&upgrade), ASKING);
    let upgrade = upgrade.unwrap();
    assert_eq!(
        (upgrade.running, upgrade.begun),
        (Some(Version::new(17, 8, 6)), None)
    );
}
