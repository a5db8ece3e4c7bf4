//! PostgreSQL's messages, as far as one has to know where an exchange ends and what it is about.

/// The words that begin a statement which changes something.
const WRITES: [&str; 12] = [
    "CREATE", "ALTER", "DROP", "GRANT", "REVOKE", "COMMENT", "DO", "REASSIGN", "INSERT", "UPDATE", "DELETE",
    "SECURITY",
];
/// The other words that may be shown. Everything else could be anything.
const READS: [&str; 10] = [
    "SELECT", "BEGIN", "START", "COMMIT", "ROLLBACK", "SET", "RESET", "LOCK", "WITH", "DECLARE",
];
/// The code of a request for TLS, where others have a version. Its answer is one byte.
const TLS: [u8; 4] = [0x04, 0xd2, 0x16, 0x2f];
/// The code of a request to cancel a statement, where others have a version.
const CANCEL: [u8; 4] = [0x04, 0xd2, 0x16, 0x2e];

/// What a client asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    /// What it is about, without values.
    pub(super) shape: String,
    /// Whether it changes something.
    pub(super) writes: bool,
    /// How often the server says that it is ready before the answer is complete.
    pub(super) answers: usize,
}

/// What a client has sent so far, if the server has to answer it.
pub(super) fn request(sent: &[u8], logged_in: bool) -> Option<Request> {
    if !logged_in && sent.get(4..) == Some(&TLS) {
        return Some(Request {
            shape: "tls".to_owned(),
            ..Request::default()
        });
    }
    if !logged_in && sent.first() != Some(&b'p') {
        let length = number(sent.get(..4)?)?;
        let parameters = sent.get(8..length)?;
        let shape = format!(
            "login to {}",
            parameter(parameters, "database").unwrap_or_default()
        );
        return Some(Request {
            shape,
            writes: false,
            answers: 1,
        });
    }
    let (mut request, mut words, mut rest, mut asks) = (Request::default(), Vec::new(), sent, false);
    while let Some((kind, body, after)) = frame(rest) {
        match kind {
            b'Q' | b'P' => {
                // A prepared statement has its name first.
                let text = if kind == b'Q' { body } else { after_zero(body) };
                let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
                statements(&String::from_utf8_lossy(text), &mut words);
            }
            b'p' => words.push("password"),
            _ => {}
        }
        asks = matches!(kind, b'Q' | b'S' | b'p');
        request.answers += usize::from(asks);
        rest = after;
    }
    if !asks || !rest.is_empty() {
        return None;
    }
    request.writes = words.iter().any(|word| WRITES.contains(word));
    words.dedup();
    request.shape = words.join(" ");
    Some(request)
}

/// Whether this is a request to cancel a statement.
pub(super) fn cancels(sent: &[u8]) -> bool {
    sent.get(4..8) == Some(&CANCEL) && sent.len() == 16
}

/// What the server has answered so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    /// How often it said that it is ready.
    pub(super) ready: usize,
    /// It waits for a password, or for the next part of one.
    pub(super) asks: bool,
    /// The process that serves the session, if it said so.
    pub(super) process: Option<i32>,
}

/// Reads an answer.
pub(super) fn answer(received: &[u8]) -> Answer {
    let (mut answer, mut rest) = (Answer::default(), received);
    while let Some((kind, body, after)) = frame(rest) {
        answer.asks = false;
        match kind {
            b'Z' => answer.ready += 1,
            b'R' => answer.asks = matches!(body.get(..4).and_then(number), Some(3 | 5 | 10 | 11)),
            b'K' => {
                let process = body.get(..4).and_then(|bytes| bytes.try_into().ok());
                answer.process = process.map(i32::from_be_bytes);
            }
            _ => {}
        }
        rest = after;
    }
    answer
}

/// The type and the content of the first message, and what follows it.
fn frame(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let length = number(bytes.get(1..5)?)?;
    Some((
        *bytes.first()?,
        bytes.get(5..1 + length)?,
        bytes.get(1 + length..)?,
    ))
}

fn number(bytes: &[u8]) -> Option<usize> {
    usize::try_from(u32::from_be_bytes(bytes.try_into().ok()?)).ok()
}

fn after_zero(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|byte| *byte == 0);
    end.and_then(|end| bytes.get(end + 1..)).unwrap_or_default()
}

/// A parameter of the first message: names and values, each with a zero at its end.
fn parameter(bytes: &[u8], name: &str) -> Option<String> {
    let mut parts = bytes.split(|byte| *byte == 0);
    while let (Some(key), Some(value)) = (parts.next(), parts.next()) {
        if key == name.as_bytes() {
            return Some(String::from_utf8_lossy(value).into_owned());
        }
    }
    None
}

/// Adds the first words of statements.
fn statements(text: &str, words: &mut Vec<&'static str>) {
    for statement in text.split(';') {
        let first = statement.split_whitespace().next().unwrap_or_default();
        let known = WRITES.into_iter().chain(READS).find(|word| *word == first);
        words.extend(known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap();
        [&[kind][..], &length.to_be_bytes(), body].concat()
    }

    #[test]
    fn a_request_is_complete_when_the_server_has_to_answer() {
        let query = message(b'Q', b"BEGIN;\nCREATE ROLE a;\nCOMMIT\0");
        let seen = request(&query, true).unwrap();
        assert_eq!(
            (seen.shape.as_str(), seen.writes, seen.answers),
            ("BEGIN CREATE COMMIT", true, 1)
        );
        assert_eq!(request(&query[..query.len() - 1], true), None);
        let prepared = message(b'P', b"name\0SELECT 1\0\0\0");
        assert_eq!(request(&prepared, true), None, "nobody waits for it yet");
        let synced = [prepared, message(b'S', b"")].concat();
        let seen = request(&synced, true).unwrap();
        assert_eq!(
            (seen.shape.as_str(), seen.writes, seen.answers),
            ("SELECT", false, 1)
        );
    }

    #[test]
    fn values_are_never_shown() {
        let query = message(b'Q', b"ALTER ROLE a PASSWORD 'x; HUNTER2 y'\0");
        assert_eq!(request(&query, true).unwrap().shape, "ALTER");
    }

    #[test]
    fn a_login_names_its_database() {
        let parameters = b"\0\x03\0\0user\0me\0database\0app\0\0";
        let length = u32::try_from(parameters.len() + 4).unwrap();
        let first = [&length.to_be_bytes()[..], parameters].concat();
        assert_eq!(request(&first, false).unwrap().shape, "login to app");
        assert_eq!(request(&first[..9], false), None);
    }

    #[test]
    fn one_byte_answers_a_request_for_tls() {
        let seen = request(&[0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f], false).unwrap();
        assert_eq!((seen.shape.as_str(), seen.answers), ("tls", 0));
    }

    #[test]
    fn an_answer_ends_when_it_is_the_clients_turn() {
        let asked = message(b'R', &[0, 0, 0, 10, b'x', 0]);
        assert!(answer(&asked).asks);
        let process = message(b'K', &[0, 0, 1, 2, 9, 9, 9, 9]);
        let all = [message(b'R', &[0, 0, 0, 0]), process, message(b'Z', b"I")].concat();
        let seen = answer(&all);
        assert_eq!((seen.ready, seen.asks, seen.process), (1, false, Some(258)));
        assert_eq!(answer(&all[..all.len() - 1]).ready, 0);
    }
}
