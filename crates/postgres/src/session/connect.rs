//! Opens a session: the network, TLS, the login, and one round trip that sets limits and queries the identity.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use secrecy::ExposeSecret;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_postgres::config::{SslMode, SslNegotiation};
use tokio_postgres::{AsyncMessage, CancelToken, Client, Config};

use super::channel::{Channel, Done, Failed, Meter, Road, encrypt};
use super::limits::{Budget, Limits};
use super::{ReadSession, Security, Session, Timeouts};
use crate::connection_config::ConnectionConfig;
use crate::dialer::Dialer;
use crate::error::{Error, Kind, Secrets};
use crate::identity::Identity;
use crate::network::{AllowedNetworks, ConnectError};
use crate::observe::StatementObserver;
use crate::quote;
use crate::sqlstate::Doing;
use crate::tls::Tls;

/// The settings of each session.
///
/// The search path contains no schema that others can write to: a function `public.lower` of a database user would
/// otherwise run with our privileges. The other settings make the server's output the same everywhere.
const SETTINGS: &[(&str, &str)] = &[
    ("search_path", "pg_catalog, pg_temp"),
    ("client_min_messages", "warning"),
    ("standard_conforming_strings", "on"),
    ("quote_all_identifiers", "off"),
    ("DateStyle", "ISO, YMD"),
    ("TimeZone", "UTC"),
];

/// Options and limits of a connection.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    /// All timeouts.
    pub timeouts: Timeouts,
    /// The limits of answers.
    pub limits: Limits,
    /// The memory budget of all servers, and of those of one namespace.
    pub budget: Budget,
    /// The allowed addresses.
    pub networks: AllowedNetworks,
    /// How the connection is opened.
    pub dialer: Dialer,
}

impl Session {
    /// Connects with the default options, to any address.
    pub async fn connect(
        target: &ConnectionConfig,
        timeouts: &Timeouts,
        observer: Arc<dyn StatementObserver>,
    ) -> Result<Self, Error> {
        let terms = Terms {
            timeouts: *timeouts,
            ..Terms::default()
        };
        Self::connect_on(target, &terms, observer).await
    }

    /// Connects.
    pub async fn connect_on(
        target: &ConnectionConfig,
        terms: &Terms,
        observer: Arc<dyn StatementObserver>,
    ) -> Result<Self, Error> {
        // The author of an object may set a shorter timeout than ours, but not a longer one.
        let most = terms.timeouts.connect;
        let limit = target.connect_timeout.map_or(most, |wish| wish.min(most));
        let reached = AtomicBool::new(false);
        let opening = Box::pin(open(target, terms, observer, &reached));
        let opened = tokio::time::timeout(limit, opening).await.unwrap_or_else(|_| {
            let cause = format!("no connection within {} seconds", limit.as_secs_f32());
            Err(Error::new(Kind::TimedOut, Doing::Connecting, target, cause))
        });
        opened.map_err(|error| {
            let reached = reached.load(Ordering::Relaxed);
            // An attempt with a shorter timeout proves nothing about the network.
            let early = !reached && limit < most && error.kind() == Kind::TimedOut;
            error.with_reached((!early).then_some(reached))
        })
    }
}

async fn open(
    target: &ConnectionConfig,
    terms: &Terms,
    observer: Arc<dyn StatementObserver>,
    reached: &AtomicBool,
) -> Result<Session, Error> {
    let tls = Tls::of(target)
        .map_err(|error| Error::new(Kind::Tls, Doing::Connecting, target, error.to_string()))?;
    let everything = AllowedNetworks::everything();
    let networks = if target.of_administrator {
        &everything
    } else {
        &terms.networks
    };
    let road = Road::to(target, networks, &terms.dialer)
        .await
        .map_err(|error| not_connected(error, target))?;
    let LoggedIn {
        client,
        driver,
        lost,
        road,
        security,
        meter,
    } = log_in(target, terms, &tls, &road, reached).await?;
    let mut session = ReadSession {
        client,
        target: target.clone(),
        tls,
        road,
        security,
        meter,
        timeouts: terms.timeouts,
        observer,
        identity: Identity::unknown(target),
        version: 0,
        reads_by_default: false,
        unanswered: AtomicUsize::new(0),
        lost,
        driver: Some(driver),
    };
    set_up(&mut session).await?;
    Ok(Session(session))
}

fn not_connected(error: ConnectError, target: &ConnectionConfig) -> Error {
    match error {
        ConnectError::Closed => Error::new(Kind::Forbidden, Doing::Connecting, target, error.to_string()),
        ConnectError::Io(error) => Error::from_io(&error, Doing::Connecting, target),
    }
}

struct LoggedIn {
    client: Client,
    driver: JoinHandle<()>,
    lost: watch::Receiver<Option<bool>>,
    road: Road,
    security: Security,
    meter: Arc<Meter>,
}

