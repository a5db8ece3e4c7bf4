use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::*;
use crate::instance::observe::Answer;
use crate::record::Versions;

mod begun;
mod helm;

const ASKING: &str = "AskingForMigrations";

fn wanted(spec: &Value) -> Wanted {
    let mut whole = json!({
        "domains": { "gitlab": "git.example.com" },
        "postgres": { "credentialsSecret": "pg" }, "redis": { "credentialsSecret": "redis" },
    });
    for (key, value) in spec.as_object().unwrap() {
        whole[key] = value.clone();
    }
    Wanted::shop(whole)
}

fn current() -> Current {
    let map = json!({
        "versions": {
            "17.3.7": { "chartVersion": "8.3.7" }, "17.5.5": { "chartVersion": "8.5.5" },
            "17.8.6": { "chartVersion": "8.8.6" }, "17.8.7": { "chartVersion": "8.8.7" },
            "17.11.7": { "chartVersion": "8.11.8" }, "18.2.8": { "chartVersion": "9.2.8" },
        },
        "aliases": { "latest": "18.2.8" },
    });
    Current {
        map: Some(serde_json::from_value(map).unwrap()),
        ..mapless()
    }
}

/// Nothing but the instance.
fn mapless() -> Current {
    let instance = json!({
        "apiVersion": "k8s.bnerd.com/v1alpha1", "kind": "GitlabInstance", "metadata": { "name": "shop", "namespace": "gl" },
        "spec": { "domains": { "gitlab": "git.example.com" } },
    });
    Current::alone(&serde_json::from_value(instance).unwrap())
}

fn answered(version: u32, unfinished: i64) -> Database {
    Database::Answered(Answer { version, unfinished })
}

/// A release that requests one chart and runs another.
fn release(described: &str, runs: Option<(&str, &str)>, ready: &str) -> Release {
    let history = runs.map(
        |(chart, version)| json!([{ "chartVersion": chart, "appVersion": version, "status": "deployed" }]),
    );
    let (ready, reason) = match ready {
        "False" => ("False", "UpgradeFailed"),
        "Waiting" => ("False", "SourceNotReady"),
        other => (other, "x"),
    };
    let object: DynamicObject = serde_json::from_value(json!({
        "metadata": { "name": "shop-gitlab", "generation": 1 },
        "spec": { "chart": { "spec": { "version": described } } },
        "status": {
            "observedGeneration": 1, "history": history,
            "conditions": [{ "type": "Ready", "status": ready, "reason": reason, "message": "words", "lastTransitionTime": "2026-01-01T00:00:00Z" }],
        },
    }))
    .unwrap();
    Release::of(&object)
}

fn at(version: &str) -> Wanted {
    wanted(&json!({ "version": version }))
}

fn reason(finding: &Check<UpgradePlan>) -> &'static str {
    match finding {
        Err(blocker) => blocker.reason,
        Ok(upgrade) => upgrade.held.as_ref().map_or("", |held| held.blocker.reason),
    }
}

#[test]
fn a_first_installation_is_the_version_itself() {
    let upgrade = find(&at("latest"), &current(), None).unwrap();
    assert_eq!((upgrade.now.chart.as_str(), upgrade.held), ("9.2.8", None));
    // A requested chart that was never begun does not require stops. One that failed may have made the database.
    for (ready, expected) in [("Waiting", "9.2.8"), ("False", "8.3.7")] {
        let never_ran = release("8.3.7", None, ready);
        let upgrade = find(&at("latest"), &current(), Some(&never_ran)).unwrap();
        assert_eq!(upgrade.now.chart, expected, "{ready}");
    }
}

