//! The error type of this crate: what was done, where, what the server returned; never a secret.
//!
//! The driver's own errors are converted here and not kept. They would show the statement's text, which may contain a
//! verifier, and servers repeat parts of a statement in their messages ("syntax error at or near …"), so a message
//! about a statement with secrets is searched for them before it is kept.

mod driver;
mod plain;
mod redact;

use std::fmt;

pub use plain::{plain, plain_to};
pub(crate) use redact::Secrets;

use crate::connection_config::ConnectionConfig;
use crate::sqlstate::{Class, Doing, classify};

/// The state of a circuit breaker, in words that stay the same for as long as it is open.
pub const LEFT_ALONE: &str =
    "its circuit breaker is open: the operator tries one connection at a time, a few seconds apart";

/// The function of PostgreSQL that checks whether a database accepts a connection.
const DATABASE_CHECK: &str = "CheckMyDatabase";

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// No server listens at the address.
    Refused,
    /// The name is unknown, the network is down, or the connection broke.
    Unreachable,
    /// No answer in time.
    TimedOut,
    /// TLS is required and the server does not offer it.
    TlsRefused,
    /// The server's certificate is not signed by the CA, or has expired.
    CertificateUntrusted,
    /// The server's certificate is for another name.
    CertificateName,
    /// TLS failed otherwise, or could not be set up.
    Tls,
    /// The server answered with an error; see [`Error::sqlstate`].
    Server,
    /// Another session or task holds the lock.
    Contended,
    /// All connections to this server are in use.
    Exhausted,
    /// The connection broke during COMMIT: the work may be done or not. Check before doing it again.
    CommitUnknown,
    /// The request could not be sent, or the answer could not be parsed.
    Protocol,
    /// This process may not write any more: another replica is the leader.
    NotLeading,
    /// The server sent more than the limit.
    TooMuch,
    /// The server asks for a cleartext password and is not verified.
    Unverified,
    /// The operator does not connect to this address.
    Forbidden,
}

/// The server's error message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerMessage {
    /// The SQLSTATE.
    pub code: String,
    /// The message.
    pub message: String,
    /// DETAIL, if any: for a failed DROP, the objects that depend on it.
    pub detail: Option<String>,
    /// HINT, if any.
    pub hint: Option<String>,
    /// The function of the server that reported it, if known. Unlike the message, the server does not translate it.
    pub routine: Option<String>,
}

/// The statement that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedStatement {
    /// Its index in the batch, from 0.
    pub index: usize,
    /// The number of statements in the batch.
    pub of: usize,
    /// Its text without secrets.
    pub text: String,
}

/// An error of PostgreSQL or of the connection to it.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    kind: Kind,
    doing: Doing,
    server: String,
    database: String,
    /// Our own message, or that of the network or TLS library.
    cause: String,
    message: Option<ServerMessage>,
    statement: Option<FailedStatement>,
    /// Whether a server was reached, whatever it then answered; `None` if unknown.
    reached: Option<bool>,
    /// This failure has opened the server's circuit breaker.
    left_alone: bool,
    /// It is the failure of an earlier attempt.
    not_tried: bool,
}

