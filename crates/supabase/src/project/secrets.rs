//! Reads and interprets the Secrets and `ConfigMaps` of a project.

use std::collections::BTreeMap;
use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Resource;
use secrecy::{ExposeSecret as _, SecretString};
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};
use stanchion_kernel::{Problem, Reader, tls_mode};
use stanchion_postgres as pg;

use super::reasons::ReadyReason;
use super::target::{Administrator, ToRead, Wanted};
use crate::components::{Address, Bucket, CLIENT_ID, CLIENT_SECRET, ConfigMaps};
use crate::dependencies::s3::Store;
use crate::keys::hex_text;

/// The keys of the Secret with the database's administrator.
pub(crate) const DATABASE_KEYS: &[&str] = &["host", "port", "database", "username", "password"];
/// The keys of the Secret with the bucket's key.
pub(crate) const STORAGE_KEYS: &[&str] = &["endpoint", "region", "bucket", "accessKeyId", "secretAccessKey"];
/// The keys of the Secret with the mail server.
pub(crate) const SMTP_KEYS: &[&str] = &["host", "port", "username", "password", "from"];
/// The keys of that Secret that Auth's pods read.
const SMTP_RAW: &[&str] = &["host", "port", "username", "password", "from", "senderName"];
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
#[derive(Default)]
pub(crate) struct Fetched {
    secrets: BTreeMap<String, Secret>,
    /// Digests of the values that `extraEnv` names.
    digests: BTreeMap<String, Values>,
    config: ConfigMaps,
    /// The size of everything that was read.
    bytes: usize,
}

/// The most bytes of Secrets and `ConfigMaps` that a pass reads: any namespace may have many, and all share the
/// operator's memory.
const MOST_BYTES: usize = 8 << 20;

/// Reads everything that is named, three objects at once, and registers it as a dependency. Objects are added in the order
/// of their names, and so the first failure by name is returned. What is on its way needs memory beside what is kept, so
/// there is not more of it.
pub(crate) async fn fetch(reader: &Reader, wanted: ToRead) -> Result<Fetched, Problem> {
    let mut fetched = Fetched::default();
    let names: Vec<&String> = wanted.all_secrets().into_iter().collect();
    for names in names.chunks(3) {
        for found in read_three::<Secret>(reader, names).await {
            if let Some((name, secret)) = found? {
                fetched.add_secret(name, secret, &wanted)?;
            }
        }
    }
    let names: Vec<&String> = wanted.all_config_maps().into_iter().collect();
    for names in names.chunks(3) {
        for found in read_three::<ConfigMap>(reader, names).await {
            if let Some((name, map)) = found? {
                fetched.add_config_map(name, map, &wanted)?;
            }
        }
    }
    Ok(fetched)
}

/// The objects of the first three names, each with its name if it exists.
async fn read_three<'a, K>(
    reader: &Reader,
    names: &[&'a String],
) -> [Result<Option<(&'a str, K)>, Problem>; 3]
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    let read = |index: usize| read_one::<K>(reader, names.get(index).copied());
    let (first, second, third) = tokio::join!(read(0), read(1), read(2));
    [first, second, third]
}

/// An object, if there is a name and it exists.
async fn read_one<'a, K>(reader: &Reader, name: Option<&'a String>) -> Result<Option<(&'a str, K)>, Problem>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    match name {
        Some(name) => Ok(reader.get::<K>(name).await?.map(|found| (name.as_str(), found))),
        None => Ok(None),
    }
}

impl Fetched {
    /// Keeps a Secret, or only digests of the named keys: pods read those values themselves.
    fn add_secret(&mut self, name: &str, secret: Secret, wanted: &ToRead) -> Result<(), Problem> {
        let sizes = secret.data.iter().flatten();
        self.count(sizes.map(|(key, value)| key.len() + value.0.len()).sum())?;
        if let Some(keys) = wanted.secret_keys.get(name) {
            let values = secret.data.iter().flatten();
            let digests = values
                .filter(|(key, _)| keys.contains(*key))
                .map(|(key, value)| (key.clone(), hex_text(&Sha256::digest(&value.0)).into()));
            self.digests.insert(name.to_owned(), digests.collect());
        }
        if wanted.secrets.contains(name) {
            self.secrets.insert(name.to_owned(), secret);
        }
        Ok(())
    }

