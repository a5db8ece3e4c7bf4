//! A TCP proxy in front of any server, to interrupt the network at a chosen moment.
//!
//! It can be cut and restored, put on hold, slowed down, or stopped at the nth message of a client with certainty about
//! what the server did. It counts connections, messages and round trips.

mod connection;
mod framing;
mod stop;

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use tokio::{
    net::{TcpListener, TcpSocket},
    sync::watch,
    task::{AbortHandle, JoinSet},
};

pub use framing::{Framing, Kind, Message};
pub use stop::{Point, Stop};

const BACKLOG: u32 = 1024;

/// What a client sees when it connects to a proxy that is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Connection refused, as from a host without a server. The proxy does not see such attempts.
    Refuse,
    /// Accepted and closed at once. The proxy counts the attempts.
    Close,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Open,
    Held,
    Cut(Cut),
}

impl Mode {
    fn is_cut(self) -> bool {
        matches!(self, Self::Cut(_))
    }
}

#[derive(Clone, Copy, Debug)]
struct Control {
    mode: Mode,
    to_server: Duration,
    to_client: Duration,
}

/// What the proxy has observed so far.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// When clients connected, including connections that were closed at once.
    pub attempts: Vec<Instant>,
    /// Every message from a client, in order of arrival.
    pub messages: Vec<Message>,
    /// Number of times that a client sent data after an answer (or after connecting).
    pub round_trips: usize,
    /// Number of open connections.
    pub open: usize,
    /// Maximum number of open connections.
    pub most_open: usize,
}

struct Shared {
    framing: Framing,
    control: watch::Sender<Control>,
    listening: watch::Sender<bool>,
    open: watch::Sender<usize>,
    stopped: watch::Sender<Option<Message>>,
    stop: Mutex<Option<Stop>>,
    seen: Mutex<Seen>,
}

impl Shared {
    fn seen(&self, note: impl FnOnce(&mut Seen)) {
        note(&mut self.seen.lock().unwrap());
    }

    /// The point of the armed stop if it is due at this message; this disarms it.
    fn stop_for(&self, message: &Message) -> Option<(Point, bool)> {
        self.stop
            .lock()
            .unwrap()
            .take_if(|stop| stop.is_due(message))
            .map(|stop| (stop.point, stop.stay_cut))
    }

    fn tripped(&self, message: Message, stay_cut: bool) {
        if stay_cut {
            self.set_mode(Mode::Cut(Cut::Close));
        }
        self.stopped.send_replace(Some(message));
    }

    fn set_mode(&self, mode: Mode) {
        self.control.send_modify(|control| control.mode = mode);
    }

    fn count_open(&self, change: isize) {
        self.seen(|seen| {
            seen.open = seen.open.saturating_add_signed(change);
            seen.most_open = seen.most_open.max(seen.open);
            self.open.send_replace(seen.open);
        });
    }
}

/// A proxy on loopback. Dropping the value ends it.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: AbortHandle,
}

impl Proxy {
    /// A proxy that understands PostgreSQL's messages.
    pub async fn postgres(target: SocketAddr) -> Self {
        Self::start(target, Framing::Postgres).await
    }

