//! Watches: the initial state, if requested, and then every change in order, until the client or the timeout ends the
//! watch.

mod view;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, Stream};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use serde_json::json;
use tokio::time::Instant;

use self::view::{View, frame};
use super::list;
use crate::answer::{self, Answer};
use crate::error::{ApiError, Fault, FieldError};
use crate::faults::Effect;
use crate::request::Call;
use crate::server::Server;
use crate::store::{Change, Cursor, OutOfRange};

const BOOKMARK_EVERY: Duration = Duration::from_mins(1);
const LONGEST: Duration = Duration::from_hours(1);

/// The pause of a watch, per open watch, before it sends again. An event for a hundred watches is a hundred pieces of
/// work, so events that follow each other closely are sent in batches. With few watches, or for a single event, there
/// is no noticeable pause.
const SHARE: Duration = Duration::from_micros(50);

/// A running watch.
struct Running {
    view: View,
    user: String,
    cursor: Cursor,
    queue: VecDeque<Bytes>,
    ends: Instant,
    next_bookmark: Instant,
    lag: Option<Duration>,
    /// When the watch may send again.
    rested: Instant,
    /// Number of events until a fault ends this watch.
    left: Option<usize>,
    failed: bool,
}

impl Running {
    /// Waits until the watch may send again, and adds new changes.
    async fn rest(&mut self, changes: Result<Vec<Change>, OutOfRange>) -> Result<Vec<Change>, OutOfRange> {
        let mut changes = changes?;
        if Instant::now() < self.rested {
            tokio::time::sleep_until(self.rested).await;
            changes.extend(self.cursor.poll()?);
        }
        self.rested = Instant::now() + SHARE * self.view.server.store.watches();
        Ok(changes)
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.left == Some(0) {
                return None;
            }
            if let Some(event) = self.queue.pop_front() {
                self.left = self.left.map(|left| left - 1);
                return Some(event);
            }
            if self.failed {
                return None;
            }
            let changes = tokio::select! {
                biased;
                changes = self.cursor.next() => changes,
                () = tokio::time::sleep_until(self.ends) => return None,
                () = tokio::time::sleep_until(self.next_bookmark), if self.view.bookmarks => {
                    self.next_bookmark += BOOKMARK_EVERY;
                    return Some(self.view.bookmark(self.cursor.seen(), false));
                }
            };
            if let Some(lag) = self.lag {
                tokio::time::sleep(lag).await;
            }
            if let Ok(changes) = self.rest(changes).await {
                let events = changes.iter().filter_map(|change| self.view.event(change));
                self.queue.extend(events);
            } else {
                self.failed = true;
                let error = ApiError::expired(format!("too old resource version: {}", self.cursor.seen()));
                self.queue
                    .push_back(frame("ERROR", error.to_status().to_string().as_bytes()));
            }
        }
    }
}

fn stream(running: Running) -> impl Stream<Item = Result<Frame<Bytes>, Infallible>> + Send + 'static {
    stream::unfold(running, |mut running| async move {
        let event = running.next().await;
        if running.view.server.faults.is_dead(&running.user) {
            return std::future::pending().await;
        }
        Some((Ok(Frame::data(event?)), running))
    })
}

pub(crate) fn watch(server: &Arc<Server>, call: &Call) -> Result<Answer, ApiError> {
    let selector = list::selector(call)?;
    let asked = list::plain_revision(call.query.text("resourceVersion"))?;
    let initial = call
        .query
        .get("sendInitialEvents")
        .map(|_| call.query.flag("sendInitialEvents"));
    check_initial(call, initial)?;
    if !call.query.text("continue").is_empty() {
        // The original's message, which describes another rule.
        let detail = "resourceVersionMatch is forbidden when continue is provided";
        return Err(list::refused(&[FieldError::forbidden(
            "resourceVersionMatch",
            detail,
        )]));
    }
    let timeout = call.query.text("timeoutSeconds");
    if !timeout.is_empty() && timeout.parse::<i64>().is_err() {
        return Err(list::not_a_number(timeout));
    }
    let bookmarks = call.query.flag("allowWatchBookmarks");
    let view = View {
        server: server.clone(),
        resource: call.resource.clone(),
        selector,
        namespace: list::namespace(call).map(str::to_owned),
        form: call.form,
        include: call.query.text("includeObject").to_owned(),
        bookmarks,
    };
    let mut queue = VecDeque::new();
    let from = if initial.unwrap_or(asked.is_none()) {
        let snapshot = server
            .store
            .list(&call.resource.storage, view.namespace.as_deref());
        if let Some(asked) = asked.filter(|asked| *asked > snapshot.revision) {
            return Err(ApiError::too_large_version(asked, snapshot.revision));
        }
        let selected = snapshot.objects.iter().filter(|(_, object)| view.selects(object));
        queue.extend(selected.map(|(_, object)| view.frame("ADDED", object)));
        if initial == Some(true) && bookmarks {
            queue.push_back(view.bookmark(snapshot.revision, true));
        }
        snapshot.revision
    } else {
        asked.unwrap_or_else(|| server.store.revision())
    };
    let timeout = call
        .query
        .number("timeoutSeconds")
        .filter(|seconds| *seconds > 0)
        .map_or(LONGEST, Duration::from_secs);
    let (lag, left) = match server.faults.of_watch(call) {
        Some(Effect::LagWatch(lag)) => (Some(lag), None),
        Some(Effect::EndWatch(events)) => (None, Some(events)),
        _ => (None, None),
    };
    let now = Instant::now();
    let running = Running {
        cursor: Cursor::new(&server.store, &call.resource.storage, from),
        user: call.user.name.clone(),
        view,
        queue,
        lag,
        rested: now,
        left,
        ends: now + timeout,
        next_bookmark: now + BOOKMARK_EVERY,
        failed: false,
    };
    let mut answer = answer::bytes(200, "application/json", Bytes::new());
    *answer.body_mut() = StreamBody::new(stream(running)).boxed_unsync();
    Ok(answer)
}

/// The rules for streaming lists.
fn check_initial(call: &Call, initial: Option<bool>) -> Result<(), ApiError> {
    let matching = call.query.text("resourceVersionMatch");
    let forbidden = |detail: &str| FieldError::forbidden("resourceVersionMatch", detail);
    let mut errors = Vec::new();
    if initial.is_none() && !matching.is_empty() {
        errors.push(forbidden(
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        ));
    }
    if initial.is_some() && matching != "NotOlderThan" {
        errors.push(forbidden(
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ));
        if !matching.is_empty() {
            let known = "supported values: \"NotOlderThan\"";
            errors.push(FieldError::new(
                Fault::NotSupported,
                "resourceVersionMatch",
                Some(json!(matching)),
                known,
            ));
        }
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(list::refused(&errors))
    }
}
