//! Reads and interprets the Secrets and `ConfigMaps` of a project.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use secrecy::{ExposeSecret as _, SecretString};
use stanchion_api::instance::TlsMode;
use stanchion_kernel::{Problem, Reader};
use stanchion_postgres as pg;

use super::reasons::ReadyReason;
use super::target::Wanted;
use crate::components::{Address, Bucket, CLIENT_ID, CLIENT_SECRET, ConfigMaps};
use crate::dependencies::s3::Store;

/// The keys of the Secret with the database's administrator.
pub(crate) const DATABASE_KEYS: &[&str] = &["host", "port", "database", "username", "password"];
/// The keys of the Secret with the bucket's key.
pub(crate) const STORAGE_KEYS: &[&str] = &["endpoint", "region", "bucket", "accessKeyId", "secretAccessKey"];
/// The keys of the Secret with the mail server.
pub(crate) const SMTP_KEYS: &[&str] = &["host", "port", "username", "password", "from"];
/// The keys of the Secret with the dashboard's password.
pub(crate) const DASHBOARD_KEYS: &[&str] = &["username", "password"];
/// The shortest signing secret that is accepted.
const SHORTEST_SECRET: usize = 32;

/// The values of the Secrets.
pub struct Read {
    /// The components' address of the database.
    pub address: Address,
    /// The administrator's connection.
    pub target: pg::ConnectionConfig,
    /// The components' address of the bucket.
    pub bucket: Bucket,
    /// The operator's access to the bucket.
    pub store: Store,
    /// The signing secret, if the user provides one.
    pub own_secret: Option<SecretString>,
    /// The Secret with the project's keys, if it exists.
    pub stored_keys: Option<Secret>,
    /// The Secrets that pods use.
    pub others: BTreeMap<String, Values>,
    /// The `ConfigMaps` that pods use.
    pub config: ConfigMaps,
}

type Values = BTreeMap<String, SecretString>;

/// The existing Secrets and `ConfigMaps`, by name.
pub(crate) struct Fetched {
    secrets: BTreeMap<String, Option<Secret>>,
    config: ConfigMaps,
}

/// Reads everything that is named, in parallel, and registers it as a dependency.
pub(crate) async fn fetch(
    reader: &Reader,
    secrets: BTreeSet<String>,
    maps: BTreeSet<String>,
) -> Result<Fetched, Problem> {
    let secrets = secrets.into_iter().map(async |name| {
        let secret: Option<Secret> = reader.get(&name).await?;
        Ok::<_, Problem>((name, secret))
    });
    let maps = maps.into_iter().map(async |name| {
        let map: Option<ConfigMap> = reader.get(&name).await?;
        Ok::<_, Problem>(map.map(|map| (name, map.data.unwrap_or_default())))
    });
    let (secrets, maps) = tokio::try_join!(try_join_all(secrets), try_join_all(maps))?;
    Ok(Fetched {
        secrets: secrets.into_iter().collect(),
        config: maps.into_iter().flatten().collect(),
    })
}

impl Fetched {
    pub(crate) fn secret(&self, name: &str) -> Option<&Secret> {
        self.secrets.get(name)?.as_ref()
    }

    /// The values of a Secret; every key must have a value.
    fn values(&self, name: &str, what: &str, keys: &[&str]) -> Result<Values, Problem> {
        let secret = self.secret(name);
        let secret = secret.ok_or_else(|| missing(format!("{what} secret '{name}' not found")))?;
        let values = values_of(secret);
        let has = |key: &str| {
            values
                .get(key)
                .is_some_and(|value| !value.expose_secret().trim().is_empty())
        };
        match lacking(keys, has) {
            Some(key) => Err(missing(format!("{what} secret missing required key '{key}'"))),
            None => Ok(values),
        }
    }

    /// A Secret of OAuth providers: a provider with a client id must have a secret, or Auth's pods could not start.
    fn providers(&self, name: &str) -> Result<Values, Problem> {
        const WHAT: &str = "OAuth";
        let values = self.values(name, WHAT, &[])?;
        let secrets = values.keys().filter_map(|key| key.strip_suffix(CLIENT_ID));
        let secrets: Vec<String> = secrets.map(|name| format!("{name}{CLIENT_SECRET}")).collect();
        let secrets: Vec<&str> = secrets.iter().map(String::as_str).collect();
        self.values(name, WHAT, &secrets)
    }
}

