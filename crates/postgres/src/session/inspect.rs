//! Inspects everything that a server sends, before the driver processes it.
//!
//! It reads only the headers of messages: a tag, and a length. It reads a request for a password completely, because
//! our answer depends on it.

use super::limits::Limits;

/// Before the login is complete, messages are short.
const LOGIN_MESSAGE: usize = 64 * 1024;
const LOGIN_TOTAL: usize = 256 * 1024;
/// A message other than a row: an error, a notice, the names of columns.
const OTHER_MESSAGE: usize = 1024 * 1024;
/// Maximum size of the server's parameters; the driver keeps all of them for the life of the session.
const PARAMETERS: usize = 64 * 1024;
/// The longest authentication request that we accept.
const AUTHENTICATION: usize = 4096;
/// Memory that a row needs in addition to its bytes.
const ROW: usize = 192;
const VALUE: usize = 24;
/// The same for any other message.
const MESSAGE: usize = 64;
/// PostgreSQL's default is 4,096. Each iteration costs us time, before the server has proven anything.
const MAX_ITERATIONS: u32 = 1_000_000;
/// The driver queries types that it does not know, and a type can consist of others. It may send this many queries of
/// its own.
const UNASKED: usize = 64;

/// Why reading from a server was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("the server sent a message of {0} bytes, where at most {1} are accepted")]
    Message(usize, usize),
    #[error("the server's answer needs more than {0} MiB of memory")]
    Answer(usize),
    #[error("the server's answer has more than {0} rows")]
    Rows(usize),
    #[error("the server sends more than can be asked of it")]
    Flood,
    #[error("the memory for answers is in use, that of the namespace or that of all; try again")]
    Budget,
    #[error("the server does not speak PostgreSQL's protocol")]
    Protocol,
    #[error(
        "the server asks for the password in clear or as md5, and it is not known to be the right server, so it gets \
         none; verify it (sslmode=verify-full with its CA), or store the role's password as scram-sha-256"
    )]
    Password,
    #[error("the server asks for {0} rounds of SCRAM, where at most {MAX_ITERATIONS} are accepted")]
    Iterations(u32),
}

/// Follows the messages of one connection.
#[derive(Debug)]
pub(crate) struct Inspector {
    limits: Limits,
    /// Whether the server is verified.
    verified: bool,
    logged_in: bool,
    header: [u8; 5],
    /// Number of received header bytes.
    begun: usize,
    /// Number of missing body bytes.
    missing: usize,
    /// The beginning of the body, as far as it is inspected.
    body: Vec<u8>,
    /// Number of body bytes to inspect.
    wanted: usize,
    /// The estimated memory of the current answer.
    weight: usize,
    rows: usize,
    parameters: usize,
    /// The number of complete answers, and of requests.
    answers: usize,
}

impl Inspector {
    pub(crate) fn new(limits: Limits, verified: bool) -> Self {
        Self {
            limits,
            verified,
            logged_in: false,
            header: [0; 5],
            begun: 0,
            missing: 0,
            body: Vec::new(),
            wanted: 0,
            weight: 0,
            rows: 0,
            parameters: 0,
            answers: 0,
        }
    }

    /// The estimated memory of the current answer.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }

    /// A new request: earlier answers do not count any more.
    pub(crate) fn begin(&mut self) {
        self.weight = 0;
        self.rows = 0;
        self.answers = 0;
    }

    /// Inspects the next bytes. After an error none of them may be used.
    pub(crate) fn look(&mut self, mut bytes: &[u8], asked: usize) -> Result<(), Refusal> {
        while let Some((first, rest)) = bytes.split_first() {
            if self.missing == 0 {
                if let Some(place) = self.header.get_mut(self.begun) {
                    *place = *first;
                }
                self.begun += 1;
                bytes = rest;
                if self.begun == self.header.len() {
                    self.headed()?;
                }
            } else {
                let (part, rest) = bytes.split_at(self.missing.min(bytes.len()));
                let kept = part.get(..self.wanted.min(part.len())).unwrap_or(part);
                self.body.extend_from_slice(kept);
                self.wanted -= kept.len();
                self.missing -= part.len();
                bytes = rest;
            }
            if self.begun == self.header.len() && self.missing == 0 {
                self.complete(asked)?;
            }
        }
        Ok(())
    }