    /// A proxy in front of `target`.
    pub async fn start(target: SocketAddr, framing: Framing) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("bind a free port on loopback");
        let address = listener.local_addr().expect("a bound listener has an address");
        let control = Control {
            mode: Mode::Open,
            to_server: Duration::ZERO,
            to_client: Duration::ZERO,
        };
        let shared = Arc::new(Shared {
            framing,
            control: watch::Sender::new(control),
            listening: watch::Sender::new(true),
            open: watch::Sender::new(0),
            stopped: watch::Sender::new(None),
            stop: Mutex::new(None),
            seen: Mutex::default(),
        });
        let task = tokio::spawn(run(shared.clone(), listener, address, target)).abort_handle();
        Self {
            address,
            shared,
            task,
        }
    }

    /// The address for clients.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The port of [`Proxy::address`].
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Closes all connections and refuses new ones; returns when this is done.
    pub async fn cut(&self, how: Cut) {
        self.shared.set_mode(Mode::Cut(how));
        let _ = self.shared.open.subscribe().wait_for(|&open| open == 0).await;
        let _ = self
            .shared
            .listening
            .subscribe()
            .wait_for(|&listening| listening == (how == Cut::Close))
            .await;
    }

    /// Ends the cut or hold; returns when clients can connect.
    pub async fn restore(&self) {
        self.shared.set_mode(Mode::Open);
        let _ = self
            .shared
            .listening
            .subscribe()
            .wait_for(|&listening| listening)
            .await;
    }

    /// Keeps connections open but forwards nothing, in either direction, until [`Proxy::restore`].
    pub fn hold(&self) {
        self.shared.set_mode(Mode::Held);
    }

    /// Delays all data.
    pub fn delay(&self, to_server: Duration, to_client: Duration) {
        self.shared.control.send_modify(|control| {
            control.to_server = to_server;
            control.to_client = to_client;
        });
    }

    /// Arms a stop, instead of the armed one.
    pub fn stop(&self, stop: Stop) {
        self.shared.stopped.send_replace(None);
        *self.shared.stop.lock().unwrap() = Some(stop);
    }

    /// Waits until the armed stop has happened, and returns its message.
    pub async fn stopped(&self) -> Message {
        let mut stopped = self.shared.stopped.subscribe();
        let message = stopped
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|message| message.clone());
        message.expect("the proxy outlives its handle's borrow")
    }

    /// What the proxy has observed so far.
    pub fn seen(&self) -> Seen {
        self.shared.seen.lock().unwrap().clone()
    }

    /// Resets the observations, except for open connections.
    pub fn forget(&self) {
        self.shared.seen(|seen| {
            *seen = Seen {
                open: seen.open,
                most_open: seen.open,
                ..Seen::default()
            };
        });
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run(shared: Arc<Shared>, listener: TcpListener, address: SocketAddr, target: SocketAddr) {
    let mut control = shared.control.subscribe();
    let mut connections = JoinSet::new();
    let mut port = Port::Open(listener);
    let mut number = 0;
    loop {
        let mode = control.borrow_and_update().mode;
        port = match (port, mode) {
            (Port::Open(listener), Mode::Cut(Cut::Refuse)) => {
                drop(listener);
                Port::Shut(bind_again(address).await)
            }
            (Port::Shut(socket), mode) if mode != Mode::Cut(Cut::Refuse) => {
                Port::Open(socket.listen(BACKLOG).expect("a socket that is bound can listen"))
            }
            (port, _) => port,
        };
        shared.listening.send_replace(matches!(port, Port::Open(_)));
        let accepted = async {
            match &port {
                Port::Open(listener) => listener.accept().await,
                Port::Shut(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = control.changed() => if changed.is_err() { return },
            Some(_) = connections.join_next() => shared.count_open(-1),
            Ok((client, _)) = accepted => {
                shared.seen(|seen| seen.attempts.push(Instant::now()));
                // Read again: the mode may have changed in the meantime.
                if !control.borrow().mode.is_cut() {
                    shared.count_open(1);
                    connections.spawn(connection::serve(shared.clone(), number, client, target));
                    number += 1;
                }
            }
        }
    }
}

/// The port stays bound: otherwise another process could take it and answer instead of a refusal.
enum Port {
    Open(TcpListener),
    /// Bound, but not listening: connections are refused.
    Shut(TcpSocket),
}

async fn bind_again(address: SocketAddr) -> TcpSocket {
    loop {
        let socket = TcpSocket::new_v4().expect("a socket");
        // Our own connections still occupy the port.
        if socket
            .set_reuseaddr(true)
            .and_then(|()| socket.bind(address))
            .is_ok()
        {
            return socket;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