/// With `prefer`, a server that offers TLS but fails, or that allows the login only without it, gets a second attempt
/// without TLS.
async fn log_in(
    target: &ConnectionConfig,
    terms: &Terms,
    tls: &Tls,
    road: &Road,
    reached: &AtomicBool,
) -> Result<LoggedIn, Error> {
    let first = try_log_in(target, terms, tls.mode, tls, road, reached).await;
    let worth_another = |error: &Error| {
        matches!(error.kind(), Kind::Tls)
            || (error.kind() == Kind::Server && error.sqlstate() == Some("28000"))
    };
    match first {
        Err(error) if tls.mode == SslMode::Prefer && worth_another(&error) => {
            // If both fail, the first error is more useful.
            try_log_in(target, terms, SslMode::Disable, tls, road, reached)
                .await
                .map_err(|_| error)
        }
        result => result,
    }
}

async fn try_log_in(
    target: &ConnectionConfig,
    terms: &Terms,
    mode: SslMode,
    tls: &Tls,
    road: &Road,
    reached: &AtomicBool,
) -> Result<LoggedIn, Error> {
    let io = |error: io::Error| Error::from_io(&error, Doing::Connecting, target);
    let (socket, road) = road.travel().await.map_err(io)?;
    reached.store(true, Ordering::Relaxed);
    let (stream, encrypted) =
        encrypt(socket, mode, tls, target.host())
            .await
            .map_err(|failed| match failed {
                Failed::NotOffered => Error::tls_refused(Doing::Connecting, target),
                Failed::Io(error) => io(error),
            })?;
    let security = Security {
        encrypted,
        verified: target.is_local_socket() || (encrypted && tls.verifies),
    };
    let meter = Arc::new(Meter::default());
    let channel = Channel::new(
        stream,
        terms.limits,
        security.verified,
        terms.budget.share(target.named_in.as_deref()),
        Arc::clone(&meter),
    );
    let mut config = Config::new();
    config
        .dbname(&target.database)
        .user(&target.user)
        .application_name(&target.application_name)
        .channel_binding(target.channel_binding)
        // For the driver the channel is TLS without a negotiation; see `Done`.
        .ssl_mode(SslMode::Require)
        .ssl_negotiation(SslNegotiation::Direct);
    if let Some(password) = &target.password {
        config.password(password.expose_secret());
    }
    if let Some(options) = &target.options {
        config.options(options);
    }
    let connected = config.connect_raw(channel, Done).await;
    let (client, connection) = connected.map_err(|error| match meter.refusal() {
        Some(refusal) => Error::refused(refusal, Doing::Connecting, target),
        None => Error::from_driver(&error, Doing::Connecting, target, &Secrets::new(&target.password)),
    })?;
    let (ended, lost) = watch::channel(None);
    Ok(LoggedIn {
        client,
        driver: tokio::spawn(drive(connection, target.to_string(), ended)),
        lost,
        road,
        security,
        meter,
    })
}

/// Moves data until the session is dropped or the connection breaks; pending requests then fail.
async fn drive(
    mut connection: tokio_postgres::Connection<Channel, Channel>,
    server: String,
    ended: watch::Sender<Option<bool>>,
) {
    let mut lost = false;
    while let Some(message) = poll_fn(|cx| connection.poll_message(cx)).await {
        match message {
            // Only the code: a notice can repeat its statement.
            Ok(AsyncMessage::Notice(notice)) => {
                tracing::debug!(server, code = notice.code().code(), "notice");
            }
            Ok(_) => {}
            Err(_) => {
                lost = true;
                break;
            }
        }
    }
    ended.send_replace(Some(lost));
}

/// What is needed to cancel a statement: the request uses a separate connection.
pub(super) struct Cancellation {
    pub(super) token: CancelToken,
    pub(super) road: Road,
    pub(super) tls: Tls,
    pub(super) encrypted: bool,
    pub(super) host: String,
}

impl Cancellation {
    pub(super) async fn send(self) -> Result<(), Failed> {
        let mode = if self.encrypted {
            SslMode::Require
        } else {
            SslMode::Disable
        };
        let (socket, _) = self.road.travel().await.map_err(Failed::Io)?;
        let (stream, _) = encrypt(socket, mode, &self.tls, &self.host).await?;
        let channel = Channel::new(
            stream,
            Limits::SHARED,
            false,
            Budget::default().share(None),
            Arc::default(),
        );
        let sent = self.token.cancel_query_raw(channel, Done).await;
        sent.map_err(|error| Failed::Io(io::Error::other(error)))
    }
}

