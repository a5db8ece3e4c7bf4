//! Connections for HTTP requests: to the server itself, or to the proxy that the environment of the process names.
//!
//! `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, in upper or lower case, have the meaning that curl gives them.
//! The machine itself (`localhost` and loopback addresses) is never reached through a proxy, as in Go's programs.
//!
//! The administrator chooses the proxy, so its address is not checked. The author of an object chooses the server, so a
//! server that [`AllowedNetworks`] forbids is refused before the proxy is asked for it.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::uri::Scheme;
use http::{HeaderValue, Uri};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tower::Service;

use crate::dialer::{Dialer, Wire};
use crate::network::{AllowedNetworks, ConnectError};

/// Longest answer of a proxy to CONNECT.
const MAX_HEAD: usize = 8 * 1024;

/// Why there is no connection through a proxy. Never contains the proxy's password.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The proxy needs another protocol.
    #[error("the proxy {0} is not an http:// address, and other proxies are not supported")]
    Unsupported(String),
    /// The proxy does not answer.
    #[error("the proxy {0} does not answer: {1}")]
    Unreachable(String, io::Error),
    /// The proxy does not connect to the server.
    #[error("the proxy {0} does not connect to {1}: it answers {2}")]
    Refused(String, String, String),
}

/// Connects to addresses that were checked, or through a proxy.
#[derive(Clone, Debug)]
pub struct Connector {
    networks: AllowedNetworks,
    proxies: Arc<Matcher>,
    dialer: Dialer,
}

impl Connector {
    /// With the proxies of the environment.
    pub fn from_env(networks: AllowedNetworks) -> Self {
        Self::new(networks, Matcher::from_env())
    }

    /// With these proxies.
    pub fn new(networks: AllowedNetworks, proxies: Matcher) -> Self {
        Self {
            networks,
            proxies: Arc::new(proxies),
            dialer: Dialer::default(),
        }
    }

    /// Opens the connections to servers with this.
    #[must_use]
    pub(crate) fn dialing(mut self, dialer: Dialer) -> Self {
        self.dialer = dialer;
        self
    }

    /// The `Proxy-Authorization` of a request that a proxy gets itself. Requests to `https` servers have none: their
    /// CONNECT has it.
    pub fn authorization(&self, uri: &Uri) -> Option<HeaderValue> {
        let plain = uri.scheme() == Some(&Scheme::HTTP);
        let proxy = self.proxy(uri).filter(|_| plain)?;
        proxy.basic_auth().cloned()
    }

    fn proxy(&self, uri: &Uri) -> Option<Intercept> {
        if is_this_machine(bare(uri)) {
            return None;
        }
        self.proxies.intercept(uri)
    }

    async fn connect(self, uri: Uri) -> io::Result<Stream> {
        let is_secure = uri.scheme() == Some(&Scheme::HTTPS);
        let port = uri.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        let Some(proxy) = self.proxy(&uri) else {
            return match self.networks.connect(bare(&uri), port, &self.dialer).await {
                Ok(stream) => Ok(Stream::new(stream, false)),
                Err(ConnectError::Io(error)) => Err(error),
                Err(closed @ ConnectError::Closed) => Err(io::Error::other(closed)),
            };
        };
        if self.networks.forbids(bare(&uri), port).await {
            return Err(io::Error::other(ConnectError::Closed));
        }
        let mut stream = reach(&proxy).await.map_err(io::Error::other)?;
        if is_secure {
            let server = format!("{}:{port}", uri.host().unwrap_or_default());
            ask(&mut stream, &server, &proxy)
                .await
                .map_err(io::Error::other)?;
        }
        Ok(Stream::new(Box::new(stream), !is_secure))
    }
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.clone().connect(uri))
    }
}

/// Whether the environment names a proxy for this server.
pub fn is_proxied(server: &Uri) -> bool {
    Connector::from_env(AllowedNetworks::everything())
        .proxy(server)
        .is_some()
}

/// The host without the brackets of an IPv6 address.
fn bare(uri: &Uri) -> &str {
    uri.host().unwrap_or_default().trim_matches(['[', ']'])
}

fn is_this_machine(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Host and port of a proxy, without its user and password.
fn shown(proxy: &Intercept) -> String {
    let port = proxy.uri().port_u16().unwrap_or(80);
    format!("{}:{port}", proxy.uri().host().unwrap_or_default())
}

async fn reach(proxy: &Intercept) -> Result<TcpStream, ProxyError> {
    if proxy.uri().scheme() != Some(&Scheme::HTTP) {
        return Err(ProxyError::Unsupported(shown(proxy)));
    }
    let port = proxy.uri().port_u16().unwrap_or(80);
    TcpStream::connect((bare(proxy.uri()), port))
        .await
        .map_err(|error| ProxyError::Unreachable(shown(proxy), error))
}

/// Asks the proxy to connect to a server. The server waits for TLS, so nothing follows the proxy's answer.
async fn ask(stream: &mut TcpStream, server: &str, proxy: &Intercept) -> Result<(), ProxyError> {
    let unreachable = |error| ProxyError::Unreachable(shown(proxy), error);
    let mut request = format!("CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n").into_bytes();
    if let Some(authorization) = proxy.basic_auth() {
        request.extend_from_slice(b"Proxy-Authorization: ");
        request.extend_from_slice(authorization.as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    stream.write_all(&request).await.map_err(unreachable)?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut chunk = [0; 1024];
        let length = stream.read(&mut chunk).await.map_err(unreachable)?;
        if length == 0 || head.len() > MAX_HEAD {
            break;
        }
        head.extend_from_slice(chunk.get(..length).unwrap_or_default());
    }
    let status = status(&head);
    match status.as_deref() {
        Some(code) if code.starts_with('2') => Ok(()),
        code => {
            let code = code.unwrap_or("no HTTP").to_owned();
            Err(ProxyError::Refused(shown(proxy), server.to_owned(), code))
        }
    }
}

/// The code of a complete answer: three digits, and nothing else of the proxy's text.
fn status(head: &[u8]) -> Option<String> {
    let line = head
        .ends_with(b"\r\n\r\n")
        .then(|| head.split(|byte| *byte == b'\r').next())??;
    let code = std::str::from_utf8(line)
        .ok()?
        .strip_prefix("HTTP/1.")?
        .get(2..5)?;
    code.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| code.to_owned())
}

/// A connection to a server or to a proxy.
pub struct Stream {
    io: TokioIo<Box<dyn Wire>>,
    /// Whether a proxy reads the requests, which then name the whole URL.
    is_proxy: bool,
}

impl Stream {
    fn new(stream: Box<dyn Wire>, is_proxy: bool) -> Self {
        let io = TokioIo::new(stream);
        Self { io, is_proxy }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("is_proxy", &self.is_proxy)
            .finish_non_exhaustive()
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new().proxy(self.is_proxy)
    }
}

impl Read for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl Write for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
