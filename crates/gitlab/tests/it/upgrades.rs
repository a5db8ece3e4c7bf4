//! Upgrades: through every required stop, each after the last step is finished, and never a downgrade.

use kube::core::DynamicObject;
use serde_json::json;
use stanchion_api::gitlab::Phase;
use stanchion_testkit::postgres::{Database, Version};

use crate::bed::{Bed, ready};

/// A GitLab database with one migration in this state.
async fn database(bed: &Bed, version: Version) -> Database<'static> {
    let database = Database::of(version).await;
    let role = stanchion_testkit::unique::name("gitlab").replace('-', "_");
    database
        .execute(&format!(
            "CREATE ROLE {role} LOGIN PASSWORD 'pg-canary'; \
             CREATE TABLE public.batched_background_migrations (id bigint, status smallint); \
             GRANT SELECT ON public.batched_background_migrations TO {role}"
        ))
        .await;
    bed.secret(
        "pg",
        json!({
            "host": "127.0.0.1", "port": database.server().port().to_string(), "password": "pg-canary",
            "username": role, "database": database.name(),
        }),
    )
    .await;
    database
}

#[tokio::test]
async fn an_upgrade_leads_over_every_stop_and_waits_for_the_migrations_of_each() {
    let bed = Bed::new().await;
    let operator = bed.operator().await;
    bed.brought().await;
    let database = database(&bed, Version::V16).await;
    bed.instance("shop", json!({ "version": "17.3.0" })).await;
    bed.release_of("shop", "8.3.0").await;
    bed.installed("shop", "17.3.0").await;
    bed.phase("shop", Phase::Ready).await;

    database
        .execute("INSERT INTO batched_background_migrations VALUES (1, 1)")
        .await;
    bed.respec("shop", json!({ "version": "18.2.8" })).await;
    let held = bed.shows("shop", Phase::Deploying, "MigrationsUnfinished").await;
    let status = held.status.unwrap();
    assert_eq!(status.upgrade_path, ["17.5.5", "17.8.7", "17.11.7", "18.2.8"]);
    assert_eq!(status.observed_version.as_deref(), Some("17.3.0"));
    assert_eq!(status.target_version.as_deref(), Some("18.2.8"));
    assert_eq!(status.chart_version.as_deref(), Some("8.3.0"));

    database
        .execute("UPDATE batched_background_migrations SET status = 3")
        .await;
    // Nothing reports the end of the migrations; a reconcile finds it.
    bed.secret("pg-touched", json!({})).await;
    operator.kill().await;
    let _operator = bed.operator().await;
    for (chart, version, left) in [
        ("8.5.5", "17.5.5", 3),
        ("8.8.7", "17.8.7", 2),
        ("8.11.8", "17.11.7", 1),
    ] {
        bed.release_of("shop", chart).await;
        bed.installed("shop", version).await;
        bed.until("shop", |instance| {
            instance.status.as_ref().unwrap().upgrade_path.len() == left
        })
        .await;
    }
    bed.release_of("shop", "9.2.8").await;
    bed.installed("shop", "18.2.8").await;
    let done = bed.phase("shop", Phase::Ready).await;
    let status = done.status.unwrap();
    assert_eq!(status.observed_version.as_deref(), Some("18.2.8"));
    assert!(status.upgrade_path.is_empty());
}

#[tokio::test]
async fn nothing_leads_back() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    bed.brought().await;
    bed.instance("shop", json!({ "version": "18.2.8" })).await;
    bed.release_of("shop", "9.2.8").await;
    bed.installed("shop", "18.2.8").await;
    bed.phase("shop", Phase::Ready).await;
    bed.respec("shop", json!({ "version": "17.11.7" })).await;
    let refused = bed.shows("shop", Phase::Failed, "UpgradeBlocked").await;
    assert!(ready(&refused).1.contains("18.2.8"), "{:?}", ready(&refused));
    bed.release_of("shop", "9.2.8").await;
    bed.respec("shop", json!({ "version": "18.2.8" })).await;
    bed.phase("shop", Phase::Ready).await;
}

#[tokio::test]
async fn a_database_that_is_too_old_is_noticed_before_anything_is_installed() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    bed.brought().await;
    let _database = database(&bed, Version::V15).await;
    bed.instance("shop", json!({ "version": "18.2.8" })).await;
    let blocked = bed.shows("shop", Phase::Failed, "PostgresTooOld").await;
    assert!(
        ready(&blocked).1.contains("PostgreSQL 16"),
        "{:?}",
        ready(&blocked)
    );
    bed.no_release("shop").await;
    bed.respec("shop", json!({ "version": "17" })).await;
    bed.release_of("shop", "8.11.8").await;
}

#[tokio::test]
async fn a_managed_database_is_never_made_too_old() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    bed.brought().await;
    let postgres = json!({ "managed": true, "version": 15, "credentialsSecret": null });
    bed.instance("shop", json!({ "version": "18.2.8", "postgres": postgres }))
        .await;
    bed.shows("shop", Phase::Failed, "PostgresTooOld").await;
    let made = bed
        .foreign(&stanchion_gitlab::backends::kinds::PERCONA)
        .get_opt("shop-pg")
        .await
        .unwrap();
    assert!(made.is_none(), "{made:?}");
}

#[tokio::test]
async fn a_database_that_does_not_answer_holds_an_upgrade_unless_told_otherwise() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    bed.brought().await;
    bed.instance("shop", json!({ "version": "17.3.0" })).await;
    bed.release_of("shop", "8.3.0").await;
    bed.installed("shop", "17.3.0").await;
    bed.phase("shop", Phase::Ready).await;
    bed.respec("shop", json!({ "version": "17.5.5" })).await;
    let held = bed.shows("shop", Phase::Deploying, "MigrationsUnknown").await;
    assert!(ready(&held).1.contains("waitForMigrations"), "{:?}", ready(&held));
    bed.respec("shop", json!({ "upgrade": { "waitForMigrations": false } }))
        .await;
    bed.release_of("shop", "8.5.5").await;
    // A failed upgrade may be replaced by a newer version.
    bed.failed("shop", "UpgradeFailed", "words").await;
    bed.shows("shop", Phase::Degraded, "UpgradeFailed").await;
}

/// An API server turns a map that is applied empty into null, which used to cost a second upgrade.
#[tokio::test]
async fn a_value_that_is_taken_away_costs_one_upgrade() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    bed.brought().await;
    bed.instance("shop", json!({ "helm": { "values": { "mine": { "size": 1 } } } }))
        .await;
    let mine = |release: &DynamicObject| release.data.pointer("/spec/values/mine").cloned();
    let before = bed.release("shop").await;
    assert_eq!(mine(&before), Some(json!({ "size": 1 })));
    bed.respec(
        "shop",
        json!({ "helm": { "values": { "mine": { "size": null } } } }),
    )
    .await;
    let after = bed
        .release_where("shop", |release| {
            release.metadata.generation > before.metadata.generation
        })
        .await;
    assert_eq!(mine(&after), None);
}
