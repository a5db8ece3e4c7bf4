//! The crash test for SQL statements: the server never receives a statement, or has executed it and the operator does
//! not know.
//!
//! The operator connects to its server through a proxy that stops at a chosen message. Being killed before a message is
//! the same as being killed after the previous one, so only the first message has a "before".

use std::time::Duration;

use futures::{StreamExt as _, stream};
use serde_json::Value;

use super::{Report, SIDE_BY_SIDE, Scenario, drive, fail_if_any, normal};
use crate::faults::Faults;
use crate::proxy::{Kind, Message, Point, Proxy, Stop};

/// A scenario whose operator connects through a proxy, without TLS, so that the proxy can read the messages.
pub trait SqlScenario: Scenario {
    /// The proxy of a run.
    fn proxy(run: &Self::Run) -> &Proxy;

    /// Whether to stop at a message, that is whether it can change something. By default this is a simple query, which
    /// may contain a whole transaction that the server then executes completely. Queries with bound values only read.
    fn stops_at(message: &Message) -> bool {
        message.kind == Kind::Typed('Q')
    }
}

/// What happens at a statement.
#[derive(Clone, Copy, Debug)]
enum Ending {
    /// The server does not receive it, and the operator is killed.
    KilledBefore,
    /// The server has executed it, and the operator is killed before it gets the answer.
    KilledAfter,
    /// The server has executed it, and the answer is lost; the operator continues.
    Unanswered,
}

impl Ending {
    fn arm<S: SqlScenario>(self, proxy: &Proxy, nth: usize) {
        let point = match self {
            Self::KilledBefore => Point::Before,
            Self::KilledAfter | Self::Unanswered => Point::After,
        };
        let stop = Stop::at(nth, point).counting(S::stops_at);
        proxy.stop(if self.kills() { stop.and_stay_cut() } else { stop });
    }

    fn kills(self) -> bool {
        !matches!(self, Self::Unanswered)
    }
}

struct RunResult {
    statements: usize,
    reached: bool,
    state: Value,
}

/// Runs `scenario` with every ending at every statement; panics if any final state differs from the reference.
pub async fn crash_at_every_statement<S: SqlScenario>(scenario: &S) -> Report {
    let reference = run_once(scenario, None).await;
    let statements = reference.statements;
    assert!(
        statements > 0,
        "the reference run asked for nothing: there is nothing to crash at"
    );
    let endings = (1..=statements).flat_map(|nth| [(nth, Ending::KilledAfter), (nth, Ending::Unanswered)]);
    let endings = std::iter::once((1, Ending::KilledBefore)).chain(endings);
    let ends: Vec<((usize, Ending), RunResult)> = stream::iter(endings)
        .map(async |at| (at, run_once(scenario, Some(at)).await))
        .buffer_unordered(SIDE_BY_SIDE)
        .collect()
        .await;
    let failures = ends.iter().filter_map(|((nth, ending), result)| {
        let lines = normal::differences(&reference.state, &result.state);
        let place = format!("{ending:?} at statement {nth} of {statements}");
        (!lines.is_empty()).then(|| format!("{place}:\n  {}", lines.join("\n  ")))
    });
    fail_if_any(&failures.collect::<Vec<_>>(), ends.len());
    let unreached = ends.iter().filter(|(_, result)| !result.reached).count();
    Report {
        writes: statements,
        crashes: ends.len() - unreached,
        unreached,
    }
}

async fn run_once<S: SqlScenario>(scenario: &S, at: Option<(usize, Ending)>) -> RunResult {
    let run = scenario.set_up().await;
    let proxy = S::proxy(&run);
    proxy.forget();
    if let Some((nth, ending)) = at {
        ending.arm::<S>(proxy, nth);
    }
    let mut reached = true;
    if at.is_some_and(|(_, ending)| ending.kills()) {
        reached = kill_when_stopped(scenario, &run).await;
        // Also if the stop was not reached.
        proxy.stop(Stop::at(1, Point::After).counting(|_| false));
    }
    // The proxy may cut once more, for a message of the killed operator.
    let restored = async {
        loop {
            if at.is_some_and(|(_, ending)| ending.kills()) {
                proxy.restore().await;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    };
    let faults = Faults::counting(S::counts);
    tokio::select! {
        () = restored => {}
        () = drive(scenario, &run, &faults) => {}
    }
    let seen = proxy.seen().messages;
    let statements = seen.iter().filter(|message| S::stops_at(message));
    RunResult {
        statements: statements.count(),
        reached,
        state: normal::map_strings(scenario.end_state(&run).await, &|text| scenario.mask(&run, text)),
    }
}

/// Runs an operator until the proxy stops it or it reaches the end; returns whether it was stopped.
async fn kill_when_stopped<S: SqlScenario>(scenario: &S, run: &S::Run) -> bool {
    let faults = Faults::counting(S::counts);
    let stopped = async {
        tokio::select! {
            _ = S::proxy(run).stopped() => true,
            () = scenario.converge(run) => false,
        }
    };
    tokio::select! {
        () = scenario.operate(run, faults) => panic!("the operator ended by itself"),
        stopped = stopped => stopped,
    }
}
