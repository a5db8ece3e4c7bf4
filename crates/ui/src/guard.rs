//! Who may use the page: the browser of the person who started it, and nobody else.
//!
//! Everything on this machine, and every website in the same browser, can send requests to loopback. So a request needs
//! the token of the printed address, or the cookie that the page sets in exchange. `Host` must be the name in the printed
//! address (a website cannot rebind its own name to this address), and a request that changes something must come from
//! the page itself.
//!
//! That name is random, below `localhost`, which browsers resolve to loopback. A browser sends a cookie to every port of
//! the name that has set it: with 127.0.0.1, the server of another user of this machine would get the cookie as soon as a
//! link leads there, and could act with it. Nobody else knows a link to this name.

use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use crate::page::plain;
use crate::query::Query;
use crate::server::App;

/// Headers of every answer. Scripts and styles come from our two files only, and no other page may frame this one.
fn headers() -> [(HeaderName, &'static str); 6] {
    [
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
         form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        ),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // With `no-referrer`, a browser would send `Origin: null` with our own forms.
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ]
}

/// The name of the cookie.
const COOKIE: &str = "stanchion-ui";

/// The secrets of one run, each with 128 random bits.
#[derive(Clone)]
pub(crate) struct Keys {
    /// The name and the port in the printed address. The name has 64 random bits: it can only be guessed by making a
    /// browser open one guess after the other.
    host: String,
    /// In the printed address.
    token: String,
    /// In the cookie.
    session: String,
    /// In the forms of the page.
    form: String,
}

impl Keys {
    pub(crate) fn new(port: u16) -> Self {
        let secret = || format!("{:032x}", rand::random::<u128>());
        let name = format!("{:016x}.localhost", rand::random::<u64>());
        Self {
            // Browsers omit the default port of HTTP, in `Host` and in `Origin`.
            host: if port == 80 {
                name
            } else {
                format!("{name}:{port}")
            },
            token: secret(),
            session: secret(),
            form: secret(),
        }
    }

    /// The address to open.
    pub(crate) fn address(&self) -> String {
        format!("http://{}/?token={}", self.host, self.token)
    }

    /// The secret of the forms.
    pub(crate) fn form(&self) -> &str {
        &self.form
    }

