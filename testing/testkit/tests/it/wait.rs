//! A failed wait says what it waited for.

use std::{cell::Cell, time::Duration};

use futures::FutureExt;
use stanchion_testkit::{
    operator_log::OperatorLog,
    wait::{eventually, within},
};
use tracing::Instrument as _;
use tracing::instrument::WithSubscriber;

#[tokio::test(start_paused = true)]
async fn it_returns_what_the_check_found() {
    let calls = Cell::new(0);
    let found = eventually(Duration::from_secs(10), "the third call", || {
        calls.set(calls.get() + 1);
        let now = calls.get();
        async move { (now == 3).then_some(now) }
    })
    .await;
    assert_eq!(found, 3);
}

#[tokio::test(start_paused = true)]
async fn a_failure_names_the_caller_the_wish_the_verdict_and_the_log() {
    let log = OperatorLog::in_memory();
    async { tracing::info!("doing my best") }
        .instrument(tracing::info_span!("reconcile"))
        .with_subscriber(log.dispatch())
        .await;
    let failing = within(Duration::from_secs(5))
        .showing(&log)
        .eventually("spring", || async { Err::<(), _>("it is winter") });
    let panic = std::panic::AssertUnwindSafe(failing)
        .catch_unwind()
        .await
        .unwrap_err();
    let message = panic.downcast_ref::<String>().unwrap();
    for part in ["tests/it/wait.rs", "spring", "it is winter", "doing my best"] {
        assert!(message.contains(part), "{part} is not in: {message}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_check_that_hangs_meets_the_deadline() {
    let failing = eventually(Duration::from_secs(5), "an answer", std::future::pending::<bool>);
    let panic = std::panic::AssertUnwindSafe(failing)
        .catch_unwind()
        .await
        .unwrap_err();
    assert!(panic.downcast_ref::<String>().unwrap().contains("did not return"));
}
