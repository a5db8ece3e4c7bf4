//! The crash test: it kills an operator at every write and checks that the final state is always the same.
//!
//! A reference run counts the writes. Then, for each write, a new run is cut off right after that write, once with its
//! answer and once without. The operator is dropped with its memory and a new one is started. The final state and the
//! number of created and deleted objects are compared with the reference. Trying every write finds what random tests do
//! not: the window between two writes is a millisecond. [`crash_at_every_statement`] does the same for an operator's
//! SQL statements.

mod normal;
mod statements;

use std::{collections::BTreeMap, fmt, time::Duration};

use futures::{StreamExt as _, stream};
use serde_json::Value;

pub use normal::{differences, normalise, objects};
pub use statements::{SqlScenario, crash_at_every_statement};

use crate::faults::{Call, CutPoint, Fault, Faults, RequestTarget, Rule};
use crate::wait;

/// Number of parallel runs; more would only wait for the same two cores.
const SIDE_BY_SIDE: usize = 4;

/// How long an operator must not write to count as idle: its last write returns as an event, and could make it write
/// again.
const QUIET: Duration = Duration::from_millis(150);

/// How long a new operator may take to reconcile the existing objects.
const LOOKED_WITHIN: Duration = Duration::from_mins(1);

/// Number of failed runs that are shown in full.
const SHOWN_FAILURES: usize = 5;

/// A sequence of an operator's work, with a start and an end.
#[allow(
    async_fn_in_trait,
    reason = "all runs are polled by the test's own task; nothing has to be Send"
)]
pub trait Scenario: 'static {
    /// The resources of one run: a namespace, perhaps a database.
    type Run;

    /// Prepares a run: creates the objects that the operator will find.
    async fn set_up(&self) -> Self::Run;

    /// Runs a new operator behind `faults` until it is dropped. It must not leave a task behind that writes: build its
    /// clients with [`Faults::client`] or with `faults` as their layer.
    async fn operate(&self, run: &Self::Run, faults: Faults);

    /// Returns when the end is reached; panics if that takes too long (see [`crate::wait`]).
    async fn converge(&self, run: &Self::Run);

    /// Whether the current operator has reconciled its object, or has none to reconcile: the end may already be visible
    /// from the work of the operator that was killed.
    async fn has_looked(&self, run: &Self::Run) -> bool {
        let _ = run;
        true
    }

    /// The final state, normalised ([`objects`]), including the state outside of the cluster.
    async fn end_state(&self, run: &Self::Run) -> Value;

    /// Replaces what is specific to the run (the name of its namespace) in a text by a common placeholder.
    fn mask(&self, run: &Self::Run, text: &str) -> String {
        let _ = run;
        text.to_owned()
    }

    /// Whether writes to this target count and are points to crash at. By default events, whose names contain the time,
    /// and leases, which are renewed by time, do not count.
    fn counts(target: &RequestTarget) -> bool {
        !["events", "leases"].contains(&target.resource.as_str())
    }
}

/// The result of a crash test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Number of writes or statements of the reference run.
    pub writes: usize,
    /// Number of runs with a crash.
    pub crashes: usize,
    /// Number of runs that ended before the write at which they should have crashed.
    pub unreached: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} writes, {} crashes, {} not reached",
            self.writes, self.crashes, self.unreached
        )
    }
}

/// Runs `scenario` with a crash at every write; panics if any final state differs from the reference.
pub async fn crash_at_every_write<S: Scenario>(scenario: &S) -> Report {
    let reference = run(scenario, None).await;
    let writes = reference.writes;
    assert!(
        writes > 0,
        "the reference run wrote nothing: there is nothing to crash at"
    );
    let crashes = std::iter::once(Crash {
        write: 1,
        point: CutPoint::Before,
    })
    .chain(
        (1..=writes)
            .flat_map(|write| [CutPoint::Unanswered, CutPoint::Answered].map(|point| Crash { write, point })),
    );
    let ends: Vec<(Crash, End)> = stream::iter(crashes)
        .map(async |crash| (crash, run(scenario, Some(crash)).await))
        .buffer_unordered(SIDE_BY_SIDE)
        .collect()
        .await;
    let failures: Vec<String> = ends
        .iter()
        .filter_map(|(crash, end)| compare(*crash, &reference, end))
        .collect();
    fail_if_any(&failures, ends.len());
    let unreached = ends.iter().filter(|(_, end)| !end.crashed).count();
    Report {
        writes,
        crashes: ends.len() - unreached,
        unreached,
    }
}

