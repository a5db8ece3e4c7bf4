//! `make simulate`: runs schedules of a scenario until one fails, and prints the shortest that still does.

#![allow(clippy::print_stdout, reason = "a command line program")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use mimalloc::MiMalloc;
use stanchion_simulate::campaign::{Campaign, quiet_panics};
use stanchion_simulate::fuzz::{Changeable, Report, fuzz_beside};
use stanchion_simulate::run;
use stanchion_simulate::scenario::Scenario;
use stanchion_simulate::scenarios::{Gitlab, Instance, Kernel, Policy, Supabase, User};
use stanchion_simulate::schedule::Schedule;

/// A run copies JSON all the time, and glibc's allocator was a fifth of its CPU time.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Runs the operator in a simulated world, many times, and looks for a run that ends wrong.
#[derive(Parser)]
struct Arguments {
    /// The scenario: kernel, gitlab, user, instance, policy, supabase, or all
    #[arg(long, default_value = "all")]
    kind: String,
    /// How many schedules of each scenario. Default: 1000 of the kernel, 100 of each other
    #[arg(long)]
    seeds: Option<u64>,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// One seed alone, with everything that was seen
    #[arg(long, conflicts_with_all = ["seeds", "first"])]
    seed: Option<u64>,
    /// How many run at once. Default: one more than there are cores, because a run waits while PostgreSQL answers. With
    /// --fuzz, each job makes its part of the changes, with a seed of its own
    #[arg(long, default_value_t = std::thread::available_parallelism().map_or(2, usize::from) + 1)]
    jobs: usize,
    /// Begins no run of a scenario after so many seconds
    #[arg(long)]
    seconds: Option<u64>,
    /// Changes specs at random instead, and compares the way back and a fresh object
    #[arg(long)]
    fuzz: bool,
    /// How many changes
    #[arg(long, default_value_t = 2000)]
    changes: usize,
    /// Runs every schedule twice instead, and compares the traces
    #[arg(long, conflicts_with_all = ["fuzz", "seed"])]
    repeat: bool,
    /// How often a failing schedule is run again to shorten it
    #[arg(long, default_value_t = 300)]
    attempts: usize,
}

fn main() -> ExitCode {
    quiet_panics();
    let arguments = Arguments::parse();
    let mut scenarios = 0;
    let mut failed = false;
    let mut tell = |name: &str, scenario: fn(&Arguments) -> bool| {
        if arguments.kind == "all" || arguments.kind == name {
            scenarios += 1;
            failed |= !scenario(&arguments);
        }
    };
    if arguments.fuzz {
        tell(Gitlab::NAME, change::<Gitlab>);
        tell(User::NAME, change::<User>);
        tell(Instance::NAME, change::<Instance>);
        tell(Policy::NAME, change::<Policy>);
        tell(Supabase::NAME, change::<Supabase>);
    } else {
        tell(Kernel::NAME, simulate::<Kernel>);
        tell(Gitlab::NAME, simulate::<Gitlab>);
        tell(User::NAME, simulate::<User>);
        tell(Instance::NAME, simulate::<Instance>);
        tell(Policy::NAME, simulate::<Policy>);
        tell(Supabase::NAME, simulate::<Supabase>);
    }
    if scenarios == 0 {
        println!("there is no scenario \"{}\"", arguments.kind);
        return ExitCode::FAILURE;
    }
    if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// Says whether everything held.
fn simulate<S: Scenario>(arguments: &Arguments) -> bool {
    if let Some(seed) = arguments.seed {
        return one::<S>(seed);
    }
    if arguments.repeat {
        return repeat::<S>(arguments);
    }
    let campaign = Campaign {
        first: arguments.first,
        seeds: arguments.seeds.unwrap_or(S::SCHEDULES),
        jobs: arguments.jobs,
        attempts: arguments.attempts,
        limit: arguments.seconds.map(Duration::from_secs),
    };
    let report = campaign.run::<S>();
    println!("{}: {} schedules in {:.1?}", S::NAME, report.runs, report.took);
    if let Some(failure) = &report.failure {
        println!("{failure}");
    }
    report.failure.is_none()
}

/// Says whether nothing was found.
fn change<S: Changeable>(arguments: &Arguments) -> bool {
    let begun = Instant::now();
    let first = arguments.seed.unwrap_or(arguments.first);
    let report = fuzz_beside::<S>(first, arguments.changes, arguments.jobs, |seed, finding| {
        println!("{}, seed {seed}, {finding}", S::NAME);
    });
    let Report {
        changes,
        one_way,
        refused,
        uncompared,
        findings,
    } = report;
    let took = begun.elapsed();
    println!(
        "{}: {changes} changes in {took:.1?} ({one_way} cannot be reverted), {refused} refused by the schema, \
         {uncompared} not compared with a new object, {findings} findings",
        S::NAME
    );
    findings == 0
}

/// Says whether every schedule repeats exactly.
fn repeat<S: Scenario>(arguments: &Arguments) -> bool {
    let begun = Instant::now();
    let seeds = arguments.seeds.unwrap_or(S::SCHEDULES);
    let differing: Vec<u64> = (arguments.first..arguments.first + seeds)
        .filter(|seed| {
            let schedule = Schedule::of::<S>(*seed);
            run::run::<S>(&schedule) != run::run::<S>(&schedule)
        })
        .collect();
    let took = begun.elapsed();
    println!(
        "{}: {seeds} schedules twice in {took:.1?}, {} differ: {differing:?}",
        S::NAME,
        differing.len()
    );
    differing.is_empty()
}

fn one<S: Scenario>(seed: u64) -> bool {
    let schedule = Schedule::of::<S>(seed);
    let violations = run::judge::<S>(&schedule);
    // What does not hold without disturbances is seen best without them.
    let undisturbed = violations
        .iter()
        .any(|one| one.what.starts_with(run::UNDISTURBED));
    let shown = if undisturbed {
        schedule.undisturbed()
    } else {
        schedule
    };
    println!("{shown}");
    let outcome = run::run::<S>(&shown);
    let at_the_end = outcome.conditions::<S>();
    for line in outcome.lines.iter().chain(&at_the_end) {
        println!("{line}");
    }
    for violation in &violations {
        println!("{violation}");
    }
    violations.is_empty()
}
