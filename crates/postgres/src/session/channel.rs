//! The connection to a server: a socket, TLS over it, and an [`Inspector`] of everything that the server sends.
//!
//! This code sets it up and not the driver, so that the address is the one that was checked, and the driver gets no
//! data that was not inspected. The driver gets a stream that is ready.

use std::fmt;
use std::future::Ready;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::AcquireError;
use tokio::time::error::Elapsed;
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};

use super::inspect::{Inspector, Refusal};
use super::limits::{FREE, Limits, Portion, STEP, Share};
use crate::connection_config::ConnectionConfig;
use crate::dialer::Dialer;
use crate::network::{AllowedNetworks, ConnectError};
use crate::tls::Tls;

/// `SSLRequest`: its length, and a version number that no protocol uses.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// The checked addresses of a target.
#[derive(Debug, Clone)]
pub(crate) enum Road {
    Tcp(Vec<SocketAddr>, Dialer),
    Socket(PathBuf),
}

/// The one connected address, or all that were found.
impl fmt::Display for Road {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => path.display().fmt(f),
            Self::Tcp(addresses, _) => {
                let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
                f.write_str(&addresses.join(","))
            }
        }
    }
}

impl Road {
    /// Resolves the target's host.
    pub(crate) async fn to(
        target: &ConnectionConfig,
        networks: &AllowedNetworks,
        dialer: &Dialer,
    ) -> Result<Self, ConnectError> {
        if !target.is_local_socket() {
            let addresses = networks.resolve(target.host(), target.port()).await?;
            return Ok(Self::Tcp(addresses, dialer.clone()));
        }
        if !networks.allows_sockets() {
            return Err(ConnectError::Closed);
        }
        let file = format!(".s.PGSQL.{}", target.port());
        Ok(Self::Socket(PathBuf::from(target.host()).join(file)))
    }

    /// Connects to the first address that answers, and returns which one that was.
    pub(crate) async fn travel(&self) -> io::Result<(Box<dyn Stream>, Self)> {
        match self {
            Self::Socket(path) => {
                let stream = UnixStream::connect(path).await?;
                Ok((Box::new(Plain(stream)), self.clone()))
            }
            Self::Tcp(addresses, dialer) => {
                let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
                for address in addresses {
                    match dial(*address, dialer).await {
                        Ok(stream) => return Ok((stream, Self::Tcp(vec![*address], dialer.clone()))),
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
        }
    }
}

async fn dial(address: SocketAddr, dialer: &Dialer) -> io::Result<Box<dyn Stream>> {
    if let Some(dial) = dialer.replaced() {
        return Ok(Box::new(Plain(dial.dial(address).await?)));
    }
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    keep_alive(&stream)?;
    Ok(Box::new(Plain(stream)))
}

/// Detects a peer that disappeared silently.
fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    let probes = socket2::TcpKeepalive::new().with_time(Duration::from_secs(30));
    socket2::SockRef::from(stream).set_tcp_keepalive(&probes)
}

/// A stream that supports channel binding.
pub(crate) trait Stream: TlsStream + Send + Unpin {}

impl<S: TlsStream + Send + Unpin> Stream for S {}

/// Without TLS there is no channel binding.
struct Plain<S>(S);

impl<S: AsyncRead + Unpin> AsyncRead for Plain<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Plain<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_shutdown(cx)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Plain<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

/// Why TLS failed.
#[derive(Debug)]
pub(crate) enum Failed {
    /// The server does not offer it, and it is required.
    NotOffered,
    /// The network or TLS failed.
    Io(io::Error),
}

/// Requests TLS as `mode` defines. Returns the stream, and whether it is encrypted.
pub(crate) async fn encrypt(
    mut stream: Box<dyn Stream>,
    mode: SslMode,
    tls: &Tls,
    host: &str,
) -> Result<(Box<dyn Stream>, bool), Failed> {
    if mode == SslMode::Disable {
        return Ok((stream, false));
    }
    stream.write_all(&SSL_REQUEST).await.map_err(Failed::Io)?;
    // Exactly one byte: data that an attacker in between appends must not count as sent by the server.
    let offered = stream.read_u8().await.map_err(Failed::Io)? == b'S';
    if !offered {
        return if mode == SslMode::Require {
            Err(Failed::NotOffered)
        } else {
            Ok((stream, false))
        };
    }
    let mut connector = tls.connector.clone();
    let connect = MakeTlsConnect::<Box<dyn Stream>>::make_tls_connect(&mut connector, host);
    let connect = connect.map_err(|error| Failed::Io(io::Error::other(error)))?;
    let encrypted = connect.connect(stream).await.map_err(Failed::Io)?;
    Ok((Box::new(encrypted), true))
}

/// The shared state of a session and its channel.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// Requests whose answers are counted together, and the number of such groups.
    asked: AtomicUsize,
    turn: AtomicUsize,
    /// What the answers under way have taken of the budget.
    held: Mutex<Option<Portion>>,
    refusal: OnceLock<Refusal>,
}

impl Meter {
    /// This many requests are sent; `first` if all earlier ones were answered.
    pub(crate) fn ask(&self, requests: usize, first: bool) {
        if first {
            self.rest();
            self.asked.store(requests, Ordering::Release);
            self.turn.fetch_add(1, Ordering::AcqRel);
        } else {
            self.asked.fetch_add(requests, Ordering::AcqRel);
        }
    }

