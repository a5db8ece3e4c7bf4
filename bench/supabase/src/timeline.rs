//! When the children were created and became available, read from the objects afterwards, so that nothing is added to the
//! measured load. Kubernetes keeps whole seconds.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::ListParams;
use stanchion_bench_env::row;

use crate::setup::BenchSetup;

/// The moments of some objects, in seconds since the start.
struct Moments(Vec<i64>);

impl Moments {
    fn new(moments: impl Iterator<Item = Timestamp>, start: Timestamp) -> Self {
        let mut seconds: Vec<i64> = moments
            .map(|moment| moment.duration_since(start).as_secs())
            .collect();
        seconds.sort_unstable();
        Self(seconds)
    }

    /// The first, the one in the middle, and the last.
    fn print(&self, what: &str) {
        let (Some(first), Some(last)) = (self.0.first(), self.0.last()) else {
            return;
        };
        let middle = self.0[self.0.len() / 2];
        row(what, &format!("{first} s, {middle} s, {last} s"));
    }
}

/// Prints when the Deployments that were created since `start` were created, and when they were available: the first, the
/// one in the middle, and the last.
pub(crate) async fn print(setup: &BenchSetup, start: Timestamp) {
    let found = setup.deployments.list(&ListParams::default()).await;
    let deployments = found.expect("a list").items;
    let created =
        |deployment: &Deployment| deployment.metadata.creation_timestamp.as_ref().map(|time| time.0);
    // A second is cut off: what was created right after the start seems to be older.
    let start = Timestamp::from_second(start.as_second()).expect("a time");
    let ours = || {
        let all = deployments.iter();
        all.filter(|deployment| created(deployment).is_some_and(|moment| moment >= start))
    };
    Moments::new(ours().filter_map(created), start).print("  Deployments created");
    Moments::new(ours().filter_map(available), start).print("  Deployments available");
}

fn available(deployment: &Deployment) -> Option<Timestamp> {
    let conditions = deployment.status.as_ref()?.conditions.as_ref()?;
    let available = conditions
        .iter()
        .find(|condition| condition.type_ == "Available")?;
    available.last_transition_time.as_ref().map(|time| time.0)
}
