//! Starts the page; its addresses and their handlers.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, RawQuery, State};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use http::{StatusCode, header};
use jiff::Timestamp;
use stanchion_fleet::cluster::{Cluster, Unreadable, is_name};
use stanchion_fleet::kinds::{Kind, with_status};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::act::{self, Decision};
use crate::guard::{Keys, guard};
use crate::live::Live;
use crate::page::{self, Frame, plain};
use crate::query::Query;
use crate::{access, stream};

/// Browsers that can be notified at the same time.
const SEATS: usize = 32;
/// The largest form, in bytes.
const FORM: usize = 4096;

const STYLE: &str = include_str!("assets/style.css");
const SCRIPT: &str = include_str!("assets/page.js");
const ICON: &str = include_str!("assets/icon.svg");

/// Why the page cannot be served.
#[derive(Debug, Error)]
pub enum ServerError {
    /// The port is taken, or may not be used.
    #[error(
        "cannot listen on port {port} of 127.0.0.1 and ::1: {source}; choose another --port, or 0 for a free one"
    )]
    Listen {
        /// The requested port.
        port: u16,
        /// The error of the system.
        source: io::Error,
    },
}

/// A running page. It ends when it is dropped.
pub struct Server {
    address: String,
    // Dropping the set aborts the watches and the server.
    _tasks: JoinSet<()>,
}

/// What the handlers share.
pub(crate) struct App {
    pub(crate) keys: Keys,
    pub(crate) live: Live,
    pub(crate) cluster: Cluster,
    pub(crate) seats: Arc<Semaphore>,
}

impl Server {
    /// Starts to watch the cluster and to listen on loopback. Port 0 selects a free one.
    pub async fn start(cluster: Cluster, port: u16) -> Result<Self, ServerError> {
        let failed = |source| ServerError::Listen { port, source };
        let (listeners, port) = listen(port).await.map_err(failed)?;
        let keys = Keys::new(port);
        let address = keys.address();
        let (live, mut tasks) = Live::start(&cluster);
        let app = Arc::new(App {
            keys,
            live,
            cluster,
            seats: Arc::new(Semaphore::new(SEATS)),
        });
        for listener in listeners {
            let router = router(app.clone());
            tasks.spawn(async move {
                // It only ends with the task.
                let _ = axum::serve(listener, router).await;
            });
        }
        Ok(Self {
            address,
            _tasks: tasks,
        })
    }

    /// The address to open, with its token.
    pub fn address(&self) -> &str {
        &self.address
    }
}

/// Listens on both addresses of loopback: a browser may resolve the name of the page to either, and another user of this
/// machine could otherwise listen on the second one and get the token.
async fn listen(port: u16) -> io::Result<(Vec<TcpListener>, u16)> {
    // A free port of one address may be taken on the other.
    let mut left = if port == 0 { 16 } else { 1 };
    loop {
        let v4 = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let found = v4.local_addr()?.port();
        left -= 1;
        match TcpListener::bind((Ipv6Addr::LOCALHOST, found)).await {
            Ok(v6) => return Ok((vec![v4, v6], found)),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && left == 0 => return Err(error),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            // This machine has no IPv6, so nobody can listen there.
            Err(_) => return Ok((vec![v4], found)),
        }
    }
}

fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/", get(fleet))
        .route("/o/{plural}/{namespace}/{name}", get(object))
        .route("/o/{plural}/{namespace}/{name}/access", get(access_page))
        .route("/o/{plural}/{namespace}/{name}/decide", post(decide))
        .route("/live", get(stream::live))
        .route("/assets/style.css", get(asset("text/css; charset=utf-8", STYLE)))
        .route(
            "/assets/page.js",
            get(asset("text/javascript; charset=utf-8", SCRIPT)),
        )
        .route("/assets/icon.svg", get(asset("image/svg+xml", ICON)))
        .fallback(|| std::future::ready(missing()))
        .layer(DefaultBodyLimit::max(FORM))
        .layer(from_fn_with_state(app.clone(), guard))
        .with_state(app)
}

/// The address of an asset contains the version of the program, so a browser may keep it.
fn asset(
    kind: &'static str,
    text: &'static str,
) -> impl Fn() -> std::future::Ready<Response> + Clone + Send + Sync + 'static {
    move || {
        let headers = [
            (header::CONTENT_TYPE, kind),
            (header::CACHE_CONTROL, "private, max-age=31536000, immutable"),
        ];
        std::future::ready((headers, text).into_response())
    }
}

impl App {
    fn frame<'a>(&'a self, title: &'a str, path: &'a str) -> Frame<'a> {
        Frame {
            title,
            path,
            is_live: true,
            cluster: &self.cluster.url,
            namespace: self.cluster.namespace.as_deref(),
        }
    }
}

async fn fleet(State(app): State<Arc<App>>, RawQuery(query): RawQuery) -> Response {
    let query = Query::parse(query.as_deref().unwrap_or_default());
    app.live.settled().await;
    let fleet = app.live.fleet(query.get("kind"), Timestamp::now());
    page::fleet::page(&app.frame("Fleet", "/"), &fleet, &query).into_response()
}