    /// Keeps a `ConfigMap`, or only the named keys of it.
    fn add_config_map(&mut self, name: &str, map: ConfigMap, wanted: &ToRead) -> Result<(), Problem> {
        let text = map
            .data
            .iter()
            .flatten()
            .map(|(key, value)| key.len() + value.len());
        let binary = map.binary_data.iter().flatten();
        self.count(
            text.chain(binary.map(|(key, value)| key.len() + value.0.len()))
                .sum(),
        )?;
        let mut values = map.data.unwrap_or_default();
        if let Some(keys) = wanted
            .config_keys
            .get(name)
            .filter(|_| !wanted.config_maps.contains(name))
        {
            values.retain(|key, _| keys.contains(key));
        }
        self.config.insert(name.to_owned(), values);
        Ok(())
    }

    fn count(&mut self, bytes: usize) -> Result<(), Problem> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MOST_BYTES {
            return Err(missing(format!(
                "the Secrets and ConfigMaps that the spec names hold more than {} MiB, which is more than the operator \
                 reads for one project: name smaller ones",
                MOST_BYTES >> 20
            )));
        }
        Ok(())
    }

    pub(crate) fn secret(&self, name: &str) -> Option<&Secret> {
        self.secrets.get(name)
    }

    /// The same as [`values`](Self::values), for keys whose values pods read themselves: with a line break at its end
    /// they would use another value than the operator checks.
    fn raw_values(&self, name: &str, what: &str, keys: &[&str], raw: &[&str]) -> Result<Values, Problem> {
        let values = self.values(name, what, keys)?;
        let is_broken = |key: &&&str| {
            let value = values.get(**key).map_or("", |value| value.expose_secret());
            value.ends_with(['\n', '\r'])
        };
        match raw.iter().find(is_broken) {
            Some(key) => Err(missing(format!(
                "{what} secret: the value of '{key}' ends in a line break; pods would use it with the value: remove it"
            ))),
            None => Ok(values),
        }
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
        let raw: Vec<&str> = values.keys().map(String::as_str).collect();
        self.raw_values(name, WHAT, &secrets, &raw)
    }
}

/// Interprets what was read.
pub(crate) fn read(fetched: &Fetched, wanted: &Wanted) -> Result<Read, Problem> {
    let names = &wanted.secrets;
    let (address, target) = administrator(fetched, &wanted.administrator())?;
    let raw = &["accessKeyId", "secretAccessKey"];
    let storage = fetched.raw_values(&names.storage, "storage", STORAGE_KEYS, raw)?;
    let (bucket, store) = storage_of(wanted, &storage);
    let own_secret = match &wanted.spec.jwt.secret_ref {
        Some(own) => Some(signing_secret(
            &fetched.values(&own.name, "JWT", &[own.key.as_str()])?,
            &own.key,
        )?),
        None => None,
    };
    let mut others = BTreeMap::from([(names.storage.clone(), storage)]);
    for (name, what, keys, raw) in [
        (&names.smtp, "SMTP", SMTP_KEYS, SMTP_RAW),
        (
            &names.dashboard,
            "dashboard basic auth",
            DASHBOARD_KEYS,
            DASHBOARD_KEYS,
        ),
    ] {
        if let Some(name) = name {
            others.insert(name.clone(), fetched.raw_values(name, what, keys, raw)?);
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
        let digests = fetched.digests.get(&name).cloned().unwrap_or_default();
        others.entry(name).or_insert(digests);
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
    wanted: &Administrator,
) -> Result<(Address, pg::ConnectionConfig), Problem> {
    let database = fetched.values(&wanted.secret, "database", DATABASE_KEYS)?;
    let pem = match &wanted.ca {
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
    wanted: &Administrator,
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
    let target = pg::ConnectionConfig::new(&address.host, port, &address.name, &text(values, "username"))
        .map_err(|error| missing(format!("database secret: {error}")))?
        .with_password(text(values, "password").into())
        .with_tls(tls_mode(wanted.mode), ca)
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

#[cfg(test)]
mod tests;