fn fail_if_any(failures: &[String], runs: usize) {
    assert!(
        failures.is_empty(),
        "{} of {runs} runs with a crash ended differently:\n{}",
        failures.len(),
        failures[..failures.len().min(SHOWN_FAILURES)].join("\n")
    );
}

#[derive(Clone, Copy, Debug)]
struct Crash {
    write: usize,
    point: CutPoint,
}

struct End {
    writes: usize,
    crashed: bool,
    state: Value,
    /// How often each object was created and deleted.
    made: BTreeMap<String, usize>,
    log: Vec<Call>,
}

async fn run<S: Scenario>(scenario: &S, crash: Option<Crash>) -> End {
    let run = scenario.set_up().await;
    let first = Faults::counting(S::counts);
    if let Some(Crash { write, point }) = crash {
        first.script(Rule::write(write, Fault::Cut(point)));
    }
    drive(scenario, &run, &first).await;
    let crashed = first.is_cut();
    let mut log = first.writes();
    if crashed {
        let second = Faults::counting(S::counts);
        drive(scenario, &run, &second).await;
        log.extend(second.writes());
    }
    let mask = |text: &str| scenario.mask(&run, text);
    let mut made = BTreeMap::new();
    for call in log.iter().filter(|call| call.created() || call.deleted()) {
        let verb = if call.deleted() { "delete" } else { "create" };
        let RequestTarget { resource, name, .. } = &call.target;
        *made
            .entry(mask(&format!("{verb} {resource} {name}")))
            .or_insert(0) += 1;
    }
    let state = normal::map_strings(scenario.end_state(&run).await, &mask);
    End {
        writes: log.len(),
        crashed,
        state,
        made,
        log,
    }
}

/// Runs one operator until it is cut off, or has reconciled, reached the end and become idle; then drops it.
async fn drive<S: Scenario>(scenario: &S, run: &S::Run, faults: &Faults) {
    // An operator that starts at the end, after a crash at the last write, may still undo it. And the end may be
    // visible before the answer to the write that caused it. So the operator must be idle, too.
    let at_rest = async {
        loop {
            wait::eventually(LOOKED_WITHIN, "the operator to look", || scenario.has_looked(run)).await;
            scenario.converge(run).await;
            let writes = faults.writes().len();
            faults.quiet(QUIET).await;
            if faults.writes().len() == writes {
                return;
            }
        }
    };
    let end = async {
        tokio::select! {
            () = faults.cut() => {}
            () = at_rest => {}
        }
        faults.settled().await;
    };
    tokio::select! {
        () = scenario.operate(run, faults.clone()) => panic!("the operator ended by itself"),
        () = end => {}
    }
}

/// The differences from the reference, if there are any.
fn compare(crash: Crash, reference: &End, end: &End) -> Option<String> {
    let mut lines = normal::differences(&reference.state, &end.state);
    let count = |end: &End| serde_json::to_value(&end.made).unwrap_or_default();
    lines.extend(normal::differences(&count(reference), &count(end)));
    if lines.is_empty() {
        return None;
    }
    let calls: Vec<String> = end
        .log
        .iter()
        .map(|call| format!("    {} {} -> {:?}", call.method, call.path, call.served))
        .collect();
    Some(format!(
        "cut at write {} ({:?}):\n  {}\n  writes:\n{}",
        crash.write,
        crash.point,
        lines.join("\n  "),
        calls.join("\n")
    ))
}