/// The object that an address names.
pub(crate) struct Place {
    pub(crate) kind: Kind,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Place {
    /// `None` if the names cannot be those of an object.
    pub(crate) fn of(plural: &str, namespace: &str, name: &str) -> Option<Self> {
        let kind = with_status().iter().find(|kind| kind.plural() == plural)?;
        (is_name(namespace) && is_name(name)).then(|| Self {
            kind: kind.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }

    /// The path of its page.
    pub(crate) fn path(&self) -> String {
        page::path(self.kind.plural(), &self.namespace, &self.name)
    }

    /// The cluster, in its namespace.
    pub(crate) fn cluster(&self, cluster: &Cluster) -> Cluster {
        Cluster {
            namespace: Some(self.namespace.clone()),
            ..cluster.clone()
        }
    }
}

type Names = Path<(String, String, String)>;

async fn object(State(app): State<Arc<App>>, Path((plural, namespace, name)): Names) -> Response {
    let Some(place) = Place::of(&plural, &namespace, &name) else {
        return missing();
    };
    Box::pin(show(&app, &place, StatusCode::OK, None)).await
}

/// The page of an object, with what was refused.
async fn show(app: &App, place: &Place, status: StatusCode, refused: Option<&str>) -> Response {
    let cluster = place.cluster(&app.cluster);
    let gathered = match stanchion_fleet::read::one(&cluster, &place.kind, &place.name).await {
        Ok(gathered) => gathered,
        Err(why) => {
            let page = plain::page("This object cannot be shown", &why);
            return (StatusCode::NOT_FOUND, page).into_response();
        }
    };
    let (path, now) = (place.path(), Timestamp::now());
    let title = format!("{} {}/{}", place.kind.resource.kind, place.namespace, place.name);
    let frame = Frame {
        is_live: refused.is_none(),
        ..app.frame(&title, &path)
    };
    let page = if place.kind.plural() == page::PLANS {
        // Who decides reads the SQL itself: an object that is shown has lost the literals in its SQL.
        let sql = act::sql(&cluster, &gathered.object).await;
        let shown = page::object::Shown::of(gathered, now);
        page::plan::page(&frame, &shown, &sql, app.keys.form(), refused)
    } else {
        page::object::page(&frame, &page::object::Shown::of(gathered, now))
    };
    (status, page).into_response()
}

async fn access_page(
    State(app): State<Arc<App>>,
    Path((plural, namespace, name)): Names,
    RawQuery(query): RawQuery,
) -> Response {
    let place = Place::of(&plural, &namespace, &name).filter(|place| place.kind.plural() == page::POLICIES);
    let Some(place) = place else {
        return missing();
    };
    let query = Query::parse(query.as_deref().unwrap_or_default());
    let path = format!("{}/access", place.path());
    let title = format!("Access of {}/{}", place.namespace, place.name);
    match access::read(&place.cluster(&app.cluster), &place).await {
        Ok(desired) => {
            page::access::page(&app.frame(&title, &path), &place, &desired, &query).into_response()
        }
        Err(why) => {
            let page = plain::page("The access of this policy cannot be shown", &why);
            (StatusCode::UNPROCESSABLE_ENTITY, page).into_response()
        }
    }
}

async fn decide(
    State(app): State<Arc<App>>,
    Path((plural, namespace, name)): Names,
    body: Bytes,
) -> Response {
    let place = Place::of(&plural, &namespace, &name).filter(|place| place.kind.plural() == page::PLANS);
    let Some(place) = place else {
        return missing();
    };
    let form = Query::parse(&String::from_utf8_lossy(&body));
    if !form.get("form").is_some_and(|given| app.keys.is_form(given)) {
        let page = plain::page(
            "The form is out of date",
            "Nothing was changed. Open the plan again and decide there.",
        );
        return (StatusCode::FORBIDDEN, page).into_response();
    }
    let wanted = form.get("decision").and_then(Decision::parse);
    let (Some(decision), Some(uid)) = (wanted, form.get("uid")) else {
        let page = plain::page(
            "The form is incomplete",
            "Nothing was changed. Open the plan again.",
        );
        return (StatusCode::BAD_REQUEST, page).into_response();
    };
    match act::decide(&place.cluster(&app.cluster), &place, decision, uid).await {
        Ok(()) => Redirect::to(&place.path()).into_response(),
        Err(refused) => {
            let status = match refused.why {
                Unreadable::Forbidden => StatusCode::FORBIDDEN,
                Unreadable::NotServed => StatusCode::NOT_FOUND,
                Unreadable::Failed(_) => StatusCode::CONFLICT,
            };
            Box::pin(show(&app, &place, status, Some(&refused.text))).await
        }
    }
}

fn missing() -> Response {
    let page = plain::page("There is no such page", "Go back to the fleet.");
    (StatusCode::NOT_FOUND, page).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise its owner would get the token from a browser that tries this address first.
    #[tokio::test]
    async fn a_port_that_somebody_else_has_on_the_other_loopback_address_is_refused() {
        let Ok(taken) = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).await else {
            return;
        };
        let port = taken.local_addr().unwrap().port();
        let refused = listen(port).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
        drop(taken);
        let (listeners, found) = listen(0).await.unwrap();
        assert_eq!(listeners.len(), 2);
        for listener in listeners {
            assert_eq!(listener.local_addr().unwrap().port(), found);
        }
    }

    #[test]
    fn only_a_valid_name_becomes_part_of_a_request() {
        assert!(Place::of("postgresusers", "shop", "alice.b-1").is_some());
        for (plural, namespace, name) in [
            ("secrets", "shop", "alice"),
            ("postgresusers", "..", "alice"),
            ("postgresusers", "shop", "a/../../secrets/x"),
            ("postgresusers", "shop", "a?watch=1"),
            ("postgresusers", "shop", "a%2f"),
            ("postgresusers", "shop", ""),
        ] {
            assert!(
                Place::of(plural, namespace, name).is_none(),
                "{plural}/{namespace}/{name}"
            );
        }
    }
}
