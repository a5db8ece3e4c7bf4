//! Killed at every write to the API.

use serde_json::Value;
use stanchion_testkit::crash::{Report, Scenario, crash_at_every_write};
use stanchion_testkit::faults::Faults;

use super::story::{Story, Told};

impl Scenario for Story {
    type Run = Told;

    async fn set_up(&self) -> Told {
        Self::set_up(*self).await
    }

    async fn operate(&self, told: &Told, faults: Faults) {
        let (operator, metrics) = told.stage.build(&faults).await;
        told.watch(metrics);
        operator.run().await;
    }

    async fn converge(&self, told: &Told) {
        Self::converge(*self, told).await;
    }

    async fn end_state(&self, told: &Told) -> Value {
        Self::end_state(told).await
    }

    fn mask(&self, told: &Told, text: &str) -> String {
        Self::mask(told, text)
    }
}

async fn crash(story: Story) -> Report {
    Box::pin(crash_at_every_write(&story)).await
}

#[tokio::test]
async fn a_creation_killed_at_any_write_is_finished() {
    let report = crash(Story::Create).await;
    assert!(
        report.writes >= 17,
        "the Secret, the files, seven of each, the status: {report}"
    );
}

#[tokio::test]
async fn a_change_killed_at_any_write_is_finished() {
    let report = crash(Story::Change).await;
    assert!(report.writes >= 4, "{report}");
}
