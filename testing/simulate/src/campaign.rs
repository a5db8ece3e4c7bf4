//! Many seeds, on all cores.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::properties::{Property, Violation};
use crate::run::{judge, judge_beside, undisturbed as run_undisturbed};
use crate::scenario::Scenario;
use crate::schedule::{SHARED, Schedule};
use crate::shrink::shortest;

/// Which seeds, and how.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    /// The first seed.
    pub first: u64,
    /// How many.
    pub seeds: u64,
    /// How many run at once.
    pub jobs: usize,
    /// How often a failing schedule is run again to shorten it.
    pub attempts: usize,
    /// Begins no run after this time.
    pub limit: Option<Duration>,
}

/// What a campaign found.
#[derive(Debug)]
pub struct Report {
    /// How many schedules were run.
    pub runs: u64,
    /// How long it took.
    pub took: Duration,
    /// The first failure, if there was one.
    pub failure: Option<Failure>,
}

/// A schedule that fails.
#[derive(Debug)]
pub struct Failure {
    /// When it was found, from the start.
    pub found_after: Duration,
    /// What does not hold in the schedule of the seed.
    pub violations: Vec<Violation>,
    /// How many steps the schedule of the seed has.
    pub steps: usize,
    /// The shortest schedule that violates the first of these.
    pub shortest: Schedule,
    /// What does not hold in that one.
    pub still: Vec<Violation>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seed, after) = (self.shortest.seed, self.found_after);
        writeln!(f, "seed {seed} fails, found after {after:.1?}:")?;
        for violation in &self.violations {
            writeln!(f, "    {violation}")?;
        }
        let (left, steps) = (self.shortest.steps.len(), self.steps);
        writeln!(
            f,
            "the shortest schedule that still fails ({left} of {steps} steps):"
        )?;
        write!(f, "{}", self.shortest)?;
        for violation in &self.still {
            writeln!(f, "    {violation}")?;
        }
        Ok(())
    }
}

impl Campaign {
    /// Runs the seeds until one fails.
    pub fn run<S: Scenario>(&self) -> Report {
        let begun = Instant::now();
        let (runs, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let over = || self.limit.is_some_and(|limit| begun.elapsed() >= limit);
        let end = self.first + self.seeds;
        // One thread runs all schedules with the same operations, because it compares them with one run.
        let groups =
            (self.first / SHARED..end.div_ceil(SHARED)).map(|group| group * SHARED..(group + 1) * SHARED);
        let groups = Mutex::new(groups);
        let next = || groups.lock().unwrap().next();
        let found: Mutex<Option<(Duration, Schedule, Vec<Violation>)>> = Mutex::new(None);
        thread::scope(|scope| {
            for _ in 0..self.jobs.max(1) {
                scope.spawn(|| {
                    while let Some(group) = next() {
                        let mut undisturbed = None;
                        for seed in group.start.max(self.first)..group.end.min(end) {
                            if stop.load(Ordering::Relaxed) || over() {
                                return;
                            }
                            let schedule = Schedule::of::<S>(seed);
                            let undisturbed =
                                undisturbed.get_or_insert_with(|| run_undisturbed::<S>(&schedule));
                            let violations = judge_beside::<S>(&schedule, undisturbed);
                            runs.fetch_add(1, Ordering::Relaxed);
                            if !violations.is_empty() {
                                stop.store(true, Ordering::Relaxed);
                                let failure = (begun.elapsed(), schedule, violations);
                                found.lock().unwrap().get_or_insert(failure);
                            }
                        }
                    }
                });
            }
        });
        let took = begun.elapsed();
        let failure = found.into_inner().unwrap();
        Report {
            runs: runs.into_inner(),
            took,
            failure: failure
                .map(|(after, schedule, violations)| self.shorten::<S>(after, &schedule, violations)),
        }
    }

    /// Shortens a failing schedule.
    pub fn shorten<S: Scenario>(
        &self,
        found_after: Duration,
        schedule: &Schedule,
        violations: Vec<Violation>,
    ) -> Failure {
        let property = violations
            .first()
            .map_or(Property::SameEnd, |first| first.property);
        let fails = |violations: &[Violation]| violations.iter().any(|one| one.property == property);
        let steps = shortest(&schedule.steps, self.attempts, |steps| {
            fails(&judge::<S>(&schedule.with(steps.to_vec())))
        });
        let shortest = schedule.with(steps);
        Failure {
            found_after,
            violations,
            steps: schedule.steps.len(),
            still: judge::<S>(&shortest),
            shortest,
        }
    }
}

/// Shows panics, except those that a schedule asks for, and counts them as violations of their run.
pub fn quiet_panics() {
    crate::panics::watch();
}
