//! Watches: the state so far, if asked for, and then every change, in order, until the client or the time is
//! at its end.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use futures::stream::{self, Stream};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use serde_json::json;
use tokio::time::Instant;

use super::{list, render};
use crate::answer::{self, Answer};
use crate::clock::Clock;
use crate::error::{ApiError, Fault, FieldError};
use crate::faults::Effect;
use crate::request::{Call, Form};
use crate::resource::Resource;
use crate::selector::Selector;
use crate::server::Server;
use crate::store::{Change, Cursor, Object, OutOfRange};
use crate::table;

const BOOKMARK_EVERY: Duration = Duration::from_mins(1);
const LONGEST: Duration = Duration::from_hours(1);

/// What a watch leaves to each of the others before it sends again. An event to a hundred watches is a hundred pieces of
/// work: when many follow each other, they are sent several at a time. Few watches, or an event after a while, wait for
/// nothing.
const SHARE: Duration = Duration::from_micros(50);

/// What one watch shows to its client.
struct View {
    server: Arc<Server>,
    resource: Arc<Resource>,
    selector: Selector,
    namespace: Option<String>,
    form: Form,
    include: String,
    bookmarks: bool,
}

impl View {
    fn selects(&self, object: &Object) -> bool {
        self.namespace
            .as_deref()
            .is_none_or(|namespace| object.namespace() == namespace)
            && self.selector.matches(object.value())
    }

    /// The event of a change, if this watch may see it; a selector turns changes into comings and goings.
    fn event(&self, change: &Change) -> Option<Bytes> {
        let before = change
            .before
            .as_deref()
            .is_some_and(|before| self.selects(before));
        let after = !change.deleted && self.selects(&change.after);
        let kind = match (before, after) {
            (false, true) => "ADDED",
            (true, true) => "MODIFIED",
            (true, false) => "DELETED",
            (false, false) => return None,
        };
        if kind == "DELETED"
            && !change.deleted
            && let Some(before) = &change.before
        {
            // It left the selection: the client sees its last selected state, at the revision of the change.
            let last = Object::new(before.value().clone(), change.revision);
            return Some(self.frame(kind, &last));
        }
        Some(self.frame(kind, &change.after))
    }

    fn frame(&self, kind: &str, object: &Object) -> Bytes {
        match self.form {
            Form::Json | Form::Yaml
                if kind == "MODIFIED" && render::is_stored_as(&self.resource, object.value()) =>
            {
                object.modified_event()
            }
            Form::Json | Form::Yaml => frame(kind, &render::json(&self.resource, object)),
            Form::Metadata => frame(kind, object.metadata_json()),
            Form::Table => {
                let value = render::converted(&self.resource, object.value())
                    .unwrap_or_else(|| object.value().clone());
                let meta = json!({"resourceVersion": object.revision().to_string()});
                let clock: &Clock = &self.server.clock;
                let table = table::table(&self.resource, &[&value], &meta, &self.include, clock);
                frame(kind, table.to_string().as_bytes())
            }
        }
    }

    fn bookmark(&self, revision: u64, end_of_initial: bool) -> Bytes {
        let (kind, api_version) = match self.form {
            Form::Metadata => ("PartialObjectMetadata".to_owned(), "meta.k8s.io/v1".to_owned()),
            _ => (self.resource.kind.clone(), self.resource.api_version()),
        };
        let mut object = json!({
            "kind": kind, "apiVersion": api_version, "metadata": {"resourceVersion": revision.to_string()},
        });
        if end_of_initial {
            object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        if self.form == Form::Table {
            object = table::table(
                &self.resource,
                &[&object],
                &object["metadata"],
                &self.include,
                &self.server.clock,
            );
        }
        frame("BOOKMARK", object.to_string().as_bytes())
    }
}

fn frame(kind: &str, object: &[u8]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(object.len() + 40);
    bytes.put(&b"{\"type\":\""[..]);
    bytes.put(kind.as_bytes());
    bytes.put(&b"\",\"object\":"[..]);
    bytes.put(object);
    bytes.put(&b"}\n"[..]);
    bytes.freeze()
}

/// A running watch.
struct Running {
    view: View,
    user: String,
    cursor: Cursor,
    queue: VecDeque<Bytes>,
    ends: Instant,
    next_bookmark: Instant,
    lag: Option<Duration>,
    /// When it may send again.
    rested: Instant,
    /// Events until a fault ends this watch.
    left: Option<usize>,
    failed: bool,
}

impl Running {
    /// Waits until it may send again, and adds what has come meanwhile.
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
        // In the words of the original, which means something else.
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
