//! What an object reads wakes it, and only it.

use k8s_openapi::api::core::v1::Secret;
use serde_json::json;

use crate::toy::{Bed, WidgetSpec};

fn with_secret(name: &str) -> WidgetSpec {
    WidgetSpec {
        size: 1,
        secret_ref: Some(name.into()),
        ..WidgetSpec::default()
    }
}

#[tokio::test]
async fn a_missing_secret_wakes_exactly_who_waits_for_it() {
    let bed = Bed::new("secrets").await;
    bed.secret("theirs", "x").await;
    bed.widget("waits", with_secret("wanted")).await;
    bed.widget("has", with_secret("theirs")).await;
    bed.widget("waits-for-another", with_secret("never")).await;
    let operator = bed.operator().await;
    for name in ["waits", "waits-for-another"] {
        bed.until(&operator, name, |widget| widget.fails_with("SecretMissing"))
            .await;
    }
    bed.settled(&operator, "has").await;
    let passes = || ["waits", "has", "waits-for-another"].map(|name| bed.world.passes(name));

    let before = passes();
    bed.secret("unrelated", "x").await;
    bed.flush(&operator).await;
    assert_eq!(passes(), before, "a Secret that nobody reads wakes nobody");

    bed.secret("wanted", "hunter2").await;
    bed.settled(&operator, "waits").await;
    assert_eq!(bed.world.thing("waits").unwrap().password.unwrap(), "hunter2");
    let after = passes();
    assert!(after[0] > before[0]);
    assert_eq!(after[1..], before[1..], "zero passes for the others");
    // The event woke it, and not the periodic retry.
    assert!(!operator.log.text().contains("hunter2"));
}

#[tokio::test]
async fn a_secret_that_changes_or_goes_wakes_its_reader() {
    let bed = Bed::new("secrets").await;
    bed.secret("mine", "one").await;
    bed.widget("reads", with_secret("mine")).await;
    let operator = bed.operator().await;
    bed.settled(&operator, "reads").await;
    bed.secret("mine", "two").await;
    let has = async |password: &str| {
        let password = Some(password.to_owned());
        operator
            .wait()
            .eventually("the new password", async || {
                bed.world.thing("reads").unwrap().password == password
            })
            .await;
    };
    has("two").await;
    bed.delete::<Secret>("mine").await;
    bed.until(&operator, "reads", |widget| widget.fails_with("SecretMissing"))
        .await;
    bed.secret("mine", "three").await;
    has("three").await;
    // Objects that are no longer read no longer wake it.
    bed.respec("reads", json!({ "secretRef": null })).await;
    bed.settled(&operator, "reads").await;
    let before = bed.world.passes("reads");
    bed.secret("mine", "four").await;
    bed.flush(&operator).await;
    assert_eq!(bed.world.passes("reads"), before);
}

/// The Secret changes after it was read and before the pass has ended: the classic lost update.
#[tokio::test]
async fn a_secret_that_changes_during_the_reconcile_is_not_missed() {
    let bed = Bed::new("secrets").await;
    bed.secret("mine", "old").await;
    let operator = bed.operator().await;
    bed.flush(&operator).await;
    bed.world.hold("reads");
    bed.widget("reads", with_secret("mine")).await;
    let is_held = async || bed.world.running("reads") == 1 && has_read(&operator.faults, "mine");
    operator
        .wait()
        .eventually("the pass to have read the Secret", is_held)
        .await;
    bed.secret("mine", "new").await;
    bed.heard(&operator).await;
    bed.world.release("reads");
    bed.settled(&operator, "reads").await;
    assert_eq!(bed.world.thing("reads").unwrap().password.unwrap(), "new");
    assert_eq!(bed.world.passes("reads"), 2);
}

fn has_read(faults: &stanchion_testkit::faults::Faults, secret: &str) -> bool {
    faults
        .calls()
        .iter()
        .any(|call| call.target.name == secret && call.served == Some(200))
}

/// Nothing that a pass does wakes the object again: a converged object is idle.
#[tokio::test]
async fn our_own_writes_wake_nobody() {
    let bed = Bed::new("secrets").await;
    bed.secret("mine", "one").await;
    bed.widget("one", with_secret("mine")).await;
    let operator = bed.operator().await;
    bed.settled(&operator, "one").await;
    // One pass that worked, and at most one more for the child's event if it came before the response to the write.
    let passes = bed.world.passes("one");
    assert!(passes <= 2, "{passes}");
    let before = operator.writes();
    bed.flush(&operator).await;
    assert_eq!(bed.world.passes("one"), passes);
    assert_eq!(operator.writes(), before);
}
