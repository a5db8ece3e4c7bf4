//! The Secrets that a project names: what must be in them, and what they mean.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use secrecy::{ExposeSecret as _, SecretString};
use stanchion_api::instance::TlsMode;
use stanchion_kernel::{Problem, Reader};
use stanchion_postgres as pg;

use super::target::Wanted;
use crate::components::{Address, Bucket};
use crate::dependencies::s3::Store;

/// The reason under which people know that something is missing.
pub const DEPENDENCY: &str = "DependencyValidationFailed";

/// The keys of the Secret with the database's administrator.
pub const DATABASE_KEYS: &[&str] = &["host", "port", "database", "username", "password"];
/// The keys of the Secret with the bucket's key.
pub const STORAGE_KEYS: &[&str] = &["endpoint", "region", "bucket", "accessKeyId", "secretAccessKey"];
/// The keys of the Secret with the mail server.
pub const SMTP_KEYS: &[&str] = &["host", "port", "username", "password", "from"];
/// The keys of the Secret with the dashboard's password.
pub const DASHBOARD_KEYS: &[&str] = &["username", "password"];
/// The shortest secret that tokens may be signed with.
const SHORTEST_SECRET: usize = 32;

/// What was read.
pub struct Read {
    /// Where components find the database.
    pub address: Address,
    /// How the administrator gets there.
    pub target: pg::Target,
    /// Where components find the files.
    pub bucket: Bucket,
    /// How the operator gets there.
    pub store: Store,
    /// The secret to sign with, where the user brings one.
    pub own_secret: Option<SecretString>,
    /// The Secrets that pods take values from.
    pub others: BTreeMap<String, Values>,
}

type Values = BTreeMap<String, SecretString>;

/// Reads them all.
pub async fn read(reader: &Reader, wanted: &Wanted) -> Result<Read, Problem> {
    let names = &wanted.secrets;
    let database = one(reader, &names.database, "database", DATABASE_KEYS).await?;
    let storage = one(reader, &names.storage, "storage", STORAGE_KEYS).await?;
    let ca = match &wanted.spec.database.ca_secret_ref {
        Some(ca) => {
            let values = one(reader, &ca.name, "database CA", &[ca.key.as_str()]).await?;
            Some((ca.name.clone(), ca.key.clone(), values))
        }
        None => None,
    };
    let pem = ca.as_ref().map(|(_, key, values)| text(values, key));
    let (address, target) = database_of(wanted, &database, pem)?;
    let (bucket, store) = storage_of(wanted, &storage);
    let own_secret = match &wanted.spec.jwt.secret_ref {
        Some(own) => Some(signing_secret(
            &one(reader, &own.name, "JWT", &[own.key.as_str()]).await?,
            &own.key,
        )?),
        None => None,
    };
    let mut others = BTreeMap::from([(names.storage.clone(), storage)]);
    for (name, what, keys) in [
        (&names.smtp, "SMTP", SMTP_KEYS),
        (&names.oauth, "OAuth", &[][..]),
        (&names.dashboard, "dashboard basic auth", DASHBOARD_KEYS),
    ] {
        if let Some(name) = name {
            others.insert(name.clone(), one(reader, name, what, keys).await?);
        }
    }
    if let Some((name, _, values)) = ca {
        others.entry(name).or_insert(values);
    }
    Ok(Read {
        address,
        target,
        bucket,
        store,
        own_secret,
        others,
    })
}

async fn one(reader: &Reader, name: &str, what: &str, keys: &[&str]) -> Result<Values, Problem> {
    let secret: Option<Secret> = reader.get(name).await?;
    let secret = secret.ok_or_else(|| missing(format!("{what} secret '{name}' not found")))?;
    let data = secret.data.unwrap_or_default();
    let values: Values = data
        .into_iter()
        .filter_map(|(key, value)| Some((key, SecretString::from(String::from_utf8(value.0).ok()?))))
        .collect();
    match lacking(keys, |key| {
        values
            .get(key)
            .is_some_and(|value| !value.expose_secret().trim().is_empty())
    }) {
        Some(key) => Err(missing(format!("{what} secret missing required key '{key}'"))),
        None => Ok(values),
    }
}

/// The first key that is not there.
pub fn lacking<'a>(keys: &[&'a str], has: impl Fn(&str) -> bool) -> Option<&'a str> {
    keys.iter().copied().find(|key| !has(key))
}

fn missing(message: String) -> Problem {
    Problem::dependency(DEPENDENCY, message)
}

/// A value as people mean it: what an editor puts at the end of a line is not part of it.
fn text(values: &Values, key: &str) -> String {
    let value = values.get(key).map_or("", |value| value.expose_secret());
    value.trim_end_matches(['\n', '\r']).to_owned()
}

fn database_of(
    wanted: &Wanted,
    values: &Values,
    ca: Option<String>,
) -> Result<(Address, pg::Target), Problem> {
    let port = text(values, "port");
    let port = port
        .trim()
        .parse()
        .map_err(|_| missing("database secret: the value of 'port' is not a port number".into()))?;
    let address = Address {
        host: text(values, "host").trim().to_owned(),
        port,
        name: text(values, "database"),
    };
    let mode = match wanted.spec.database.ssl_mode {
        TlsMode::Disable => pg::TlsMode::Disable,
        TlsMode::Prefer => pg::TlsMode::Prefer,
        TlsMode::Require => pg::TlsMode::Require,
        TlsMode::VerifyCa => pg::TlsMode::VerifyCa,
        TlsMode::VerifyFull => pg::TlsMode::VerifyFull,
    };
    let target = pg::Target::new(&address.host, port, &address.name, &text(values, "username"))
        .map_err(|error| missing(format!("database secret: {error}")))?
        .with_password(text(values, "password").into())
        .with_tls(mode, ca);
    Ok((address, target))
}

fn storage_of(wanted: &Wanted, values: &Values) -> (Bucket, Store) {
    let bucket = Bucket {
        secret: wanted.secrets.storage.clone(),
        endpoint: text(values, "endpoint"),
        region: text(values, "region"),
        name: text(values, "bucket"),
    };
    let store = Store {
        endpoint: bucket.endpoint.clone(),
        region: bucket.region.clone(),
        bucket: bucket.name.clone(),
        access_key_id: text(values, "accessKeyId").into(),
        secret_access_key: text(values, "secretAccessKey").into(),
        force_path_style: wanted.spec.storage.force_path_style,
        ca: None,
    };
    (bucket, store)
}

fn signing_secret(values: &Values, key: &str) -> Result<SecretString, Problem> {
    let secret = text(values, key);
    if secret.len() < SHORTEST_SECRET {
        return Err(missing(format!(
            "JWT secret: the value of '{key}' must have at least {SHORTEST_SECRET} characters"
        )));
    }
    Ok(secret.into())
}
