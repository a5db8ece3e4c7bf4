//! What an object reads wakes it, and only it.

use k8s_openapi::api::core::v1::Secret;
use serde_json::json;

use crate::test_env::{TestEnv, reading, writes_of};

#[tokio::test]
async fn a_missing_secret_wakes_exactly_who_waits_for_it() {
    let env = TestEnv::new("secrets").await;
    env.password("theirs", "x").await;
    env.widget("waits", reading("wanted")).await;
    env.widget("has", reading("theirs")).await;
    env.widget("waits-for-another", reading("never")).await;
    let operator = env.operator().await;
    for name in ["waits", "waits-for-another"] {
        env.until(&operator, name, |widget| widget.fails_with("SecretMissing"))
            .await;
    }
    env.settled(&operator, "has").await;
    let passes = || ["waits", "has", "waits-for-another"].map(|name| env.world.passes(name));

    let before = passes();
    env.password("unrelated", "x").await;
    env.flush(&operator).await;
    assert_eq!(passes(), before, "a Secret that nobody reads wakes nobody");

    env.password("wanted", "hunter2").await;
    env.settled(&operator, "waits").await;
    assert_eq!(env.world.thing("waits").unwrap().password.unwrap(), "hunter2");
    let after = passes();
    assert!(after[0] > before[0]);
    assert_eq!(after[1..], before[1..], "zero passes for the others");
    // The event woke it, and not the periodic retry.
    assert!(!operator.log.text().contains("hunter2"));
}

#[tokio::test]
async fn a_secret_that_changes_or_goes_wakes_its_reader() {
    let env = TestEnv::new("secrets").await;
    env.password("mine", "one").await;
    env.widget("reads", reading("mine")).await;
    let operator = env.operator().await;
    env.settled(&operator, "reads").await;
    env.password("mine", "two").await;
    let has = async |password: &str| {
        let password = Some(password.to_owned());
        operator
            .wait()
            .eventually("the new password", async || {
                env.world.thing("reads").unwrap().password == password
            })
            .await;
    };
    has("two").await;
    env.delete::<Secret>("mine").await;
    env.until(&operator, "reads", |widget| widget.fails_with("SecretMissing"))
        .await;
    env.password("mine", "three").await;
    has("three").await;
    // Objects that are no longer read no longer wake it.
    env.respec("reads", json!({ "secretRef": null })).await;
    env.settled(&operator, "reads").await;
    let before = env.world.passes("reads");
    env.password("mine", "four").await;
    env.flush(&operator).await;
    assert_eq!(env.world.passes("reads"), before);
}

/// The Secret changes after it was read and before the pass has ended: the classic lost update.
#[tokio::test]
async fn a_secret_that_changes_during_the_reconcile_is_not_missed() {
    let env = TestEnv::new("secrets").await;
    env.password("mine", "old").await;
    let operator = env.operator().await;
    env.flush(&operator).await;
    env.world.hold("reads");
    env.widget("reads", reading("mine")).await;
    let is_held = async || env.world.running("reads") == 1 && has_read(&operator.faults, "mine");
    operator
        .wait()
        .eventually("the pass to have read the Secret", is_held)
        .await;
    env.password("mine", "new").await;
    env.heard(&operator).await;
    env.world.release("reads");
    env.settled(&operator, "reads").await;
    assert_eq!(env.world.thing("reads").unwrap().password.unwrap(), "new");
    assert_eq!(env.world.passes("reads"), 2);
}

fn has_read(faults: &stanchion_testkit::faults::Faults, secret: &str) -> bool {
    faults
        .calls()
        .iter()
        .any(|call| call.target.name == secret && call.served == Some(200))
}

/// Nothing that a pass does wakes the object again: a converged object is idle.
#[tokio::test]
async fn our_own_writes_enqueue_nothing() {
    let env = TestEnv::with_a_reader("secrets").await;
    let operator = env.operator().await;
    env.settled(&operator, "one").await;
    // One pass that worked, and at most one more for the child's event if it came before the response to the write.
    let passes = env.world.passes("one");
    assert!(passes <= 2, "{passes}");
    let before = writes_of(&operator);
    env.flush(&operator).await;
    assert_eq!(env.world.passes("one"), passes);
    assert_eq!(writes_of(&operator), before);
}