    fn headed(&mut self) -> Result<(), Refusal> {
        let [tag, a, b, c, d] = self.header;
        // The length includes itself.
        let length = usize::try_from(i32::from_be_bytes([a, b, c, d])).map_err(|_| Refusal::Protocol)?;
        let body = length.checked_sub(4).ok_or(Refusal::Protocol)?;
        let most = match tag {
            _ if !self.logged_in => LOGIN_MESSAGE,
            b'D' | b'd' => self.limits.message,
            _ => OTHER_MESSAGE.min(self.limits.message),
        };
        if body > most {
            return Err(Refusal::Message(body, most));
        }
        self.missing = body;
        self.body.clear();
        self.wanted = match tag {
            b'R' if body > AUTHENTICATION => return Err(Refusal::Message(body, AUTHENTICATION)),
            b'R' => body,
            b'D' => 2,
            _ => 0,
        };
        self.weight = self.weight.saturating_add(body + MESSAGE);
        match tag {
            b'D' => {
                self.rows += 1;
                self.weight = self.weight.saturating_add(ROW);
            }
            // A column becomes a structure with a name and a type.
            b'T' => self.weight = self.weight.saturating_add(body * 7),
            b'S' => self.parameters = self.parameters.saturating_add(body + MESSAGE),
            _ => {}
        }
        if self.parameters > PARAMETERS || (!self.logged_in && self.weight > LOGIN_TOTAL) {
            return Err(Refusal::Flood);
        }
        self.check_answer()
    }

    fn check_answer(&self) -> Result<(), Refusal> {
        if self.rows > self.limits.rows {
            return Err(Refusal::Rows(self.limits.rows));
        }
        if self.weight > self.limits.answer {
            return Err(Refusal::Answer(self.limits.answer / (1024 * 1024)));
        }
        Ok(())
    }

