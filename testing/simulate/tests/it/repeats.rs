//! A seed decides everything: two runs of a schedule have the same trace, line by line, and the same end.

use stanchion_simulate::campaign::quiet_panics;
use stanchion_simulate::run;
use stanchion_simulate::scenario::Scenario;
use stanchion_simulate::scenarios::{Gitlab, Instance, Kernel, Policy, Supabase, User};
use stanchion_simulate::schedule::Schedule;

fn repeats<S: Scenario>(seeds: std::ops::Range<u64>) {
    quiet_panics();
    for seed in seeds {
        let schedule = Schedule::of::<S>(seed);
        let (one, two) = (run::run::<S>(&schedule), run::run::<S>(&schedule));
        let differ = one.lines.iter().zip(&two.lines).position(|(one, two)| one != two);
        if let Some(at) = differ {
            let around = |lines: &[String]| lines[at.saturating_sub(5)..(at + 3).min(lines.len())].join("\n");
            panic!(
                "{} {seed} differs:\n{}\n---\n{}",
                S::NAME,
                around(&one.lines),
                around(&two.lines)
            );
        }
        assert_eq!(one.lines.len(), two.lines.len(), "{} {seed}", S::NAME);
        assert_eq!(one.end, two.end, "{} {seed}", S::NAME);
    }
}

#[test]
fn the_kernel_repeats() {
    repeats::<Kernel>(0..40);
}

#[test]
fn gitlab_repeats() {
    repeats::<Gitlab>(0..4);
}

#[test]
fn users_repeat() {
    repeats::<User>(0..4);
}

#[test]
fn policies_repeat() {
    repeats::<Policy>(0..4);
}

#[test]
fn instances_repeat() {
    repeats::<Instance>(0..4);
}

#[test]
fn projects_repeat() {
    // A schedule of projects takes as long as ten of others.
    repeats::<Supabase>(2..3);
}