#[test]
fn the_next_stop_is_installed_when_the_last_one_is_done() {
    let runs = release("8.3.7", Some(("8.3.7", "v17.3.7")), "True");
    let mut current = current();
    let asked = find(&at("18"), &current, Some(&runs));
    assert_eq!(reason(&asked), ASKING);
    assert_eq!(
        asked.unwrap().now.chart,
        "8.3.7",
        "nothing moves before the answer"
    );
    current.database = answered(16, 2);
    assert_eq!(
        reason(&find(&at("18"), &current, Some(&runs))),
        "MigrationsUnfinished"
    );
    current.database = Database::NoAnswer("no route".into());
    assert_eq!(
        reason(&find(&at("18"), &current, Some(&runs))),
        "MigrationsUnknown"
    );
    current.database = answered(16, 0);
    let upgrade = find(&at("18"), &current, Some(&runs)).unwrap();
    assert_eq!((upgrade.now.chart.as_str(), upgrade.held), ("8.5.5", None));
    assert_eq!(upgrade.path.len(), 4);
}

#[test]
fn nothing_is_changed_while_flux_is_at_work_but_what_failed_is_replaced() {
    let mut current = current();
    current.database = answered(16, 0);
    let on_its_way = release("8.5.5", Some(("8.3.7", "17.3.7")), "Unknown");
    let upgrade = find(&at("18"), &current, Some(&on_its_way)).unwrap();
    assert_eq!(
        (upgrade.now.chart.as_str(), upgrade.held),
        ("8.5.5", None),
        "it stays on its way"
    );
    // The map has changed in the meantime, so that another chart is next.
    let other_way = release("8.6.0", Some(("8.3.7", "17.3.7")), "Unknown");
    let upgrade = find(&at("18"), &current, Some(&other_way));
    assert_eq!(reason(&upgrade), "ReleaseAtWork");
    assert_eq!(upgrade.unwrap().now.chart, "8.6.0");
    let failed = release("8.5.4", Some(("8.3.7", "17.3.7")), "False");
    assert_eq!(
        find(&at("18"), &current, Some(&failed)).unwrap().now.chart,
        "8.5.5"
    );
    let beyond = release("8.6.0", Some(("8.3.7", "17.3.7")), "False");
    let refused = find(&at("18"), &current, Some(&beyond)).unwrap_err();
    assert!(
        refused.message.contains("neither 17.6.0 nor"),
        "{}",
        refused.message
    );
    let idle_and_bad = release("8.3.7", Some(("8.3.7", "17.3.7")), "False");
    assert_eq!(
        reason(&find(&at("18"), &current, Some(&idle_and_bad))),
        "ReleaseFailed"
    );
}

#[test]
fn a_chart_that_cannot_be_had_is_replaced_or_left_behind() {
    let mut current = current();
    let corrected = release("8.5.99", Some(("8.3.7", "17.3.7")), "Waiting");
    let waits = find(&at("18"), &current, Some(&corrected));
    assert_eq!(reason(&waits), ASKING, "it may be a chart of the running version");
    assert_eq!(waits.unwrap().now.chart, "8.5.99");
    current.database = answered(16, 0);
    let upgrade = find(&at("18"), &current, Some(&corrected)).unwrap();
    assert_eq!((upgrade.now.chart.as_str(), upgrade.held), ("8.5.5", None));
    // The running version's migrations are still checked.
    current.database = Database::NotAsked;
    let withdrawn = release("8.3.7", Some(("8.3.7", "17.3.7")), "Waiting");
    assert_eq!(reason(&find(&at("18"), &current, Some(&withdrawn))), ASKING);
    current.database = answered(16, 0);
    let upgrade = find(&at("18"), &current, Some(&withdrawn)).unwrap();
    assert_eq!((upgrade.now.chart.as_str(), upgrade.held), ("8.5.5", None));
}

