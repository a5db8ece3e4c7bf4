//! A session's stream: what the driver writes is kept until the server has to answer it, and is then carried.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::sleep;

use super::frames::{self, Request};
use super::link::Link;
use super::{Health, Hub, Sql};
use crate::disturbance::{Effect, Moment, Which};
use crate::scenario::CANARY;

type Carried = (Option<Link>, io::Result<Vec<u8>>);

pub(super) struct Line {
    sql: Sql,
    link: Option<Link>,
    sent: Vec<u8>,
    received: Vec<u8>,
    carrying: Option<BoxFuture<'static, Carried>>,
    /// Ends when the server breaks its connections.
    broken: BoxFuture<'static, ()>,
    reader: Option<Waker>,
}

impl Line {
    pub(super) fn new(sql: Sql, link: Link) -> Self {
        Self {
            broken: Box::pin(sql.hub.clone().down()),
            sql,
            link: Some(link),
            sent: Vec::new(),
            received: Vec::new(),
            carrying: None,
            reader: None,
        }
    }
}

impl AsyncRead for Line {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if !this.received.is_empty() {
                let length = this.received.len().min(buf.remaining());
                buf.put_slice(this.received.get(..length).unwrap_or_default());
                this.received.drain(..length);
                return Poll::Ready(Ok(()));
            }
            if let Some(carrying) = &mut this.carrying {
                let (link, carried) = ready!(carrying.as_mut().poll(cx));
                this.carrying = None;
                this.link = link;
                this.received = carried?;
                if this.received.is_empty() {
                    return Poll::Ready(Ok(()));
                }
                continue;
            }
            let Some(link) = this.link.take_if(|link| !link.ended) else {
                return Poll::Ready(Ok(()));
            };
            if let Some(request) = frames::request(&this.sent, link.has_logged_in()) {
                let sent = std::mem::take(&mut this.sent);
                this.carrying = Some(Box::pin(carry(this.sql.clone(), link, sent, request)));
            } else {
                if this.broken.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
                }
                this.link = Some(link);
                this.reader = Some(cx.waker().clone());
                return Poll::Pending;
            }
        }
    }
}

impl AsyncWrite for Line {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let line = self.get_mut();
        line.sent.extend_from_slice(buf);
        if let Some(reader) = line.reader.take() {
            reader.wake();
        }
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let line = self.get_mut();
        if frames::cancels(&line.sent)
            && let Some(mut link) = line.link.take()
        {
            link.part_with(&line.sent);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let line = self.get_mut();
        line.carrying = None;
        if let Some(mut link) = line.link.take() {
            link.part_with(&line.sent);
        }
        Poll::Ready(Ok(()))
    }
}

/// The way of one request to the server, and of its answer. Without a link, the connection is broken.
async fn carry(sql: Sql, mut link: Link, sent: Vec<u8>, request: Request) -> Carried {
    let Sql {
        network,
        replica,
        hub,
    } = &sql;
    let (replica, shape) = (*replica, &request.shape);
    let like = format!("{replica} sql {shape}");
    let note = |how: &str| network.record().note(&format!("{replica} sql {shape}{how}"));
    let effect = network.strike(Which::Statement);
    network.reached(replica).await;
    sleep(network.0.latency.next(&like)).await;
    if let Some(Effect::Late(more)) = effect {
        sleep(more).await;
    }
    network.reached(replica).await;
    match (effect, hub.health().0) {
        (_, Health::Down) | (Some(Effect::Break(Moment::Before) | Effect::Answer(_, Moment::Before)), _) => {
            note(" is cut");
            return (None, Err(io::ErrorKind::ConnectionReset.into()));
        }
        (_, Health::Silent) | (Some(Effect::Silence(Moment::Before)), _) => {
            note(" is lost");
            // The session keeps what it holds, as one does whose client has vanished.
            return broken(hub).await;
        }
        _ => {}
    }
    if request.writes {
        network.record().writes(replica, &format!("sql {shape}"));
    }
    if sent.windows(CANARY.len()).any(|part| part == CANARY.as_bytes()) {
        network
            .record()
            .violate(format!("a secret is sent to PostgreSQL in {shape}"));
    }
    note("");
    let answer = link.exchange(&sent, &request).await;
    sleep(network.0.latency.next(&like)).await;
    network.reached(replica).await;
    match effect {
        Some(Effect::Break(Moment::After) | Effect::Answer(_, Moment::After)) => {
            note(" is done and cut");
            (None, Err(io::ErrorKind::ConnectionReset.into()))
        }
        Some(Effect::Silence(Moment::After)) => {
            note(" is done and its answer lost");
            broken(hub).await
        }
        Some(Effect::LateAnswer(more)) => {
            sleep(more).await;
            (Some(link), answer)
        }
        _ => (Some(link), answer),
    }
}

/// A request that nobody answers ends when the server breaks its connections, as an idle one does.
async fn broken(hub: &Hub) -> Carried {
    hub.clone().down().await;
    (None, Err(io::ErrorKind::ConnectionReset.into()))
}
