//! Finds the messages in a client's data.

use bytes::{Bytes, BytesMut};

/// How a client's bytes are split into messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// PostgreSQL's frontend protocol. After a TLS handshake it is unreadable and treated as raw.
    Postgres,
    /// Each read is a message.
    Raw,
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The first message of a session.
    Startup,
    /// A request for TLS or GSS encryption.
    Encryption,
    /// A request to cancel another session's statement.
    Cancel,
    /// A message of a session, by its letter: `Q` query, `P` parse, `B` bind, `E` execute, `S` sync,
    /// `p` password, `X` terminate.
    Typed(char),
    /// Bytes that are not parsed.
    Raw,
}

/// One message from a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The number of its connection, from 0.
    pub connection: usize,
    /// What it is.
    pub kind: Kind,
    /// The SQL text, if it has one (`Q` and `P`).
    pub sql: Option<String>,
}

impl Message {
    /// Whether the client waits for its result: a simple query, or an execute.
    pub fn is_statement(&self) -> bool {
        matches!(self.kind, Kind::Typed('Q' | 'E'))
    }
}

/// The data that does not form a message yet.
#[derive(Debug)]
pub(super) struct Framer {
    framing: Framing,
    in_session: bool,
    pending: BytesMut,
}

impl Framer {
    pub(super) fn new(framing: Framing) -> Self {
        Self {
            framing,
            in_session: false,
            pending: BytesMut::new(),
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// The next complete message and its bytes.
    pub(super) fn next(&mut self, connection: usize) -> Option<(Message, Bytes)> {
        const TLS_HANDSHAKE: u8 = 0x16;
        // No startup message is that long, so its length cannot start with this byte.
        if !self.in_session && self.pending.first() == Some(&TLS_HANDSHAKE) {
            self.framing = Framing::Raw;
        }
        if self.framing == Framing::Raw {
            let bytes = self.pending.split().freeze();
            return (!bytes.is_empty()).then_some((
                Message {
                    connection,
                    kind: Kind::Raw,
                    sql: None,
                },
                bytes,
            ));
        }
        let head = usize::from(self.in_session);
        let length = self
            .pending
            .get(head..head + 4)?
            .try_into()
            .map(u32::from_be_bytes)
            .ok()?;
        let end = head + usize::try_from(length).ok()?.max(4);
        if self.pending.len() < end {
            return None;
        }
        let bytes = self.pending.split_to(end).freeze();
        let kind = if self.in_session {
            Kind::Typed(char::from(bytes[0]))
        } else {
            opening(&bytes)
        };
        self.in_session |= kind == Kind::Startup;
        Some((
            Message {
                connection,
                kind,
                sql: sql(kind, &bytes),
            },
            bytes,
        ))
    }
}

fn opening(bytes: &[u8]) -> Kind {
    const CANCEL: u32 = 80_877_102;
    const TLS: u32 = 80_877_103;
    const GSS: u32 = 80_877_104;
    let code = bytes
        .get(4..8)
        .and_then(|code| code.try_into().ok())
        .map(u32::from_be_bytes);
    match code {
        Some(CANCEL) => Kind::Cancel,
        Some(TLS | GSS) => Kind::Encryption,
        _ => Kind::Startup,
    }
}

fn sql(kind: Kind, bytes: &[u8]) -> Option<String> {
    let mut strings = bytes.get(5..)?.split(|&byte| byte == 0);
    let text = match kind {
        Kind::Typed('Q') => strings.next()?,
        // The first string of a Parse is the statement's name.
        Kind::Typed('P') => strings.nth(1)?,
        _ => return None,
    };
    Some(String::from_utf8_lossy(text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{Framer, Framing, Kind};

    fn message(letter: Option<u8>, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
        letter
            .into_iter()
            .chain(length)
            .chain(body.iter().copied())
            .collect()
    }

    fn kinds(framer: &mut Framer) -> Vec<(Kind, Option<String>)> {
        std::iter::from_fn(|| framer.next(0))
            .map(|(message, _)| (message.kind, message.sql))
            .collect()
    }

    #[test]
    fn a_session_is_cut_into_messages_wherever_reads_end() {
        let stream = [
            message(None, &80_877_103_u32.to_be_bytes()),
            message(None, b"\0\x03\0\0user\0ann\0\0"),
            message(Some(b'p'), b"secret\0"),
            message(Some(b'Q'), b"SELECT 1\0"),
            message(Some(b'P'), b"s1\0SELECT $1\0\0\0"),
            message(Some(b'S'), b""),
        ]
        .concat();
        let expected = vec![
            (Kind::Encryption, None),
            (Kind::Startup, None),
            (Kind::Typed('p'), None),
            (Kind::Typed('Q'), Some("SELECT 1".to_owned())),
            (Kind::Typed('P'), Some("SELECT $1".to_owned())),
            (Kind::Typed('S'), None),
        ];
        for piece in [1, 3, 7, stream.len()] {
            let mut framer = Framer::new(Framing::Postgres);
            let mut seen = Vec::new();
            for bytes in stream.chunks(piece) {
                framer.push(bytes);
                seen.extend(kinds(&mut framer));
            }
            assert_eq!(seen, expected, "in pieces of {piece}");
        }
    }

    #[test]
    fn a_tls_handshake_makes_the_rest_opaque() {
        let mut framer = Framer::new(Framing::Postgres);
        framer.push(&message(None, &80_877_103_u32.to_be_bytes()));
        assert_eq!(kinds(&mut framer), [(Kind::Encryption, None)]);
        framer.push(&[0x16, 3, 1, 0, 5, 1]);
        assert_eq!(kinds(&mut framer), [(Kind::Raw, None)]);
    }
}