/// What Flux is doing may have migrated the database: another chart, older or newer, waits until it has ended.
#[test]
fn what_flux_has_begun_ends_before_the_spec_leads_elsewhere() {
    let mut current = current();
    current.database = answered(16, 0);
    let upgrades = release("8.8.7", Some(("8.5.5", "17.5.5")), "Unknown");
    let patch_is_back = release("8.11.8", Some(("8.8.6", "17.8.6")), "Unknown");
    let installs = release("8.3.7", None, "Unknown");
    for (version, at_work) in [("17.5.5", upgrades), ("17.8.7", patch_is_back), ("18", installs)] {
        let held = find(&at(version), &current, Some(&at_work));
        assert_eq!(reason(&held), "ReleaseAtWork", "{version}");
        assert_eq!(held.unwrap().now.chart, at_work.chart, "{version}");
    }
    // Flux at work on the running chart migrates nothing.
    let repeats = release("8.5.5", Some(("8.5.5", "17.5.5")), "Unknown");
    assert_eq!(reason(&find(&at("17.5.5"), &current, Some(&repeats))), "");
    // When it has failed, the person who changes the spec decides.
    let failed = release("8.8.7", Some(("8.5.5", "17.5.5")), "False");
    let back = find(&at("17.5.5"), &current, Some(&failed)).unwrap();
    assert_eq!((back.now.chart.as_str(), back.held), ("8.5.5", None));
}

/// A patch release needs no finished migrations; the minor version after it does.
#[test]
fn a_patch_that_is_not_installed_does_not_skip_the_migrations_check() {
    for ready in ["Waiting", "False"] {
        let patch = release("8.8.7", Some(("8.8.6", "17.8.6")), ready);
        assert_eq!(
            reason(&find(&at("18"), &current(), Some(&patch))),
            ASKING,
            "{ready}"
        );
    }
    // The migrations were finished before another minor version was tried.
    let minor = release("8.11.0", Some(("8.8.6", "17.8.6")), "False");
    let upgrade = find(&at("18"), &current(), Some(&minor)).unwrap();
    assert_eq!((upgrade.now.chart.as_str(), upgrade.held), ("8.11.8", None));
    // Of a range of charts it is unknown which one failed.
    let range = release("8.x", Some(("8.8.6", "17.8.6")), "False");
    assert_eq!(reason(&find(&at("18"), &current(), Some(&range))), ASKING);
}

#[test]
fn a_patch_waits_for_nothing() {
    let runs = release("8.8.6", Some(("8.8.6", "17.8.6")), "Unknown");
    let upgrade = find(&at("17.8"), &current(), Some(&runs)).unwrap();
    assert_eq!((upgrade.now.chart.as_str(), upgrade.held), ("8.8.7", None));
}

#[test]
fn an_impossible_upgrade_is_reported_and_changes_nothing() {
    let runs = release("9.2.8", Some(("9.2.8", "18.2.8")), "True");
    assert_eq!(
        reason(&find(&at("17"), &current(), Some(&runs))),
        "UpgradeBlocked"
    );
    assert_eq!(reason(&find(&at("99"), &current(), None)), "VersionUnknown");
    assert_eq!(reason(&find(&at("17"), &mapless(), None)), "VersionMapMissing");
    let unknown = release("7.0.0", Some(("7.0.0", "")), "True");
    assert_eq!(
        reason(&find(&at("17"), &current(), Some(&unknown))),
        "UpgradeBlocked"
    );
}

#[test]
fn a_named_chart_needs_no_map_and_no_way() {
    let named = wanted(&json!({ "helm": { "version": "9.4.0" } }));
    let runs = release("8.3.7", Some(("8.3.7", "17.3.7")), "True");
    let upgrade = find(&named, &mapless(), Some(&runs)).unwrap();
    assert_eq!(upgrade.now.chart, "9.4.0");
    assert_eq!(upgrade.target, Some(Version::new(18, 4, 0)), "an estimate");
    let runs = release("9.4.0", Some(("9.4.0", "v18.4.2")), "True");
    let upgrade = find(&named, &mapless(), Some(&runs)).unwrap();
    assert_eq!(upgrade.target, Some(Version::new(18, 4, 2)), "what runs");
    let mapped = wanted(&json!({ "helm": { "version": "8.11.8" } }));
    assert_eq!(
        find(&mapped, &current(), None).unwrap().target,
        Some(Version::new(17, 11, 7))
    );
    for range in ["9.x", "9", "*", ">= 8.0.0"] {
        let open = wanted(&json!({ "helm": { "version": range } }));
        let upgrade = find(&open, &mapless(), Some(&runs)).unwrap();
        assert_eq!((upgrade.now.chart.as_str(), upgrade.target), (range, None));
    }
}

