//! How GitLab reaches what it stands on: addresses, and the Secrets in which the passwords are. No password is in here.

/// An address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Host.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// A value in a Secret of the instance's namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretKey {
    /// Name of the Secret.
    pub secret: String,
    /// Key in it.
    pub key: String,
}

/// The database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Psql {
    /// Where the application connects to.
    pub address: Address,
    /// The server itself, where the address above is a pooler's: migrations and backups need sessions of their own.
    pub behind_pooler: Option<Address>,
    /// Database.
    pub database: String,
    /// Role.
    pub username: String,
    /// Its password.
    pub password: SecretKey,
}

/// Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisLogin {
    /// How the leading server is found.
    pub server: RedisServer,
    /// The password.
    pub password: SecretKey,
}

/// How the leading Redis is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedisServer {
    /// It is always the same.
    At(Address),
    /// Sentinels know.
    Asked {
        /// What the sentinels call the group of servers.
        master: String,
        /// The sentinels.
        sentinels: Vec<Address>,
    },
}

/// The mail server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    /// Where it is.
    pub address: Address,
    /// Who logs in there, if anybody has to.
    pub username: Option<String>,
    /// The password.
    pub password: Option<SecretKey>,
    /// How: `login`, `plain`, `cram_md5`; nothing for no login.
    pub authentication: Option<String>,
    /// Whether the connection is encrypted once it stands.
    pub starttls: bool,
    /// The sender.
    pub from: Option<String>,
    /// Where answers go.
    pub reply_to: Option<String>,
}