impl Error {
    pub(crate) fn new(kind: Kind, doing: Doing, target: &ConnectionConfig, cause: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            doing,
            server: target.to_string(),
            database: target.database().to_owned(),
            cause: cause.into(),
            message: None,
            statement: None,
            reached: None,
            left_alone: false,
            not_tried: false,
        }))
    }

    pub(crate) fn with_reached(mut self, reached: Option<bool>) -> Self {
        self.0.reached = reached;
        self
    }

    /// Whether a server answered at the address before the failure, if known.
    pub(crate) fn reached(&self) -> Option<bool> {
        self.0.reached
    }

    /// Marks that it opened the server's circuit breaker. The text is the same for this failure and for those that
    /// follow without an attempt, so a condition with this text does not change.
    pub(crate) fn left_alone(mut self) -> Self {
        self.0.left_alone = true;
        self
    }

    pub(crate) fn not_tried(mut self) -> Self {
        self.0.not_tried = true;
        self
    }

    /// Whether the server's circuit breaker is open because of this failure.
    pub fn is_left_alone(&self) -> bool {
        self.0.left_alone
    }

    /// Whether nothing was tried, because it failed a moment ago: the server's circuit breaker is open.
    pub fn was_not_tried(&self) -> bool {
        self.0.not_tried
    }

    pub(crate) fn with_kind(mut self, kind: Kind) -> Self {
        self.0.kind = kind;
        self
    }

    pub(crate) fn with_statement(mut self, mut statement: FailedStatement) -> Self {
        // Our own text, which contains names from outside.
        statement.text = plain(&statement.text.replace('\n', " "));
        self.0.statement = Some(statement);
        self
    }

    /// The kind of the error.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The action that failed.
    pub fn doing(&self) -> Doing {
        self.0.doing
    }

    /// `host:port`.
    pub fn server(&self) -> &str {
        &self.0.server
    }

    /// The database.
    pub fn database(&self) -> &str {
        &self.0.database
    }

    /// The SQLSTATE, if the server returned one.
    pub fn sqlstate(&self) -> Option<&str> {
        self.0.message.as_ref().map(|message| message.code.as_str())
    }

    /// The server's message, if there is one.
    pub fn message(&self) -> Option<&ServerMessage> {
        self.0.message.as_ref()
    }

    /// The failed statement, if known.
    pub fn statement(&self) -> Option<&FailedStatement> {
        self.0.statement.as_ref()
    }

    /// Whether it is about the connection to the server, and not about a statement.
    pub fn is_connectivity(&self) -> bool {
        match self.0.kind {
            Kind::Server => self.0.doing == Doing::Connecting || self.code_starts(&["08", "57P0"]),
            Kind::Contended
            | Kind::NotLeading
            | Kind::Exhausted
            | Kind::Protocol
            | Kind::TooMuch
            | Kind::Unverified
            | Kind::Forbidden => false,
            Kind::Refused
            | Kind::Unreachable
            | Kind::TimedOut
            | Kind::TlsRefused
            | Kind::CertificateUntrusted
            | Kind::CertificateName
            | Kind::Tls
            | Kind::CommitUnknown => true,
        }
    }

    /// Whether the server answers, and refuses connections to this database, or too many of them. A server without room for
    /// any connection, and a role with a limit, return the same code, but another function of the server does. Other errors,
    /// such as a full disk, are not about one database.
    pub(crate) fn is_about_the_database(&self) -> bool {
        let routine = self
            .0
            .message
            .as_ref()
            .and_then(|message| message.routine.as_deref());
        let is_limit = || self.sqlstate() == Some("53300") && routine == Some(DATABASE_CHECK);
        self.0.kind == Kind::Server
            && self.0.doing == Doing::Connecting
            && (self.code_starts(&["55"]) || is_limit())
    }

    /// Whether the database refuses all connections: somebody has closed it.
    pub fn is_closed_database(&self) -> bool {
        self.is_about_the_database() && self.sqlstate() == Some("55000")
    }

    /// What has to change, and when to retry.
    pub fn class(&self) -> Class {
        match self.0.kind {
            Kind::Server => classify(self.sqlstate().unwrap_or_default(), self.0.doing),
            Kind::TlsRefused
            | Kind::CertificateUntrusted
            | Kind::CertificateName
            | Kind::Protocol
            | Kind::TooMuch
            | Kind::Unverified
            | Kind::Forbidden => Class::Human,
            Kind::Refused
            | Kind::Unreachable
            | Kind::TimedOut
            | Kind::Tls
            | Kind::Contended
            | Kind::Exhausted
            | Kind::NotLeading
            | Kind::CommitUnknown => Class::Transient,
        }
    }

    fn code_starts(&self, prefixes: &[&str]) -> bool {
        self.sqlstate()
            .is_some_and(|code| prefixes.iter().any(|prefix| code.starts_with(prefix)))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner {
            doing,
            server,
            database,
            cause,
            message,
            statement,
            left_alone,
            ..
        } = &*self.0;
        write!(
            f,
            "PostgreSQL at {server}, database {database:?}, while {}",
            doing.phrase()
        )?;
        if let Some(FailedStatement { index, of, .. }) = statement {
            write!(f, " (statement {} of {of})", index + 1)?;
        }
        write!(f, ": {cause}")?;
        if let Some(ServerMessage {
            code,
            message,
            detail,
            hint,
            ..
        }) = message
        {
            write!(f, "{message} (SQLSTATE {code})")?;
            for (name, text) in [("detail", detail), ("hint", hint)] {
                if let Some(text) = text {
                    write!(f, "; {name}: {text}")?;
                }
            }
        }
        if let Some(FailedStatement { text, .. }) = statement {
            write!(f, "; statement: {text}")?;
        }
        if *left_alone {
            write!(f, "; {LEFT_ALONE}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Error {}
