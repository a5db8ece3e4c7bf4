//! Upgrades: through every required stop, each after the last step is finished, and never a downgrade.

use kube::core::DynamicObject;
use serde_json::json;
use stanchion_api::gitlab::Phase;
use stanchion_testkit::postgres::{Database, Version};

use crate::test_env::{TestEnv, ready};

/// A GitLab database with one migration in this state.
async fn database(env: &TestEnv, version: Version) -> Database<'static> {
    let database = Database::of(version).await;
    let role = stanchion_testkit::unique::name("gitlab").replace('-', "_");
    database
        .execute(&format!(
            "CREATE ROLE {role} LOGIN PASSWORD 'pg-canary'; \
             CREATE TABLE public.batched_background_migrations (id bigint, status smallint); \
             GRANT SELECT ON public.batched_background_migrations TO {role}"
        ))
        .await;
    env.secret(
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
    let (env, operator) = TestEnv::operated().await;
    let database = database(&env, Version::V16).await;
    env.running("17.3.0", "8.3.0").await;

    database
        .execute("INSERT INTO batched_background_migrations VALUES (1, 1)")
        .await;
    env.respec("shop", json!({ "version": "18.2.8" })).await;
    let held = env.shows("shop", Phase::Deploying, "MigrationsUnfinished").await;
    let status = held.status.unwrap();
    assert_eq!(status.upgrade_path, ["17.5.5", "17.8.7", "17.11.7", "18.2.8"]);
    assert_eq!(status.observed_version.as_deref(), Some("17.3.0"));
    assert_eq!(status.target_version.as_deref(), Some("18.2.8"));
    assert_eq!(status.chart_version.as_deref(), Some("8.3.0"));

    database
        .execute("UPDATE batched_background_migrations SET status = 3")
        .await;
    // Nothing reports the end of the migrations; a reconcile finds it.
    env.secret("pg-touched", json!({})).await;
    operator.kill().await;
    let _operator = env.operator().await;
    for (chart, version, left) in [
        ("8.5.5", "17.5.5", 3),
        ("8.8.7", "17.8.7", 2),
        ("8.11.8", "17.11.7", 1),
    ] {
        env.release_of("shop", chart).await;
        env.installed("shop", version).await;
        env.until("shop", |instance| {
            instance.status.as_ref().unwrap().upgrade_path.len() == left
        })
        .await;
    }
    env.release_of("shop", "9.2.8").await;
    env.installed("shop", "18.2.8").await;
    let done = env.phase("shop", Phase::Ready).await;
    let status = done.status.unwrap();
    assert_eq!(status.observed_version.as_deref(), Some("18.2.8"));
    assert!(status.upgrade_path.is_empty());
}

#[tokio::test]
async fn a_downgrade_is_refused() {
    let (env, _operator) = TestEnv::operated().await;
    env.running("18.2.8", "9.2.8").await;
    env.respec("shop", json!({ "version": "17.11.7" })).await;
    let refused = env.shows("shop", Phase::Failed, "UpgradeBlocked").await;
    assert!(ready(&refused).1.contains("18.2.8"), "{:?}", ready(&refused));
    env.release_of("shop", "9.2.8").await;
    env.respec("shop", json!({ "version": "18.2.8" })).await;
    env.phase("shop", Phase::Ready).await;
}

#[tokio::test]
async fn a_database_that_is_too_old_is_noticed_before_anything_is_installed() {
    let (env, _operator) = TestEnv::operated().await;
    let _database = database(&env, Version::V15).await;
    env.instance("shop", json!({ "version": "18.2.8" })).await;
    let blocked = env.shows("shop", Phase::Failed, "PostgresTooOld").await;
    assert!(
        ready(&blocked).1.contains("PostgreSQL 16"),
        "{:?}",
        ready(&blocked)
    );
    env.no_release("shop").await;
    env.respec("shop", json!({ "version": "17" })).await;
    env.release_of("shop", "8.11.8").await;
}

#[tokio::test]
async fn a_managed_database_is_never_made_too_old() {
    let (env, _operator) = TestEnv::operated().await;
    let postgres = json!({ "managed": true, "version": 15, "credentialsSecret": null });
    env.instance("shop", json!({ "version": "18.2.8", "postgres": postgres }))
        .await;
    env.shows("shop", Phase::Failed, "PostgresTooOld").await;
    let made = env
        .external(&stanchion_gitlab::backends::kinds::PERCONA)
        .get_opt("shop-pg")
        .await
        .unwrap();
    assert!(made.is_none(), "{made:?}");
}

#[tokio::test]
async fn an_unreachable_database_blocks_an_upgrade_unless_overridden() {
    let (env, _operator) = TestEnv::operated().await;
    env.running("17.3.0", "8.3.0").await;
    env.respec("shop", json!({ "version": "17.5.5" })).await;
    let held = env.shows("shop", Phase::Deploying, "MigrationsUnknown").await;
    assert!(ready(&held).1.contains("waitForMigrations"), "{:?}", ready(&held));
    env.respec("shop", json!({ "upgrade": { "waitForMigrations": false } }))
        .await;
    env.release_of("shop", "8.5.5").await;
    // A failed upgrade may be replaced by a newer version.
    env.failed("shop", "UpgradeFailed", "words").await;
    env.shows("shop", Phase::Degraded, "UpgradeFailed").await;
}

/// A wrong database has no unfinished migrations: it answers for nothing.
#[tokio::test]
async fn a_database_that_is_not_gitlabs_does_not_permit_an_upgrade() {
    let (env, _operator) = TestEnv::operated().await;
    let database = database(&env, Version::V16).await;
    database
        .execute("DROP TABLE public.batched_background_migrations")
        .await;
    env.running("17.3.0", "8.3.0").await;
    env.respec("shop", json!({ "version": "17.5.5" })).await;
    let held = env.shows("shop", Phase::Deploying, "MigrationsUnknown").await;
    let words = ready(&held).1;
    assert!(
        words.contains("has no table batched_background_migrations"),
        "{words}"
    );
    env.release_of("shop", "8.3.0").await;
}

/// An API server turns a map that is applied empty into null, which used to cost a second upgrade.
#[tokio::test]
async fn a_value_that_is_taken_away_costs_one_upgrade() {
    let (env, _operator) = TestEnv::operated().await;
    env.instance("shop", json!({ "helm": { "values": { "mine": { "size": 1 } } } }))
        .await;
    let mine = |release: &DynamicObject| release.data.pointer("/spec/values/mine").cloned();
    let before = env.release("shop").await;
    assert_eq!(mine(&before), Some(json!({ "size": 1 })));
    env.respec(
        "shop",
        json!({ "helm": { "values": { "mine": { "size": null } } } }),
    )
    .await;
    let after = env
        .release_where("shop", |release| {
            release.metadata.generation > before.metadata.generation
        })
        .await;
    assert_eq!(mine(&after), None);
}
