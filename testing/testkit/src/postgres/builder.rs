//! Options of a server, before it starts.

use std::{fs, path::Path, sync::Mutex};

use stanchion_local::postgres::{Server, Version};

use super::{ADMIN, log, server::Postgres, template};
use crate::{
    account::Account,
    certificates::Authority,
    error::{Attempt, Error},
    scratch::Scratch,
};

/// Settings of every server. No data outlives a test, so nothing is synced to disk, and background work such as
/// vacuuming hundreds of databases or compiling queries is turned off to leave the CPU to the tests.
const SETTINGS: [(&str, &str); 11] = [
    ("fsync", "off"),
    ("synchronous_commit", "off"),
    ("full_page_writes", "off"),
    ("wal_init_zero", "off"),
    ("autovacuum", "off"),
    ("jit", "off"),
    ("shared_buffers", "32MB"),
    ("max_connections", "200"),
    ("log_statement", "all"),
    ("log_connections", "on"),
    ("log_line_prefix", log::PREFIX),
];

/// TLS options of a server.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The names in the server's certificate.
    pub names: Vec<String>,
    /// Whether connections without TLS are refused, except the administrator's.
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
        let own = SETTINGS
            .iter()
            .map(|&(name, value)| (name.to_owned(), value.to_owned()));
        let mut settings: Vec<_> = own.chain(self.settings).collect();
        let authority = match &self.tls {
            None => None,
            Some(tls) => Some(offer_tls(tls, &prepared.data, account, &mut settings)?),
        };
        let mut server = Server {
            programs: prepared.programs,
            data: prepared.data,
            account,
            port: 0,
            settings,
            log: scratch.path().join("server.log"),
        };
        let process = server.start().await?;
        Ok(Postgres {
            process: Mutex::new(Some(process)),
            sessions: None,
            version,
            server,
            authority,
            _scratch: scratch,
        })
    }
}

fn offer_tls(
    tls: &Tls,
    data: &Path,
    account: Option<Account>,
    settings: &mut Vec<(String, String)>,
) -> Result<Authority, Error> {
    let authority = Authority::new();
    let (certificate, key) = authority.issue_into(data, &tls.names)?;
    if let Some(account) = account {
        account.own(&certificate)?;
        account.own(&key)?;
    }
    settings.push(("ssl".to_owned(), "on".to_owned()));
    settings.push(("ssl_cert_file".to_owned(), certificate.display().to_string()));
    settings.push(("ssl_key_file".to_owned(), key.display().to_string()));
    // The administrator may always connect without TLS, so that helpers need not know about it.
    let others = if tls.required { "hostssl" } else { "host" };
    let rules =
        format!("host all {ADMIN} 127.0.0.1/32 scram-sha-256\n{others} all all 127.0.0.1/32 scram-sha-256\n");
    let path = data.join("pg_hba.conf");
    fs::write(&path, rules).attempting(|| format!("write {}", path.display()))?;
    Ok(authority)
}
