//! Random databases and random manifests. Each step changes the database at random and applies a random manifest to it:
//! the displayed script runs as it is, after an apply the diff is empty, and nobody has lost anything that the manifest
//! does not manage.

mod database;
mod held;
mod manifests;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use stanchion_roles::apply;
use stanchion_roles::expand::expand;
use stanchion_roles::manifest::{Strictness, load};
use stanchion_roles::plan::Mode;
use stanchion_roles::render;
use stanchion_testkit::postgres::{Version, versions};

use crate::support::Lab;
use database::{SETUP, disturbance};
use held::{held, stolen};
use manifests::manifest;

type Step = (Vec<String>, String, bool);

async fn run(lab: &Lab, (disturbances, manifest, additive): Step) -> Result<(), TestCaseError> {
    for sql in &disturbances {
        let server = lab.database.server();
        let _ = server.try_query(lab.database.name(), &lab.text(sql)).await;
    }
    let mode = if additive {
        Mode::Additive
    } else {
        Mode::Authoritative
    };
    // With the manifest's names, not the server's.
    let generic = expand(&load(&manifest, Strictness::Strict).unwrap().value);
    let before = held(lab).await;
    let plan = lab.plan(&manifest, mode).await;
    if !plan.blockers.is_empty() {
        let refused = lab.apply_as(&manifest, mode).await;
        prop_assert!(matches!(refused, Err(apply::Error::Blocked(_))), "{refused:?}");
        return Ok(());
    }
    // The displayed script runs as it is, in that order.
    let script = format!("BEGIN; {}; ROLLBACK", render::script(&plan));
    lab.database
        .server()
        .try_query(lab.database.name(), &script)
        .await
        .map_err(|error| {
            TestCaseError::fail(format!("the script fails: {error:?}\n{}", lab.generic(&script)))
        })?;
    match lab.apply_as(&manifest, mode).await {
        Ok(_) => {}
        Err(error) => {
            return Err(TestCaseError::fail(format!(
                "{error}\n{}",
                lab.generic(&render::script(&plan))
            )));
        }
    }
    let left = lab.generic(&render::script(&lab.plan(&manifest, mode).await));
    prop_assert!(
        left.is_empty(),
        "left to do:\n{left}\nwas planned:\n{}",
        lab.generic(&render::script(&plan))
    );
    let after = held(lab).await;
    let stolen = stolen(&before, &after, &generic, additive);
    prop_assert!(
        stolen.is_empty(),
        "taken without right: {stolen:?}\nby:\n{}",
        lab.generic(&render::script(&plan))
    );
    Ok(())
}

fn on(version: Version) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let lab = runtime.block_on(Lab::new(version));
    runtime.block_on(lab.sql(SETUP));
    // A step takes a second on a busy machine. PROPTEST_CASES=500 is for an idle machine, and uses new random cases.
    // Without it, every run has the same cases, so that a failure is caused by a change.
    let asked: Option<u32> = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|count| count.parse().ok());
    let cases = asked.unwrap_or(24);
    let config = Config {
        cases,
        max_shrink_iters: 60,
        failure_persistence: None,
        ..Config::default()
    };
    let mut runner = match asked {
        Some(_) => TestRunner::new(config),
        None => TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha)),
    };
    runner
        .run(&(vec(disturbance(), 0..8), manifest(), any::<bool>()), |step| {
            runtime.block_on(run(&lab, step))
        })
        .unwrap_or_else(|error| panic!("PostgreSQL {version}: {error}"));
}

#[test]
fn random_manifests_converge_from_random_states() {
    versions().into_iter().for_each(on);
}