    /// The last answer is not needed any more.
    pub(crate) fn rest(&self) {
        drop(self.take());
    }

    /// The part of the budget that the last answer uses, to be kept as long as the parsed answer.
    pub(super) fn take(&self) -> Option<Portion> {
        self.held.lock().take()
    }

    /// Why nothing more is read.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        self.refusal.get().copied()
    }

    fn steps(&self) -> usize {
        let held = self.held.lock();
        held.as_ref().map_or(0, Portion::steps)
    }

    fn hold(&self, more: Portion) {
        let mut held = self.held.lock();
        match held.as_mut() {
            Some(held) => held.merge(more),
            None => *held = Some(more),
        }
    }
}

type Taken = Result<Portion, AcquireError>;
type Waiting = Pin<Box<dyn Future<Output = Result<Taken, Elapsed>> + Send>>;

/// How long an answer waits for its share of the budget. Answers that each have a share and wait for more could
/// otherwise wait for each other forever.
const MEMORY_TIMEOUT: Duration = Duration::from_secs(2);

/// A stream whose messages are inspected.
pub(crate) struct Channel {
    stream: Box<dyn Stream>,
    inspector: Inspector,
    meter: Arc<Meter>,
    turn: usize,
    share: Share,
    waiting: Option<Waiting>,
}

impl Channel {
    pub(crate) fn new(
        stream: Box<dyn Stream>,
        limits: Limits,
        verified: bool,
        share: Share,
        meter: Arc<Meter>,
    ) -> Self {
        Self {
            stream,
            inspector: Inspector::new(limits, verified),
            meter,
            turn: 0,
            share,
            waiting: None,
        }
    }

    /// Takes from the budget what the answer needs so far.
    fn poll_budget(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let needed = self.inspector.weight().saturating_sub(FREE).div_ceil(STEP);
            let Some(more) = needed.checked_sub(self.meter.steps()).filter(|more| *more > 0) else {
                self.waiting = None;
                return Poll::Ready(Ok(()));
            };
            let share = &self.share;
            let waiting = self.waiting.get_or_insert_with(|| {
                let portion = share.clone().take(u32::try_from(more).unwrap_or(u32::MAX));
                Box::pin(timeout(MEMORY_TIMEOUT, portion))
            });
            let portion = ready!(waiting.as_mut().poll(cx));
            self.waiting = None;
            let Ok(portion) = portion else {
                let _ = self.meter.refusal.set(Refusal::Budget);
                self.meter.rest();
                return Poll::Ready(Err(io::Error::other(Refusal::Budget)));
            };
            self.meter.hold(portion.map_err(io::Error::other)?);
        }
    }
}

impl AsyncRead for Channel {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let channel = self.get_mut();
        ready!(channel.poll_budget(cx))?;
        let before = buf.filled().len();
        ready!(Pin::new(&mut channel.stream).poll_read(cx, buf))?;
        let turn = channel.meter.turn.load(Ordering::Acquire);
        if turn != channel.turn {
            channel.turn = turn;
            channel.inspector.begin();
        }
        let new = buf.filled().get(before..).unwrap_or_default();
        let asked = channel.meter.asked.load(Ordering::Acquire);
        let seen = channel.inspector.look(new, asked);
        Poll::Ready(seen.map_err(|refusal| {
            buf.set_filled(before);
            let _ = channel.meter.refusal.set(refusal);
            io::Error::other(refusal)
        }))
    }
}

impl AsyncWrite for Channel {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

impl TlsStream for Channel {
    fn channel_binding(&self) -> ChannelBinding {
        self.stream.channel_binding()
    }
}

/// For the driver: TLS is done, or is not used.
pub(crate) struct Done;

impl TlsConnect<Channel> for Done {
    type Stream = Channel;
    type Error = io::Error;
    type Future = Ready<io::Result<Channel>>;

    fn connect(self, channel: Channel) -> Self::Future {
        std::future::ready(Ok(channel))
    }
}