/// Interprets what was read.
pub(crate) fn read(fetched: &Fetched, wanted: &Wanted) -> Result<Read, Problem> {
    let names = &wanted.secrets;
    let (address, target) = administrator(fetched, wanted)?;
    let storage = fetched.values(&names.storage, "storage", STORAGE_KEYS)?;
    let (bucket, store) = storage_of(wanted, &storage);
    let own_secret = match &wanted.spec.jwt.secret_ref {
        Some(own) => Some(signing_secret(
            &fetched.values(&own.name, "JWT", &[own.key.as_str()])?,
            &own.key,
        )?),
        None => None,
    };
    let mut others = BTreeMap::from([(names.storage.clone(), storage)]);
    for (name, what, keys) in [
        (&names.smtp, "SMTP", SMTP_KEYS),
        (&names.dashboard, "dashboard basic auth", DASHBOARD_KEYS),
    ] {
        if let Some(name) = name {
            others.insert(name.clone(), fetched.values(name, what, keys)?);
        }
    }
    if let Some(name) = &names.oauth {
        others.insert(name.clone(), fetched.providers(name)?);
    }
    for needed in wanted.needs().flat_map(|needs| needs.secrets) {
        let values = fetched.values(&needed.name, needed.what, needed.keys)?;
        others.insert(needed.name, values);
    }
    if let Some(ca) = &wanted.spec.database.ca_secret_ref {
        let values = fetched.values(&ca.name, "database CA", &[ca.key.as_str()])?;
        others.entry(ca.name.clone()).or_insert(values);
    }
    // Pods report the keys that they wait for; they are replaced when those appear or change.
    for name in wanted.extra_secrets() {
        let values = fetched.secret(&name).map(values_of).unwrap_or_default();
        others.entry(name).or_insert(values);
    }
    let mut maps = wanted.needs().flat_map(|needs| needs.config_maps);
    if let Some(needed) = maps.find(|needed| !fetched.config.contains_key(&needed.name)) {
        let (what, name) = (needed.what, needed.name);
        return Err(missing(format!("{what} config map '{name}' not found")));
    }
    Ok(Read {
        address,
        target,
        bucket,
        store,
        own_secret,
        stored_keys: fetched.secret(&wanted.key_secret()).cloned(),
        others,
        config: fetched.config.clone(),
    })
}

/// The address of the database, and the administrator's connection.
pub(crate) fn administrator(
    fetched: &Fetched,
    wanted: &Wanted,
) -> Result<(Address, pg::ConnectionConfig), Problem> {
    let database = fetched.values(&wanted.secrets.database, "database", DATABASE_KEYS)?;
    let pem = match &wanted.spec.database.ca_secret_ref {
        Some(ca) => {
            let values = fetched.values(&ca.name, "database CA", &[ca.key.as_str()])?;
            Some(text(&values, &ca.key))
        }
        None => None,
    };
    database_of(wanted, &database, pem)
}

fn values_of(secret: &Secret) -> Values {
    let data = secret.data.iter().flatten();
    let text = |value: &[u8]| Some(SecretString::from(str::from_utf8(value).ok()?));
    data.filter_map(|(key, value)| Some((key.clone(), text(&value.0)?)))
        .collect()
}

/// The first missing key.
pub(crate) fn lacking<'a>(keys: &[&'a str], has: impl Fn(&str) -> bool) -> Option<&'a str> {
    keys.iter().copied().find(|key| !has(key))
}

fn missing(message: String) -> Problem {
    Problem::dependency(ReadyReason::DependencyValidationFailed.as_str(), message)
}

/// A value without a trailing line break.
fn text(values: &Values, key: &str) -> String {
    let value = values.get(key).map_or("", |value| value.expose_secret());
    value.trim_end_matches(['\n', '\r']).to_owned()
}

fn database_of(
    wanted: &Wanted,
    values: &Values,
    ca: Option<String>,
) -> Result<(Address, pg::ConnectionConfig), Problem> {
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
    let target = pg::ConnectionConfig::new(&address.host, port, &address.name, &text(values, "username"))
        .map_err(|error| missing(format!("database secret: {error}")))?
        .with_password(text(values, "password").into())
        .with_tls(mode, ca)
        .named_in(&wanted.namespace);
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
