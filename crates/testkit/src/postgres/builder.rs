//! What a server is to be, before it starts.

use std::{fs, sync::Mutex};

use super::{
    ADMIN,
    server::Postgres,
    template::{self, Prepared},
    version::Version,
};
use crate::{
    account::Account,
    certificates::Authority,
    error::{Attempt, Error},
    port,
    scratch::Scratch,
};

/// How a server offers TLS.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The names in the server's certificate.
    pub names: Vec<String>,
    /// Whether connections without TLS are refused (except the administrator's).
    pub required: bool,
}

impl Default for Tls {
    fn default() -> Self {
        Self {
            names: vec!["localhost".to_owned(), "127.0.0.1".to_owned()],
            required: true,
        }
    }
}

/// A server that is about to start.
#[derive(Debug)]
pub struct Builder {
    version: Version,
    settings: Vec<(String, String)>,
    tls: Option<Tls>,
}

impl Builder {
    pub(super) fn new(version: Version) -> Self {
        Self {
            version,
            settings: Vec::new(),
            tls: None,
        }
    }

    /// Sets a parameter of `postgresql.conf`.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Offers TLS with a certificate of [`Postgres::authority`].
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Starts the server and waits until it answers.
    pub async fn start(self) -> Postgres {
        self.try_start().await.unwrap_or_else(|error| panic!("{error}"))
    }

    async fn try_start(self) -> Result<Postgres, Error> {
        let account = Account::unprivileged()?;
        let scratch = Scratch::new("stanchion-postgres-")?;
        if let Some(account) = account {
            account.own(scratch.path())?;
        }
        let (version, home) = (self.version, scratch.path().to_owned());
        let prepared = tokio::task::spawn_blocking(move || template::prepare(version, &home, account))
            .await
            .expect("preparing a data directory")?;
        let mut settings = self.settings;
        let authority = match &self.tls {
            None => None,
            Some(tls) => Some(offer_tls(tls, &prepared, account, &mut settings)?),
        };
        let mut server = Postgres {
            process: Mutex::new(None),
            version,
            port: port::free(),
            settings,
            prepared,
            account,
            authority,
            log: scratch.path().join("server.log"),
            scratch,
        };
        let mut attempts = 0;
        loop {
            attempts += 1;
            match server.launch().await {
                Ok(()) => return Ok(server),
                // Somebody has taken the port since it was chosen.
                Err(Error::Start { log, .. }) if attempts < 5 && log.contains("Address already in use") => {
                    server.port = port::free();
                }
                Err(error) => return Err(error),
            }
        }
    }
}

fn offer_tls(
    tls: &Tls,
    prepared: &Prepared,
    account: Option<Account>,
    settings: &mut Vec<(String, String)>,
) -> Result<Authority, Error> {
    let authority = Authority::new();
    let (certificate, key) = authority.issue_into(&prepared.data, &tls.names)?;
    if let Some(account) = account {
        account.own(&certificate)?;
        account.own(&key)?;
    }
    settings.push(("ssl".to_owned(), "on".to_owned()));
    settings.push(("ssl_cert_file".to_owned(), certificate.display().to_string()));
    settings.push(("ssl_key_file".to_owned(), key.display().to_string()));
    // The administrator stays free to come without TLS, so that helpers need not know of it.
    let others = if tls.required { "hostssl" } else { "host" };
    let rules =
        format!("host all {ADMIN} 127.0.0.1/32 scram-sha-256\n{others} all all 127.0.0.1/32 scram-sha-256\n");
    let path = prepared.data.join("pg_hba.conf");
    fs::write(&path, rules).attempting(|| format!("write {}", path.display()))?;
    Ok(authority)
}
