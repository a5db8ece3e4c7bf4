//! What happens when. A schedule is plain data: it can be printed, compared, and shortened.

use std::fmt;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use crate::disturbance::{self, Disturbance};
use crate::scenario::{Operation, Scenario};

/// How many consecutive seeds share their operations and setup, and with them one run without disturbances: that run takes
/// nearly as long as a disturbed one.
pub const SHARED: u64 = 2;

/// Everything that decides a run.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// What it was made from. Delays and names follow from it, too.
    pub seed: u64,
    /// How the operator is set up.
    pub setup: Setup,
    /// What happens, in order of time.
    pub steps: Vec<Step>,
}

/// How the operator is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// How many replicas there are. More than one elect a leader.
    pub replicas: usize,
    /// Whether lists are streamed.
    pub streaming_lists: bool,
    /// How many passes run at the same time: so few that objects wait for each other.
    pub concurrency: u16,
}

/// One thing that happens.
#[derive(Clone, Debug)]
pub struct Step {
    /// When, from the start.
    pub at: Duration,
    /// What.
    pub act: Act,
}

/// What happens.
#[derive(Clone, Debug)]
pub enum Act {
    /// Users and their tools do something. They are not disturbed.
    Operate(Operation),
    /// Something goes wrong.
    Disturb(Disturbance),
}

impl Schedule {
    /// The schedule of a seed.
    pub fn of<S: Scenario>(seed: u64) -> Self {
        let first = first_of_group(seed);
        let mut shared = StdRng::seed_from_u64(first);
        let (streaming_lists, concurrency) = (shared.random(), shared.random_range(3..=4));
        let operations = S::operations(&mut shared);
        let length = operations.iter().map(|(at, _)| *at).max().unwrap_or_default();
        // The other half of the numbers, so that no seed has the numbers of the operations of another one.
        let mut random = StdRng::seed_from_u64(!seed);
        let setup = Setup {
            replicas: if S::REPLICATED && random.random_bool(0.3) {
                2
            } else {
                1
            },
            streaming_lists,
            concurrency,
        };
        let disturbances = disturbance::generate(&mut random, length, setup.replicas, S::SQL);
        let mut steps: Vec<Step> = operations
            .into_iter()
            .map(|(at, operation)| (at, Act::Operate(operation)))
            .chain(
                disturbances
                    .into_iter()
                    .map(|(at, what)| (at, Act::Disturb(what))),
            )
            .map(|(at, act)| Step { at, act })
            .collect();
        steps.sort_by_key(|step| step.at);
        Self { seed, setup, steps }
    }

    /// The same without anything going wrong, and with one replica, which is all that is needed then. It is the same for all
    /// schedules with these operations.
    #[must_use]
    pub fn undisturbed(&self) -> Self {
        let operates = |step: &&Step| matches!(step.act, Act::Operate(_));
        Self {
            seed: first_of_group(self.seed),
            setup: Setup {
                replicas: 1,
                ..self.setup
            },
            steps: self.steps.iter().filter(operates).cloned().collect(),
        }
    }

    /// The same setup with other steps.
    #[must_use]
    pub fn with(&self, steps: Vec<Step>) -> Self {
        Self {
            steps,
            ..self.clone()
        }
    }

    /// When the last step happens.
    pub fn length(&self) -> Duration {
        self.steps.last().map_or(Duration::ZERO, |step| step.at)
    }
}

/// The first of the seeds that share their operations with this one.
fn first_of_group(seed: u64) -> u64 {
    seed - seed % SHARED
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Setup {
            replicas,
            streaming_lists,
            concurrency,
        } = self.setup;
        writeln!(
            f,
            "seed {}, {replicas} replica(s), {concurrency} workers, streaming lists: {streaming_lists}",
            self.seed
        )?;
        for Step { at, act } in &self.steps {
            let seconds = at.as_secs_f64();
            match act {
                Act::Operate(operation) => writeln!(f, "{seconds:9.3}  {operation}")?,
                Act::Disturb(what) => writeln!(f, "{seconds:9.3}  ! {what:?}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenarios::Kernel;

    fn shown(schedule: &Schedule) -> String {
        schedule.to_string()
    }

    #[test]
    fn seeds_of_a_group_share_the_run_without_disturbances_and_no_disturbances() {
        for seed in [0, 2, 40] {
            let [one, other] = [seed, seed + 1].map(Schedule::of::<Kernel>);
            assert_eq!(shown(&one.undisturbed()), shown(&other.undisturbed()));
            assert_ne!(shown(&one), shown(&other));
        }
    }

    #[test]
    fn groups_have_different_operations() {
        let [one, other] = [1, 2].map(Schedule::of::<Kernel>);
        assert_ne!(
            shown(&one.undisturbed()).lines().skip(1).collect::<Vec<_>>(),
            shown(&other.undisturbed()).lines().skip(1).collect::<Vec<_>>()
        );
    }
}
