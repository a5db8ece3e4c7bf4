//! One proxied connection: a copy loop for each direction, and the cut.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    time::{sleep, timeout},
};

use super::{
    Shared,
    framing::{Framer, Message},
    stop::Point,
};

/// How long the server may take to process the last message before a cut.
const DRAIN_DEADLINE: Duration = Duration::from_secs(30);

/// How a copy loop ended.
enum End {
    Closed,
    Stopped { message: Message, stay_cut: bool },
}

/// Serves one connection until one side closes it or the proxy cuts it.
pub(super) async fn serve(shared: Arc<Shared>, number: usize, client: TcpStream, target: SocketAddr) {
    let mut control = shared.control.subscribe();
    let cut = async { control.wait_for(|control| control.mode.is_cut()).await.map(drop) };
    let Ok(server) = TcpStream::connect(target).await else {
        return;
    };
    let _ = client.set_nodelay(true);
    let _ = server.set_nodelay(true);
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let line = Line {
        shared: &shared,
        number,
        muted: AtomicBool::new(false),
        server_spoke: AtomicBool::new(true),
    };
    let end = tokio::select! {
        end = line.up(&mut from_client, &mut to_server) => end,
        () = line.down(&mut from_server, &mut to_client) => End::Closed,
        _ = cut => End::Closed,
    };
    if let End::Stopped { message, stay_cut } = end {
        // The server reads what it was sent and then the end of the stream. When it closes the connection, it has
        // finished the session, so after the cut the server's state no longer changes.
        let _ = to_server.shutdown().await;
        let drained = async { while matches!(from_server.read(&mut [0; 4096]).await, Ok(1..)) {} };
        let _ = timeout(DRAIN_DEADLINE, drained).await;
        shared.tripped(message, stay_cut);
    }
}

struct Line<'a> {
    shared: &'a Shared,
    number: usize,
    /// Whether the server's next answer is dropped.
    muted: AtomicBool,
    /// Whether the server has sent something since the client's last message: then the next message is a round trip.
    server_spoke: AtomicBool,
}

impl Line<'_> {
    async fn up(&self, client: &mut (impl AsyncRead + Unpin), server: &mut (impl AsyncWrite + Unpin)) -> End {
        let mut framer = Framer::new(self.shared.framing);
        let mut chunk = vec![0; 16 * 1024];
        loop {
            let Ok(length @ 1..) = client.read(&mut chunk).await else {
                return End::Closed;
            };
            if self.server_spoke.swap(false, Ordering::AcqRel) {
                self.shared.seen(|seen| seen.round_trips += 1);
            }
            self.pass(|control| control.to_server).await;
            framer.push(&chunk[..length]);
            while let Some((message, bytes)) = framer.next(self.number) {
                self.shared.seen(|seen| seen.messages.push(message.clone()));
                let stop = self.shared.stop_for(&message);
                if let Some((Point::Before, stay_cut)) = stop {
                    return End::Stopped { message, stay_cut };
                }
                self.muted.store(stop.is_some(), Ordering::Release);
                if server.write_all(&bytes).await.is_err() {
                    return End::Closed;
                }
                if let Some((Point::After, stay_cut)) = stop {
                    return End::Stopped { message, stay_cut };
                }
            }
        }
    }

    async fn down(&self, server: &mut (impl AsyncRead + Unpin), client: &mut (impl AsyncWrite + Unpin)) {
        let mut chunk = vec![0; 16 * 1024];
        while let Ok(length @ 1..) = server.read(&mut chunk).await {
            self.server_spoke.store(true, Ordering::Release);
            self.pass(|control| control.to_client).await;
            if self.muted.load(Ordering::Acquire) {
                // The other copy loop is about to end the connection.
                std::future::pending::<()>().await;
            }
            if client.write_all(&chunk[..length]).await.is_err() {
                return;
            }
        }
    }

    /// Waits for the delay of this direction, and while the proxy is on hold.
    async fn pass(&self, delay: fn(&super::Control) -> Duration) {
        let mut control = self.shared.control.subscribe();
        let delay = delay(&control.borrow());
        if !delay.is_zero() {
            sleep(delay).await;
        }
        let _ = control
            .wait_for(|control| control.mode != super::Mode::Held)
            .await;
    }
}
