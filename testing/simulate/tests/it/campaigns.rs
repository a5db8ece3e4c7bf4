//! Short campaigns: the seeds that every change is tried on.

use stanchion_simulate::campaign::{Campaign, quiet_panics};
use stanchion_simulate::scenario::Scenario;
use stanchion_simulate::scenarios::{Gitlab, Instance, Kernel, Policy, Supabase, User};

fn holds<S: Scenario>(seeds: u64) {
    holds_from::<S>(0, seeds);
}

fn holds_from<S: Scenario>(first: u64, seeds: u64) {
    quiet_panics();
    let campaign = Campaign {
        first,
        seeds,
        jobs: std::thread::available_parallelism().map_or(2, usize::from),
        attempts: 200,
        limit: None,
    };
    let report = campaign.run::<S>();
    if let Some(failure) = report.failure {
        panic!("{failure}");
    }
    assert_eq!(report.runs, seeds);
}

#[test]
fn the_kernel_holds() {
    holds::<Kernel>(100);
}

#[test]
fn gitlab_holds() {
    holds::<Gitlab>(10);
}

#[test]
fn users_hold() {
    holds::<User>(10);
}

#[test]
fn policies_hold() {
    holds::<Policy>(10);
}

#[test]
fn instances_hold() {
    holds::<Instance>(10);
}

#[test]
fn projects_hold() {
    // A schedule of projects takes as long as ten of others.
    holds_from::<Supabase>(2, 2);
    // The bucket refuses the key of a project, and then the database is lost.
    holds_from::<Supabase>(52, 1);
}
