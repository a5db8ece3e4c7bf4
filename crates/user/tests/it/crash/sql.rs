//! A4: killed at every statement, and cut off at every statement.
//!
//! What is stopped at is a message that can change something: a simple query, which may hold a whole transaction and
//! is then done by the server from its first word to its last; BEGIN and COMMIT are among them. Queries with bound
//! values only read. Being killed before a message is the same as having been killed after the one before, so only the
//! first has a "before".

use std::time::Duration;

use futures::{StreamExt, stream};
use stanchion_testkit::faults::Faults;
use stanchion_testkit::proxy::{Kind, Message, Point, Stop};
use stanchion_testkit::wait;

use super::story::Story;
use crate::bed::{How, PATIENCE, quick};

/// How long an operator must not write to be at rest.
const QUIET: Duration = Duration::from_millis(300);
const SIDE_BY_SIDE: usize = 4;

fn is_statement(message: &Message) -> bool {
    message.kind == Kind::Typed('Q')
}

/// What happens at a statement.
#[derive(Clone, Copy, Debug)]
enum Ending {
    /// The server never hears of it, and the operator is killed.
    KilledBefore,
    /// The server has done it, and the operator is killed before it knows.
    KilledAfter,
    /// The server has done it, and the answer is lost; the operator lives.
    Unanswered,
}

/// Tells the story with this ending at the nth statement. Returns how many there were, and the end.
async fn tell(story: Story, at: Option<(usize, Ending)>) -> (usize, String) {
    let told = story.set_up().await;
    let (proxy, admin) = told.bed.proxy().await;
    let start = async || {
        let faults = Faults::new();
        let (admin, backoff) = (admin.clone(), quick());
        let how = How {
            admin,
            faults: faults.clone(),
            backoff,
            ..told.bed.how().await
        };
        (told.bed.start(how), faults)
    };
    if let Some((nth, ending)) = at {
        let (point, stays) = match ending {
            Ending::KilledBefore => (Point::Before, true),
            Ending::KilledAfter => (Point::After, true),
            Ending::Unanswered => (Point::After, false),
        };
        let stop = Stop::at(nth, point).counting(is_statement);
        proxy.stop(if stays { stop.and_stay_cut() } else { stop });
    }
    let (mut operator, mut faults) = start().await;
    if let Some((_, Ending::KilledBefore | Ending::KilledAfter)) = at {
        tokio::select! {
            _ = proxy.stopped() => {}
            () = story.converge(&told) => {}
        }
        operator.kill().await;
        // Also where it was not reached.
        proxy.stop(Stop::at(1, Point::After).counting(|_| false));
        proxy.restore().await;
        (operator, faults) = start().await;
    }
    // What was done before it was killed may be all there is to see: it has to look for itself.
    let users = told.bed.users();
    wait::eventually(PATIENCE, "a pass", async || {
        // The proxy may cut after that, for a message of the one that was killed.
        proxy.restore().await;
        operator.passes() > 0 || users.get_opt("hero").await.unwrap().is_none()
    })
    .await;
    loop {
        story.converge(&told).await;
        operator.idle().await;
        let writes = faults.writes().len();
        faults.quiet(QUIET).await;
        if faults.writes().len() == writes {
            break;
        }
    }
    let state = story.end_state(&told).await;
    operator.kill().await;
    let seen = proxy.seen().messages;
    let statements = seen.iter().filter(|message| is_statement(message)).count();
    let text = Story::mask(&told, &serde_json::to_string_pretty(&state).unwrap());
    (statements, text.replace(&proxy.address().to_string(), "<server>"))
}

/// Tells the story with every ending at every statement.
async fn tell_all(story: Story) {
    let (statements, expected) = tell(story, None).await;
    assert!(statements > 3, "{statements}");
    let endings = (1..=statements).flat_map(|n| [(n, Ending::KilledAfter), (n, Ending::Unanswered)]);
    let endings = std::iter::once((1, Ending::KilledBefore)).chain(endings);
    stream::iter(endings)
        .map(async |at| (at, tell(story, Some(at)).await.1))
        .buffer_unordered(SIDE_BY_SIDE)
        .for_each(async |(at, state)| {
            let lines = state.lines().zip(expected.lines());
            let differing: Vec<_> = lines.filter(|(found, expected)| found != expected).collect();
            assert!(
                state == expected,
                "{story:?} {at:?} of {statements}: {differing:#?}"
            );
        })
        .await;
}

/// A4, C13: a creation; a COMMIT whose answer is lost is among it.
#[tokio::test]
async fn a_creation_stopped_at_any_statement_is_finished() {
    tell_all(Story::Create).await;
}

/// A4, A9: a change.
#[tokio::test]
async fn a_change_stopped_at_any_statement_is_finished() {
    tell_all(Story::Update).await;
}

/// A4: a new password.
#[tokio::test]
async fn a_new_password_stopped_at_any_statement_is_set() {
    tell_all(Story::Password).await;
}

/// A4: a deletion.
#[tokio::test]
async fn a_deletion_stopped_at_any_statement_is_finished() {
    tell_all(Story::Delete).await;
}

/// A4: a database of its own, which cannot be made in a transaction.
#[tokio::test]
async fn a_database_stopped_at_any_statement_is_ours() {
    tell_all(Story::Database).await;
}

/// A4: and its end.
#[tokio::test]
async fn a_database_stopped_at_any_statement_goes() {
    tell_all(Story::DeleteDatabase).await;
}