    /// A message is complete: after this, the driver processes it.
    fn complete(&mut self, asked: usize) -> Result<(), Refusal> {
        self.begun = 0;
        let [tag, ..] = self.header;
        match (tag, self.body.as_slice()) {
            (b'D', [high, low]) => {
                let values = usize::from(u16::from_be_bytes([*high, *low]));
                self.weight = self.weight.saturating_add(values * VALUE);
                self.check_answer()
            }
            (b'R', body) => self.authentication(body),
            (b'Z', _) if !self.logged_in => {
                self.logged_in = true;
                self.begin();
                Ok(())
            }
            (b'Z', _) => {
                self.answers += 1;
                if self.answers > asked + UNASKED {
                    return Err(Refusal::Flood);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn authentication(&self, body: &[u8]) -> Result<(), Refusal> {
        let (code, rest) = body.split_first_chunk().ok_or(Refusal::Protocol)?;
        match u32::from_be_bytes(*code) {
            // Cleartext and md5.
            3 | 5 if !self.verified => Err(Refusal::Password),
            // SCRAM's second message contains the iteration count: `r=…,s=…,i=4096`.
            11 => {
                let rounds = rest
                    .split(|byte| *byte == b',')
                    .find_map(|part| part.strip_prefix(b"i="));
                let rounds = rounds.and_then(|digits| std::str::from_utf8(digits).ok());
                match rounds.and_then(|digits| digits.parse().ok()) {
                    Some(rounds) if rounds > MAX_ITERATIONS => Err(Refusal::Iterations(rounds)),
                    // The driver rejects an invalid number.
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(tag: u8, body: &[u8]) -> Vec<u8> {
        let length = i32::try_from(body.len() + 4).unwrap();
        [&[tag], length.to_be_bytes().as_slice(), body].concat()
    }

    fn logged_in(limits: Limits) -> Inspector {
        let mut inspector = Inspector::new(limits, false);
        inspector.look(&message(b'R', &[0, 0, 0, 0]), 1).unwrap();
        inspector.look(&message(b'Z', b"I"), 1).unwrap();
        inspector
    }

    #[test]
    fn a_huge_row_is_refused_by_its_header() {
        let mut inspector = logged_in(Limits::SHARED);
        let header = [b'D', 0x7f, 0xff, 0xff, 0xff];
        assert_eq!(
            inspector.look(&header, 1),
            Err(Refusal::Message(0x7fff_fffb, Limits::SHARED.message))
        );
        let mut inspector = logged_in(Limits::SHARED);
        assert_eq!(inspector.look(&[b'D', 0xff, 0, 0, 0], 1), Err(Refusal::Protocol));
        let mut inspector = logged_in(Limits::SHARED);
        assert_eq!(inspector.look(&[b'D', 0, 0, 0, 3], 1), Err(Refusal::Protocol));
    }

    #[test]
    fn rows_without_end_are_refused_in_whatever_pieces_they_come() {
        for piece in [1, 3, 4096] {
            let mut inspector = logged_in(Limits {
                rows: 100,
                ..Limits::SHARED
            });
            let rows = message(b'D', &[0, 0]).repeat(101);
            let seen = rows.chunks(piece).try_for_each(|piece| inspector.look(piece, 1));
            assert_eq!(seen, Err(Refusal::Rows(100)), "{piece}");
        }
        // Empty rows need memory, too.
        let mut inspector = logged_in(Limits {
            rows: usize::MAX,
            answer: 1024 * 1024,
            ..Limits::SHARED
        });
        let seen = (0..10_000).try_for_each(|_| inspector.look(&message(b'D', &[0, 0]), 1));
        assert_eq!(seen, Err(Refusal::Answer(1)));
    }

    #[test]
    fn what_was_answered_is_forgotten_with_the_next_request() {
        let mut inspector = logged_in(Limits {
            rows: 10,
            ..Limits::SHARED
        });
        for _ in 0..100 {
            inspector.begin();
            inspector.look(&message(b'D', &[0, 0]).repeat(10), 1).unwrap();
            inspector.look(&message(b'Z', b"I"), 1).unwrap();
        }
    }

    #[test]
    fn floods_are_refused() {
        let mut inspector = Inspector::new(Limits::SHARED, true);
        let notice = message(b'N', &[0; 1000]);
        assert_eq!(
            (0..1000).try_for_each(|_| inspector.look(&notice, 1)),
            Err(Refusal::Flood)
        );
        let mut inspector = logged_in(Limits::SHARED);
        let status = message(b'S', b"name\0value\0");
        assert_eq!(
            (0..10_000).try_for_each(|_| inspector.look(&status, 1)),
            Err(Refusal::Flood)
        );
        let mut inspector = logged_in(Limits::SHARED);
        assert!((0..100_000).try_for_each(|_| inspector.look(&notice, 1)).is_err());
        let mut inspector = logged_in(Limits::SHARED);
        let ready = message(b'Z', b"I");
        assert_eq!(
            (0..100).try_for_each(|_| inspector.look(&ready, 1)),
            Err(Refusal::Flood)
        );
    }

    #[test]
    fn an_unverified_server_gets_no_password() {
        for code in [3, 5] {
            let request = message(b'R', &[0, 0, 0, code, 1, 2, 3, 4]);
            for piece in [1, 64] {
                let look = |verified| {
                    let mut inspector = Inspector::new(Limits::SHARED, verified);
                    request
                        .chunks(piece)
                        .try_for_each(|piece| inspector.look(piece, 1))
                };
                assert_eq!((look(false), look(true)), (Err(Refusal::Password), Ok(())));
            }
        }
    }

    #[test]
    fn rounds_are_limited() {
        let request = |rounds: &str| {
            let text = format!("r=nonce,s=c2FsdA==,i={rounds}");
            message(b'R', &[[0, 0, 0, 11].as_slice(), text.as_bytes()].concat())
        };
        let look = |rounds| Inspector::new(Limits::SHARED, false).look(&request(rounds), 1);
        assert_eq!(look("4096"), Ok(()));
        assert_eq!(look("4294967295"), Err(Refusal::Iterations(u32::MAX)));
        assert_eq!(
            look("99999999999"),
            Ok(()),
            "the driver refuses what is no number of its own"
        );
    }
}