    /// Whether a form contains the secret.
    pub(crate) fn is_form(&self, given: &str) -> bool {
        same(given, &self.form)
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        headers
            .get_all(header::COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .any(|(key, value)| key == COOKIE && same(value, &self.session))
    }

    /// Whether `Host` is the name of this run, with its port. An HTTP/2 request has it in its address.
    fn is_ours(&self, request: &Request) -> bool {
        let mut hosts = request.headers().get_all(header::HOST).iter();
        let host = match (request.uri().authority(), hosts.next(), hosts.next()) {
            (Some(authority), None, None) => authority.as_str(),
            (None, Some(host), None) => host.to_str().unwrap_or_default(),
            (Some(authority), Some(host), None) if host == authority.as_str() => authority.as_str(),
            _ => return false,
        };
        same(host, &self.host)
    }

    /// Whether the page itself sent the request.
    fn is_same_origin(&self, headers: &HeaderMap) -> bool {
        let said = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let origin = said(&header::ORIGIN);
        let from_page = origin == Some(format!("http://{}", self.host).as_str());
        // A browser also states the relation; a client that is not a browser does not.
        let site = said(&HeaderName::from_static("sec-fetch-site"));
        from_page && matches!(site, None | Some("same-origin"))
    }
}

/// Compares without revealing by its duration how much is equal.
fn same(given: &str, secret: &str) -> bool {
    verify_slices_are_equal(given.as_bytes(), secret.as_bytes()).is_ok()
}

/// Lets a request pass, or answers it.
pub(crate) async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let mut answer = match decide(&app.keys, &request) {
        Verdict::Pass => next.run(request).await,
        Verdict::Enter(to) => enter(&app.keys, &to),
        Verdict::Refuse(status, title, text) => (status, plain::page(title, text)).into_response(),
    };
    let headers = answer.headers_mut();
    for (name, value) in self::headers() {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    answer
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Pass,
    /// The token is right: set the cookie and go to this address, which no longer contains it.
    Enter(String),
    Refuse(StatusCode, &'static str, &'static str),
}

fn decide(keys: &Keys, request: &Request) -> Verdict {
    if !keys.is_ours(request) {
        return Verdict::Refuse(
            StatusCode::MISDIRECTED_REQUEST,
            "This is not the address of the page",
            "The page answers only to the name in its own address. Open the address that stanchion ui printed.",
        );
    }
    // A path with two slashes would be the address of another server.
    let path = Some(request.uri().path())
        .filter(|path| !path.starts_with("//"))
        .unwrap_or("/");
    // They are the same for everybody, and the refusal itself uses them.
    if path.starts_with("/assets/") {
        return Verdict::Pass;
    }
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let query = Query::parse(request.uri().query().unwrap_or_default());
    if is_read && query.get("token").is_some_and(|token| same(token, &keys.token)) {
        return Verdict::Enter(query.without("token").on(path));
    }
    if !keys.has_cookie(request.headers()) {
        return Verdict::Refuse(
            StatusCode::UNAUTHORIZED,
            "The token is missing",
            "Open the address that stanchion ui printed: it contains a token. A new start has a new token.",
        );
    }
    if !is_read && !keys.is_same_origin(request.headers()) {
        return Verdict::Refuse(
            StatusCode::FORBIDDEN,
            "The request does not come from this page",
            "Nothing was changed. Open the page and decide there.",
        );
    }
    Verdict::Pass
}

/// Sets the cookie. A redirect would not do: if another site has linked here, the browser counts the whole chain as
/// cross-site and withholds a strict cookie. The page that follows is opened by this one.
fn enter(keys: &Keys, to: &str) -> Response {
    let cookie = format!("{COOKIE}={}; Path=/; HttpOnly; SameSite=Strict", keys.session);
    ([(header::SET_COOKIE, cookie)], plain::forward(to)).into_response()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use axum::body::Body;

    use super::*;

    fn keys() -> Keys {
        Keys {
            token: "t0ken".into(),
            session: "s3ssion".into(),
            form: "f0rm".into(),
            host: "n4me.localhost:7000".into(),
        }
    }

    fn request(method: &str, uri: &str, headers: &[(&str, &str)]) -> Request {
        let mut request = http::Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(Body::empty()).unwrap()
    }

    fn status(method: &str, uri: &str, headers: &[(&str, &str)]) -> u16 {
        match decide(&keys(), &request(method, uri, headers)) {
            Verdict::Pass => 200,
            Verdict::Enter(_) => 303,
            Verdict::Refuse(status, ..) => status.as_u16(),
        }
    }

    const HOST: (&str, &str) = ("host", "n4me.localhost:7000");
    const COOKIE: (&str, &str) = ("cookie", "a=b; stanchion-ui=s3ssion");
    const ORIGIN: (&str, &str) = ("origin", "http://n4me.localhost:7000");

    #[test]
    fn only_the_random_name_is_a_host() {
        assert_eq!(status("GET", "/", &[HOST, COOKIE]), 200);
        for host in [
            "127.0.0.1:7000",
            "localhost:7000",
            "[::1]:7000",
            "name.localhost:7000",
            "n4me.localhost",
            "n4me.localhost:7001",
            "evil.example",
            "evil.example:7000",
            "127.0.0.1",
            "n4me.localhost:7000.evil.example",
            "",
        ] {
            assert_eq!(status("GET", "/", &[("host", host), COOKIE]), 421, "{host}");
        }
        assert_eq!(status("GET", "/", &[COOKIE]), 421);
        assert_eq!(status("GET", "/", &[HOST, ("host", "evil.example"), COOKIE]), 421);
    }

    #[test]
    fn a_token_or_a_cookie_is_required() {
        assert_eq!(status("GET", "/", &[HOST]), 401);
        assert_eq!(status("GET", "/?token=t0kem", &[HOST]), 401);
        assert_eq!(status("GET", "/?token=", &[HOST]), 401);
        assert_eq!(status("GET", "/", &[HOST, ("cookie", "stanchion-ui=no")]), 401);
        assert_eq!(status("GET", "/", &[HOST, ("cookie", "other=s3ssion")]), 401);
        assert_eq!(
            decide(&keys(), &request("GET", "/o/a?token=t0ken&q=x%26y", &[HOST])),
            Verdict::Enter("/o/a?q=x%26y".into())
        );
        assert_eq!(status("GET", "/assets/page.js", &[HOST]), 200);
    }

    /// A browser sends a cookie to every port of the host that has set it, and of no other host.
    #[test]
    fn the_cookie_is_for_a_host_that_only_this_run_knows() {
        let keys = Keys::new(7000);
        let address = keys.address();
        let (host, _) = address
            .strip_prefix("http://")
            .unwrap()
            .split_once(":7000/?token=")
            .unwrap();
        let (random, parent) = host.split_once('.').unwrap();
        assert_eq!((random.len(), parent), (16, "localhost"));
        let entered = enter(&keys, "/");
        let cookie = entered.headers()[header::SET_COOKIE].to_str().unwrap();
        assert!(!cookie.to_lowercase().contains("domain"), "{cookie}");
        assert!(!cookie.contains(random), "{cookie}");
    }

    /// A browser omits it in both headers, and in the address that it shows.
    #[test]
    fn the_default_port_is_in_no_header() {
        let keys = Keys::new(80);
        let (host, _) = keys
            .address()
            .strip_prefix("http://")
            .unwrap()
            .split_once('/')
            .map(|(host, rest)| (host.to_owned(), rest.to_owned()))
            .unwrap();
        assert!(host.ends_with(".localhost"), "{host}");
        let cookie = format!("stanchion-ui={}", keys.session);
        let origin = format!("http://{host}");
        let sent = [("host", host.as_str()), ("cookie", &cookie), ("origin", &origin)];
        assert_eq!(decide(&keys, &request("POST", "/o", &sent)), Verdict::Pass);
    }

    #[test]
    fn a_change_comes_from_the_page_itself() {
        assert_eq!(status("POST", "/o", &[HOST, COOKIE, ORIGIN]), 200);
        assert_eq!(status("POST", "/o?token=t0ken", &[HOST]), 401);
        assert_eq!(status("POST", "/o", &[HOST, COOKIE]), 403);
        for origin in [
            "null",
            "https://n4me.localhost:7000",
            "http://n4me.localhost:7001",
            "http://127.0.0.1:7000",
            "http://evil.example",
        ] {
            assert_eq!(status("POST", "/o", &[HOST, COOKIE, ("origin", origin)]), 403);
        }
        let site = |word| [HOST, COOKIE, ORIGIN, ("sec-fetch-site", word)];
        assert_eq!(status("POST", "/o", &site("same-site")), 403);
        assert_eq!(status("POST", "/o", &site("same-origin")), 200);
    }

    #[test]
    fn secrets_are_long_and_new_each_time() {
        let (one, other) = (Keys::new(1), Keys::new(1));
        assert_ne!(one.host, other.host);
        for (one, other) in [
            (&one.token, &other.token),
            (&one.session, &other.session),
            (&one.form, &other.form),
        ] {
            assert_eq!(one.len(), 32);
            assert_ne!(one, other);
        }
    }
}
