//! Notifies a browser when its page has changed, by server-sent events. The browser then loads the page again, so there
//! is one way to render, and the page is never older than the change.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{RawQuery, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures::stream::{self, BoxStream, Stream, StreamExt as _};
use http::{StatusCode, header};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::{WatchStreamExt as _, watcher};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::broadcast::error::RecvError;

use crate::live::{Change, Live};
use crate::page::PLANS;
use crate::query::Query;
use crate::server::{App, Place};

/// Changes within this time are announced together.
const TOGETHER: Duration = Duration::from_millis(150);
/// A comment in this interval keeps the connection open.
const KEEP: Duration = Duration::from_secs(15);

/// Announces the changes of the page that `at` names.
pub(crate) fn live(State(app): State<Arc<App>>, RawQuery(query): RawQuery) -> Ready<Response> {
    ready(answer(&app, query.as_deref().unwrap_or_default()))
}

fn answer(app: &App, query: &str) -> Response {
    let Ok(seat) = app.seats.clone().try_acquire_owned() else {
        let headers = [(header::RETRY_AFTER, "10")];
        let words = "too many pages are open; close one\n";
        return (StatusCode::SERVICE_UNAVAILABLE, headers, words).into_response();
    };
    let query = Query::parse(query);
    let place = query.get("at").and_then(place);
    let mut signals = vec![changes(&app.live, place.as_ref())];
    if let Some(place) = &place {
        signals.push(events(app, place));
    }
    // The browser reads the page once more when it is connected: it may have missed a change before.
    let first = stream::once(async {}).boxed();
    let signals = together(first.chain(stream::select_all(signals)).boxed(), seat);
    // A browser ignores an event without data.
    let answer = signals.map(|()| Ok::<_, Infallible>(Event::default().event("change").data("change")));
    Sse::new(answer)
        .keep_alive(KeepAlive::new().interval(KEEP))
        .into_response()
}

/// The object of a path: `/o/KIND/NAMESPACE/NAME`, and what is below it.
fn place(path: &str) -> Option<Place> {
    let mut parts = path.strip_prefix("/o/")?.split('/');
    Place::of(parts.next()?, parts.next()?, parts.next()?)
}

/// The changes of one object, or of all.
fn changes(live: &Live, place: Option<&Place>) -> BoxStream<'static, ()> {
    let this = place.map(|place| {
        (
            place.kind.plural().to_owned(),
            (place.namespace.clone(), place.name.clone()),
        )
    });
    let concerns = move |change: &Change| match (&this, &change.name) {
        // A new plan is on the page of its policy.
        (Some((plural, _)), _) if change.plural == PLANS && plural != PLANS => true,
        (Some((plural, name)), Some(changed)) => *plural == change.plural && name == changed,
        (Some((plural, _)), None) => *plural == change.plural,
        (None, _) => true,
    };
    stream::unfold((live.changes(), concerns), async |(mut heard, concerns)| {
        loop {
            match heard.recv().await {
                Ok(change) if concerns(&change) => return Some(((), (heard, concerns))),
                Ok(_) => {}
                // Some changes were missed; any of them may concern this page.
                Err(RecvError::Lagged(_)) => return Some(((), (heard, concerns))),
                Err(RecvError::Closed) => return None,
            }
        }
    })
    .boxed()
}

/// The events about one object, by name: without the permission to watch them, it is silent.
fn events(app: &App, place: &Place) -> BoxStream<'static, ()> {
    let gvk = GroupVersionKind::gvk("events.k8s.io", "v1", "Event");
    let resource = ApiResource::from_gvk_with_plural(&gvk, "events");
    let api: Api<DynamicObject> =
        Api::namespaced_with(app.cluster.client.clone(), &place.namespace, &resource);
    let about = format!(
        "regarding.kind={},regarding.name={}",
        place.kind.resource.kind, place.name
    );
    watcher::watcher(api, watcher::Config::default().fields(&about))
        .default_backoff()
        .filter_map(async |event| match event {
            Ok(watcher::Event::Apply(_)) => Some(()),
            _ => None,
        })
        .boxed()
}

/// One signal for changes that follow each other at once. The seat is free when the browser is gone.
fn together(
    signals: BoxStream<'static, ()>,
    seat: OwnedSemaphorePermit,
) -> impl Stream<Item = ()> + Send + 'static {
    stream::unfold((signals, seat, true), async |(mut signals, seat, is_first)| {
        signals.next().await?;
        // A steady stream of changes must not keep the page waiting.
        let deadline = tokio::time::sleep(if is_first { Duration::ZERO } else { TOGETHER });
        tokio::pin!(deadline);
        loop {
            tokio::select! {
                () = &mut deadline => break,
                more = signals.next() => if more.is_none() { break },
            }
        }
        Some(((), (signals, seat, false)))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn many_changes_are_one_signal_and_the_seat_is_given_back() {
        let seats = Arc::new(Semaphore::new(1));
        let seat = seats.clone().try_acquire_owned().unwrap();
        let burst = stream::iter([(), (), ()]);
        let later = stream::once(tokio::time::sleep(TOGETHER * 10));
        let signals = together(burst.chain(later).chain(stream::pending()).boxed(), seat);
        let mut signals = Box::pin(signals);
        let mut heard = 0;
        while let Ok(Some(())) = tokio::time::timeout(TOGETHER * 100, signals.next()).await {
            heard += 1;
        }
        assert!((2..=3).contains(&heard), "{heard}");
        assert_eq!(seats.available_permits(), 0);
        drop(signals);
        assert_eq!(seats.available_permits(), 1);
    }

    #[test]
    fn the_object_of_a_path() {
        let found = place("/o/postgrespolicies/shop/stock/access").unwrap();
        assert_eq!((found.namespace.as_str(), found.name.as_str()), ("shop", "stock"));
        assert!(place("/").is_none());
        assert!(place("/o/secrets/a/b").is_none());
    }
}
