//! GitLab's logins: addresses, and the Secrets that have the passwords. Contains no password.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub host: String,
    pub port: u16,
}

/// A value in a Secret of the instance's namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretKey {
    /// Name of the Secret.
    pub secret: String,
    pub key: String,
}

/// The database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Psql {
    /// The address for the application.
    pub address: Address,
    /// The server itself, if the address above is a pooler: migrations and backups need their own sessions.
    pub behind_pooler: Option<Address>,
    pub database: String,
    /// Role.
    pub username: String,
    pub password: SecretKey,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisLogin {
    /// How to find the master.
    pub server: RedisServer,
    pub password: SecretKey,
}

/// How to find the master of Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedisServer {
    /// At a fixed address.
    At(Address),
    /// From the Sentinels.
    Asked {
        /// The Sentinels' name for the group of servers.
        master: String,
        sentinels: Vec<Address>,
    },
}

/// The mail server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    pub address: Address,
    /// The user, if the server needs a login.
    pub username: Option<String>,
    pub password: Option<SecretKey>,
    /// The method: `login`, `plain`, `cram_md5`; `None` without a login.
    pub authentication: Option<String>,
    /// Whether to encrypt with STARTTLS.
    pub starttls: bool,
    /// The sender.
    pub from: Option<String>,
    /// The address for replies.
    pub reply_to: Option<String>,
}
