//! A client of a page that behaves like a browser.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::{Request, Response};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use stanchion_ui::Server;

/// An open page.
pub(crate) struct Browser {
    server: Server,
    client: Client<HttpConnector, Full<Bytes>>,
    /// `http://NAME.localhost:PORT`.
    pub(crate) origin: String,
    pub(crate) cookie: String,
}

/// What a page answers.
pub(crate) struct Page {
    pub(crate) status: u16,
    pub(crate) headers: hyper::HeaderMap,
    pub(crate) text: String,
}

impl Browser {
    /// Opens the printed address, and keeps the cookie that it sets.
    pub(super) async fn enter(server: Server) -> Self {
        let mut browser = Self {
            origin: server.address().split("/?").next().unwrap().to_owned(),
            server,
            client: Client::builder(TokioExecutor::new()).build_http(),
            cookie: String::new(),
        };
        let entered = browser.get(&browser.entrance(), &[]).await;
        assert_eq!(entered.status, 200, "{}", entered.text);
        let cookie = entered.headers["set-cookie"].to_str().unwrap();
        cookie.split(';').next().unwrap().clone_into(&mut browser.cookie);
        browser
    }

    /// The path and token of the printed address.
    pub(crate) fn entrance(&self) -> String {
        self.server
            .address()
            .strip_prefix(&self.origin)
            .unwrap()
            .to_owned()
    }

    /// The printed address.
    pub(crate) fn address(&self) -> String {
        self.server.address().to_owned()
    }

    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Response<Incoming> {
        self.client.request(request).await.unwrap()
    }

    /// A request with these headers and the cookie, if there is one.
    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Request<Full<Bytes>> {
        // A browser resolves the name to loopback. The system does not everywhere.
        let host = self.origin.strip_prefix("http://").unwrap();
        let (_, port) = host.rsplit_once(':').unwrap();
        let mut request = Request::builder()
            .method(method)
            .uri(format!("http://127.0.0.1:{port}{path}"));
        if !headers.iter().any(|(name, _)| *name == "host") {
            request = request.header("host", host);
        }
        if !self.cookie.is_empty() {
            request = request.header("cookie", &self.cookie);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(Full::from(body.to_owned())).unwrap()
    }

    async fn page(&self, request: Request<Full<Bytes>>) -> Page {
        let answer = self.send(request).await;
        let (parts, body) = answer.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Page {
            status: parts.status.as_u16(),
            headers: parts.headers,
            text: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }

    pub(crate) async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Page {
        self.page(self.request("GET", path, headers, "")).await
    }

    /// A form of the page itself.
    pub(crate) async fn post(&self, path: &str, body: &str) -> Page {
        self.post_with(path, &[("origin", &self.origin.clone())], body)
            .await
    }

    pub(crate) async fn post_with(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Page {
        self.page(self.request("POST", path, headers, body)).await
    }
}
