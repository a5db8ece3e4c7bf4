//! What can go wrong between an operator and everything else.

use std::time::Duration;

use rand::Rng as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;

/// The requests that a disturbance is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Reads of one object.
    Get,
    /// Lists.
    List,
    /// The beginning of a watch.
    Watch,
    /// Writes of a status.
    Status,
    /// Writes of objects: ours, their finalizers, their children.
    Object,
    /// Events.
    Event,
    /// Everything about the Lease.
    Lease,
    /// Statements for PostgreSQL, and logins.
    Statement,
}

/// On which side of the server's work it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The server never sees the request.
    Before,
    /// The server has done what was asked.
    After,
}

/// What happens to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It is answered with this status.
    Answer(u16, Moment),
    /// Its connection breaks.
    Break(Moment),
    /// It is never answered.
    Silence(Moment),
    /// It takes this much longer on its way to the server.
    Late(Duration),
    /// It takes this much longer on its way back.
    LateAnswer(Duration),
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// One request, the first of its sort after `skip` others.
    Request {
        /// Its sort.
        which: Which,
        /// How many of its sort pass.
        skip: usize,
        /// What happens to it.
        effect: Effect,
    },
    /// All watches end. When `expired`, none can be resumed: everything is listed anew.
    CutWatches {
        /// Whether the history is forgotten.
        expired: bool,
    },
    /// The API server is away, and knows no history when it comes back.
    Outage(Duration),
    /// Nothing that one replica sends or should hear arrives.
    Partition(usize, Duration),
    /// The process of one replica is killed, and begun anew after a while.
    Kill(usize, Duration),
    /// Somebody writes another holder into the Lease.
    StealLease,
    /// The clocks of the operators are set forward, or back, by seconds.
    MoveClock(i64),
    /// The process stands still.
    Freeze(Duration),
}

/// Random disturbances over a time: with PostgreSQL or without.
pub fn generate(
    random: &mut StdRng,
    length: Duration,
    replicas: usize,
    sql: bool,
) -> Vec<(Duration, Disturbance)> {
    let length = u64::try_from(length.as_millis()).unwrap_or(u64::MAX).max(1);
    (0..random.random_range(1..=12))
        .map(|_| {
            let at = Duration::from_millis(random.random_range(0..length));
            (at, one(random, replicas, sql))
        })
        .collect()
}

fn one(random: &mut StdRng, replicas: usize, sql: bool) -> Disturbance {
    let replica = random.random_range(0..replicas);
    let seconds = |random: &mut StdRng| Duration::from_secs(random.random_range(1..=90));
    match random.random_range(0..20) {
        0..10 => request(random, replicas, sql),
        10 => Disturbance::CutWatches { expired: false },
        11..14 => Disturbance::CutWatches { expired: true },
        14 => Disturbance::Outage(seconds(random)),
        15 => Disturbance::Partition(replica, seconds(random)),
        16 | 17 => Disturbance::Kill(replica, Duration::from_millis(random.random_range(0..20_000))),
        18 if replicas > 1 => Disturbance::StealLease,
        18 => Disturbance::MoveClock(random.random_range(-7200..=7200)),
        _ => Disturbance::Freeze(seconds(random)),
    }
}

fn request(random: &mut StdRng, replicas: usize, sql: bool) -> Disturbance {
    use Which::{Event, Get, Lease, List, Object, Statement, Status, Watch};
    let mut sorts = vec![Get, List, Watch, Status, Object, Object, Event];
    if replicas > 1 {
        sorts.push(Lease);
    }
    if sql {
        sorts.extend([Statement; 5]);
    }
    let which = *sorts.choose(random).unwrap_or(&Which::Object);
    let moment = if random.random() {
        Moment::Before
    } else {
        Moment::After
    };
    let statuses: &[u16] = match which {
        Which::Get => &[429, 500, 503, 504],
        Which::List | Which::Watch => &[410, 429, 500, 503],
        _ => &[409, 429, 500, 503, 504],
    };
    let late = Duration::from_millis(random.random_range(1_000..45_000));
    let effect = match random.random_range(0..8) {
        0..3 => {
            let status = *statuses.choose(random).unwrap_or(&500);
            // A server that has done something never says that it has not.
            let refused = matches!(status, 409 | 410 | 429);
            Effect::Answer(status, if refused { Moment::Before } else { moment })
        }
        3 => Effect::Break(moment),
        4 => Effect::Silence(moment),
        5 | 6 => Effect::Late(late),
        _ => Effect::LateAnswer(late),
    };
    Disturbance::Request {
        which,
        skip: random.random_range(0..4),
        effect,
    }
}
