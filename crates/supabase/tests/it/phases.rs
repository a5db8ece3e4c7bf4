//! The phases of a new project: each is held and checked.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use serde_json::json;
use stanchion_api::SupabaseProject;
use stanchion_api::supabase::Phase;
use stanchion_postgres::LEFT_ALONE;
use stanchion_testkit::faults::{Call, CutPoint, Fault, Rule};
use stanchion_testkit::proxy::Cut;
use stanchion_testkit::wait;

use crate::database_env::target;
use crate::test_env::{Running, TestEnv, condition};

fn phase(project: &SupabaseProject) -> Option<Phase> {
    project.status.as_ref().and_then(|status| status.phase)
}

/// Whether a request writes the Secret with the keys.
fn writes_keys(call: &Call) -> bool {
    call.write.is_some() && call.target.resource == "secrets"
}

/// The project at the moment before its keys are written.
async fn held_at_the_keys(env: &TestEnv, operator: &Running) -> SupabaseProject {
    let rule = Rule::when(writes_keys, Fault::Cut(CutPoint::Before));
    operator.faults.script(rule);
    env.project("shop", json!({})).await;
    operator.faults.cut().await;
    env.api::<SupabaseProject>().get("shop").await.unwrap()
}

#[tokio::test]
async fn before_anybody_looks_it_is_pending() {
    let env = TestEnv::new().await;
    env.project("shop", json!({})).await;
    let project = env.api::<SupabaseProject>().get("shop").await.unwrap();
    assert_eq!(phase(&project), Some(Phase::Pending));
}

#[tokio::test]
async fn a_first_initialisation_is_announced_and_goes_on_where_it_was_cut_short() {
    let env = TestEnv::new().await;
    let operator = env.operator().await;
    let held = held_at_the_keys(&env, &operator).await;
    assert_eq!(phase(&held), Some(Phase::InitializingDatabase));
    assert_eq!(
        held.status.unwrap().message.as_deref(),
        Some("Initializing database schemas and roles")
    );
    drop(operator);
    let second = env.operator().await;
    env.running("shop").await;
    let statuses = second.faults.writes();
    let statuses = statuses.iter().filter(|call| call.target.subresource == "status");
    // A phase is written once; pods become ready one after the other.
    assert!(statuses.count() <= 3);
}

#[tokio::test]
async fn a_database_that_does_not_answer_yet_is_waited_for() {
    let env = TestEnv::new().await;
    let proxy = env.proxy().await;
    proxy.cut(Cut::Refuse).await;
    let _operator = env.operator().await;
    env.project("shop", json!({})).await;
    let waits = |project: &SupabaseProject| phase(project) == Some(Phase::ValidatingDependencies);
    let project = env.until("shop", waits).await;
    let lost = ("False".to_owned(), "ConnectionRefused".to_owned());
    assert_eq!(condition(&project, "PostgreSQLConnected"), Some(lost));
    assert_eq!(condition(&project, "Progressing").unwrap().0, "True");
    proxy.restore().await;
    env.running("shop").await;
}

/// The keys are restored from a backup that has fewer of them.
#[tokio::test]
async fn keys_that_are_completed_are_announced_where_the_database_has_everything() {
    let env = TestEnv::new().await;
    let operator = env.operator().await;
    env.project("shop", json!({})).await;
    env.running("shop").await;
    let secrets = env.api::<Secret>();
    let mut data = secrets.get("shop-jwt").await.unwrap().data.unwrap();
    env.delete::<SupabaseProject>("shop").await;
    let projects = env.api::<SupabaseProject>();
    Box::pin(env.wait().gone(&projects, "shop")).await;
    env.wait().gone(&secrets, "shop-jwt").await;
    drop(operator);
    data.remove("publishable-key");
    let restored: Secret = serde_json::from_value(json!({
        "metadata": { "name": "shop-jwt" }, "data": data,
    }))
    .unwrap();
    secrets.create(&PostParams::default(), &restored).await.unwrap();
    let operator = env.operator().await;
    let held = held_at_the_keys(&env, &operator).await;
    assert_eq!(phase(&held), Some(Phase::DeployingSecrets));
}

/// Another controller loses its connection to the server: a project that has none of its own, and is not asked for half a
/// minute, says so all the same.
#[tokio::test]
async fn a_connection_that_another_pool_loses_is_a_sign_for_the_project() {
    let env = TestEnv::new().await;
    let proxy = env.proxy().await;
    let _operator = env.operator().await;
    env.project("shop", json!({})).await;
    env.running("shop").await;
    env.db_env
        .execute("CREATE ROLE another LOGIN PASSWORD 'another'")
        .await;
    let url = format!(
        "postgresql://another:another@{}/postgres?sslmode=disable",
        proxy.address()
    );
    let other = env.pools.get(&target(&url)).await.unwrap();
    env.pools.close_idle().await;
    drop(other);
    proxy.cut(Cut::Refuse).await;
    // Shorter than the time after which the project would be asked by itself.
    let projects = env.api::<SupabaseProject>();
    let soon = wait::within(Duration::from_secs(25));
    let project = Box::pin(soon.until(&projects, "shop", |project| {
        condition(project, "PostgreSQLConnected").is_some_and(|found| found.0 == "False")
    }))
    .await;
    assert_eq!(condition(&project, "Ready").unwrap().0, "False");
    let conditions = project.status.unwrap().conditions;
    let connected = conditions
        .iter()
        .find(|one| one.type_ == "PostgreSQLConnected")
        .unwrap();
    assert!(connected.message.ends_with(LEFT_ALONE), "{}", connected.message);
    proxy.restore().await;
    env.running("shop").await;
}