#[test]
fn an_old_server_is_noticed_before_something_new_is_installed() {
    let mut current = current();
    current.secrets.insert("pg".into(), Secret::default());
    current.database = answered(15, 0);
    assert_eq!(reason(&find(&at("18"), &current, None)), "PostgresTooOld");
    assert_eq!(reason(&find(&at("17"), &current, None)), "");
    // The running version stays.
    let runs = release("9.2.8", Some(("9.2.8", "18.2.8")), "True");
    assert_eq!(reason(&find(&at("18"), &current, Some(&runs))), "");
}

#[test]
fn a_release_that_somebody_deleted_comes_back_as_it_was() {
    let mut current = current();
    let wanted = Wanted {
        installed: Some(Version::new(17, 3, 7)),
        ..at("18")
    };
    let upgrade = find(&wanted, &current, None);
    assert_eq!(reason(&upgrade), ASKING);
    assert_eq!(
        upgrade.unwrap().now.chart,
        "8.3.7",
        "the database is of that version"
    );
    current.database = answered(16, 0);
    let upgrade = find(&wanted, &current, None).unwrap();
    assert_eq!((upgrade.now.chart.as_str(), upgrade.held), ("8.5.5", None));
    let back = release("8.3.7", None, "Unknown");
    assert_eq!(reason(&find(&wanted, &current, Some(&back))), "ReleaseAtWork");
    let older = Wanted {
        installed: Some(Version::new(18, 2, 8)),
        ..at("17")
    };
    let refused = find(&older, &current, None);
    assert_eq!(reason(&refused), "UpgradeBlocked");
    let words = refused.unwrap_err().message;
    assert!(
        words.contains("status.installedVersion records 18.2.8"),
        "{words}"
    );
}

/// The login of the database, and its identity in the record.
fn with_login(current: &mut Current) -> &'static str {
    let login = json!({ "host": "db", "port": "5432", "password": "p" });
    let secret = json!({ "metadata": { "name": "pg" }, "stringData": login });
    let mut secret: Secret = serde_json::from_value(secret).unwrap();
    secret.data = secret.string_data.take().map(|data| {
        let bytes = |(key, value): (String, String)| (key, k8s_openapi::ByteString(value.into_bytes()));
        data.into_iter().map(bytes).collect()
    });
    current.secrets.insert("pg".into(), secret);
    "db:5432/gitlabhq_production"
}

fn record(ran: Option<Version>, begun: Option<Version>, database: &str) -> ConfigMap {
    let record = Versions { ran, begun }.object("shop", database).unwrap();
    serde_json::from_value(record).unwrap()
}

/// A database outlives its instance, and so does the record of its version.
#[test]
fn a_database_that_outlived_its_instance_is_not_given_an_older_version() {
    let mut current = current();
    let here = with_login(&mut current);
    let newest = Some(Version::new(18, 2, 8));
    current.record = Some(record(newest, None, here));
    let refused = find(&at("17"), &current, None);
    assert_eq!(reason(&refused), "UpgradeBlocked");
    let words = refused.unwrap_err().message;
    assert!(words.contains("ConfigMap shop-gitlab-installed"), "{words}");
    assert_eq!(reason(&find(&at("18"), &current, None)), "");
    current.record = Some(record(newest, None, "other:5432/gitlabhq_production"));
    assert_eq!(
        reason(&find(&at("17"), &current, None)),
        "",
        "another database has another history"
    );
    current.record = Some(record(newest, None, here));
    let elsewhere = json!({ "values": { "global": { "psql": { "host": "db-2" } } } });
    let elsewhere = wanted(&json!({ "version": "17", "helm": elsewhere }));
    assert_eq!(
        reason(&find(&elsewhere, &current, None)),
        "",
        "the values name another database"
    );
}
