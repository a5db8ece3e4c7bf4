//! Opening a session: the network, TLS, the login, and one round trip that sets limits and asks where we are.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use secrecy::ExposeSecret;
use tokio::task::JoinHandle;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, Client, Config, Socket};

use crate::error::{Error, Kind, Secrets};
use crate::identity::Identity;
use crate::observe::StatementObserver;
use crate::quote;
use crate::session::{Session, Timeouts};
use crate::sqlstate::Doing;
use crate::target::Target;
use crate::tls::Tls;

/// What each session sets for itself.
///
/// The search path holds nothing that others can write to: a function `public.lower` made by a user of the
/// database would otherwise run with our rights. The rest makes what the server prints the same everywhere.
const SETTINGS: &[(&str, &str)] = &[
    ("search_path", "pg_catalog, pg_temp"),
    ("client_min_messages", "warning"),
    ("standard_conforming_strings", "on"),
    ("quote_all_identifiers", "off"),
    ("DateStyle", "ISO, YMD"),
    ("TimeZone", "UTC"),
];

impl Session {
    /// Connects.
    pub async fn connect(
        target: &Target,
        timeouts: &Timeouts,
        observer: Arc<dyn StatementObserver>,
    ) -> Result<Self, Error> {
        let limit = target.connect_timeout.unwrap_or(timeouts.connect);
        let opening = Box::pin(open(target, timeouts, observer));
        tokio::time::timeout(limit, opening).await.unwrap_or_else(|_| {
            let cause = format!("no connection within {} seconds", limit.as_secs_f32());
            Err(Error::new(Kind::TimedOut, Doing::Connecting, target, cause))
        })
    }
}

async fn open(
    target: &Target,
    timeouts: &Timeouts,
    observer: Arc<dyn StatementObserver>,
) -> Result<Session, Error> {
    let tls = Tls::of(target)
        .map_err(|error| Error::new(Kind::Tls, Doing::Connecting, target, error.to_string()))?;
    let (client, driver) = log_in(target, &tls).await?;
    let mut session = Session {
        client,
        target: target.clone(),
        tls,
        timeouts: *timeouts,
        observer,
        identity: Identity::unknown(target),
        version: 0,
        unanswered: AtomicUsize::new(0),
        driver: Some(driver),
    };
    set_up(&mut session).await?;
    Ok(session)
}

/// With `prefer`, a server that offers TLS and then fails at it, or that lets us in without it only, gets a
/// second try without.
async fn log_in(target: &Target, tls: &Tls) -> Result<(Client, JoinHandle<()>), Error> {
    let first = try_log_in(target, tls.mode, tls).await;
    let worth_another = |error: &Error| {
        matches!(error.kind(), Kind::Tls)
            || (error.kind() == Kind::Server && error.sqlstate() == Some("28000"))
    };
    match first {
        Err(error) if tls.mode == SslMode::Prefer && worth_another(&error) => {
            // The first failure says more if both fail.
            try_log_in(target, SslMode::Disable, tls).await.map_err(|_| error)
        }
        result => result,
    }
}

async fn try_log_in(target: &Target, mode: SslMode, tls: &Tls) -> Result<(Client, JoinHandle<()>), Error> {
    let mut config = Config::new();
    config
        .host(&target.host)
        .port(target.port)
        .dbname(&target.database)
        .user(&target.user)
        .application_name(&target.application_name)
        .channel_binding(target.channel_binding)
        .ssl_mode(mode)
        .keepalives_idle(Duration::from_secs(30));
    if let Some(password) = &target.password {
        config.password(password.expose_secret());
    }
    if let Some(options) = &target.options {
        config.options(options);
    }
    let connected = config.connect(tls.connector.clone()).await;
    let (client, connection) = connected.map_err(|error| {
        Error::from_driver(&error, Doing::Connecting, target, &Secrets::new(&target.password))
    })?;
    Ok((client, tokio::spawn(drive(connection, target.to_string()))))
}

type Stream = <tokio_postgres_rustls::MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;

/// Moves bytes until the session is dropped or the connection breaks; whoever waits for an answer then learns of it.
async fn drive(mut connection: tokio_postgres::Connection<Socket, Stream>, server: String) {
    while let Some(message) = poll_fn(|cx| connection.poll_message(cx)).await {
        match message {
            // The code only: a notice can repeat the statement that it is about.
            Ok(AsyncMessage::Notice(notice)) => {
                tracing::debug!(server, code = notice.code().code(), "notice");
            }
            Ok(_) => {}
            Err(_) => break,
        }
    }
}

async fn set_up(session: &mut Session) -> Result<(), Error> {
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
    let row = answer.rows.first();
    let column = |index: usize| row.and_then(|row| row.try_get(index).ok().flatten());
    session.identity = Identity::of_columns(&session.target, column(0), column(1), column(2));
    session.version = column(3).and_then(|text| text.parse().ok()).unwrap_or_default();
    tracing::debug!(
        server = %session.target,
        database = session.target.database(),
        version = session.version,
        elapsed = ?begun.elapsed(),
        "connected"
    );
    Ok(())
}

/// All settings as one text, a statement a line.
fn settings(target: &Target, timeouts: &Timeouts) -> String {
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
    let role = target
        .set_role
        .iter()
        .map(|role| format!("SET ROLE {};\n", quote::identifier(role)));
    limits.into_iter().chain(fixed).chain(role).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_one_text() {
        let target = Target::new("h", 1, "d", "u")
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
        SET ROLE "ow""ner";
        "#);
    }
}
