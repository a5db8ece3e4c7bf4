//! A connection to the real server.
//!
//! An exchange blocks the only thread of the run: nothing else happens in the process until the server has answered, so
//! that the answers of several sessions cannot overtake each other. Only a statement that waits for another session lets time
//! go on, for that session belongs to this process, too.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::frames::{self, Request};
use crate::server::{Login, Server};

/// After this time of the machine, not of the run, the server is asked whether a statement waits for another session.
const LOOK: Duration = Duration::from_millis(100);
/// A server that neither answers nor waits is broken.
const BROKEN: Duration = Duration::from_mins(1);

pub(super) struct Link {
    server: Arc<Server>,
    socket: TcpStream,
    /// The process that serves the session.
    process: Option<i32>,
    /// A statement is running.
    busy: bool,
    /// Until the session has logged in.
    login: Option<Login>,
    /// The server has ended the session.
    pub(super) ended: bool,
}

impl Link {
    pub(super) fn open(server: Arc<Server>) -> io::Result<Self> {
        let socket = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port()))?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(LOOK))?;
        Ok(Self {
            login: Some(server.login()),
            server,
            socket,
            process: None,
            busy: false,
            ended: false,
        })
    }

    /// Whether the session has logged in.
    pub(super) fn has_logged_in(&self) -> bool {
        self.login.is_none()
    }

    /// Sends a request, and returns the whole answer.
    pub(super) async fn exchange(&mut self, sent: &[u8], request: &Request) -> io::Result<Vec<u8>> {
        self.busy = true;
        self.socket.write_all(sent)?;
        let (mut received, mut buffer, mut pause) = (Vec::new(), vec![0; 1 << 16], LOOK);
        let begun = Instant::now();
        loop {
            match self.socket.read(&mut buffer) {
                Ok(0) => {
                    self.ended = true;
                    self.login = None;
                    break;
                }
                Ok(length) => {
                    received.extend_from_slice(buffer.get(..length).unwrap_or_default());
                    let answer = frames::answer(&received);
                    self.process = self.process.or(answer.process);
                    if answer.asks || answer.ready >= request.answers {
                        if answer.ready > 0 {
                            self.login = None;
                        }
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    assert!(
                        begun.elapsed() < BROKEN,
                        "PostgreSQL does not answer: {}",
                        request.shape
                    );
                    if self
                        .process
                        .is_some_and(|process| self.server.waits_for_others(process))
                    {
                        sleep(pause).await;
                        pause = (pause * 2).min(Duration::from_secs(2));
                    }
                }
                Err(error) => return Err(error),
            }
        }
        self.busy = false;
        Ok(received)
    }

    /// Sends what has no answer, and waits until the server has closed the connection.
    pub(super) fn part_with(&mut self, sent: &[u8]) {
        if self.ended {
            return;
        }
        self.ended = true;
        if let (true, Some(process)) = (self.busy, self.process) {
            self.server.terminate(process);
        }
        let _ = self.socket.write_all(sent);
        let _ = self.socket.shutdown(Shutdown::Write);
        let (begun, mut rest) = (Instant::now(), [0; 1 << 10]);
        while begun.elapsed() < BROKEN {
            match self.socket.read(&mut rest) {
                Ok(0) => return,
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return,
                _ => {}
            }
        }
    }
}

impl Drop for Link {
    /// The server has ended the session before anything else happens: its locks and its transaction are gone.
    fn drop(&mut self) {
        self.part_with(&[]);
    }
}