async fn set_up(session: &mut ReadSession) -> Result<(), Error> {
    let begun = Instant::now();
    let settings = settings(&session.target, &session.timeouts);
    let mut answer = session
        .send(&[&format!("{settings}{}", Identity::QUERY)], 1)
        .await;
    if matches!(&answer.lost, Some(lost) if Identity::was_refused(lost)) {
        answer = session
            .send(&[&format!("{settings}{}", Identity::QUERY_WITHOUT_SYSTEM)], 1)
            .await;
    }
    if let Some(lost) = answer.lost {
        return Err(lost.into_error(Doing::Connecting, &session.target, &Secrets::default()));
    }
    // The settings may answer, too.
    let row = answer.rows.last();
    let column = |index: usize| row.and_then(|row| row.try_get(index).ok().flatten());
    session.identity = Identity::of_columns(&session.target, column(0), column(1), column(2));
    session.version = column(3).and_then(|text| text.parse().ok()).unwrap_or_default();
    session.reads_by_default = column(4) != Some("off");
    tracing::debug!(
        server = %session.target,
        database = session.target.database(),
        version = session.version,
        elapsed = ?begun.elapsed(),
        "connected"
    );
    Ok(())
}

/// All settings as one text, one statement per line.
fn settings(target: &ConnectionConfig, timeouts: &Timeouts) -> String {
    let limits = [
        ("statement_timeout", timeouts.statement),
        ("lock_timeout", timeouts.lock),
        (
            "idle_in_transaction_session_timeout",
            timeouts.idle_in_transaction,
        ),
    ];
    let limits = limits.map(|(name, limit)| format!("SET {name} = {};\n", limit.as_millis()));
    let fixed = SETTINGS
        .iter()
        .map(|(name, value)| format!("SET {name} = {value};\n"));
    let role = match &target.set_role {
        Some(role) => format!("SET ROLE {};\n", quote::identifier(role)),
        None if target.options.as_deref().is_some_and(names_a_role) => String::new(),
        None => format!("{OWN_ROLE};\n"),
    };
    let check = format!("{CHECK_CONNECTION};\n");
    limits.into_iter().chain(fixed).chain([check, role]).collect()
}

/// A server that checks whether its client is still there ends the statement of an operator that was killed, so that it
/// does not commit after the next leader has begun. PostgreSQL has this since version 14, not on every platform; on others,
/// setting it is an error.
const CHECK_CONNECTION: &str = "\
SELECT pg_catalog.set_config('client_connection_check_interval', '2000', false) \
WHERE pg_catalog.current_setting('client_connection_check_interval', true) IS NOT NULL \
AND pg_catalog.version() LIKE '%linux%'";

/// The owner of a database may set a role for everybody who connects to it, with ALTER DATABASE. A session is the login
/// itself, or the role that an administrator of the login has set for it, with ALTER ROLE. Since PostgreSQL 16, a member may
/// lack the right to SET ROLE: the server then ignores the setting with a warning, and so does this query.
const OWN_ROLE: &str = "\
SELECT pg_catalog.set_config('role', coalesce(( \
  SELECT r.rolname FROM pg_catalog.pg_db_role_setting s \
  JOIN pg_catalog.pg_roles me ON me.oid = s.setrole AND me.rolname = session_user \
  CROSS JOIN LATERAL pg_catalog.unnest(s.setconfig) setting \
  JOIN pg_catalog.pg_roles r ON setting = 'role=' || r.rolname AND pg_catalog.pg_has_role(me.oid, r.oid, \
    CASE WHEN pg_catalog.current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END) \
  WHERE s.setdatabase IN (0, (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())) \
  ORDER BY s.setdatabase DESC LIMIT 1), 'none'), false)";

/// Whether the options of a connection set its role, as `-c role=NAME` does.
fn names_a_role(options: &str) -> bool {
    let name = |word: &str| word.trim_start_matches("--").trim_start_matches("-c").to_owned();
    options
        .split_whitespace()
        .any(|word| name(word).starts_with("role="))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_in_the_options_stays() {
        for options in ["-c role=owner", "-crole=owner -c a=b", "--role=owner"] {
            assert!(names_a_role(options), "{options}");
        }
        for options in ["", "-c search_path=role", "-c my.role=owner"] {
            assert!(!names_a_role(options), "{options}");
        }
    }

    #[test]
    fn settings_are_one_text() {
        let target = ConnectionConfig::new("h", 1, "d", "u")
            .unwrap()
            .with_set_role(Some("ow\"ner".into()));
        insta::assert_snapshot!(settings(&target, &Timeouts::default()), @r#"
        SET statement_timeout = 60000;
        SET lock_timeout = 10000;
        SET idle_in_transaction_session_timeout = 60000;
        SET search_path = pg_catalog, pg_temp;
        SET client_min_messages = warning;
        SET standard_conforming_strings = on;
        SET quote_all_identifiers = off;
        SET DateStyle = ISO, YMD;
        SET TimeZone = UTC;
        SELECT pg_catalog.set_config('client_connection_check_interval', '2000', false) WHERE pg_catalog.current_setting('client_connection_check_interval', true) IS NOT NULL AND pg_catalog.version() LIKE '%linux%';
        SET ROLE "ow""ner";
        "#);
    }
}
