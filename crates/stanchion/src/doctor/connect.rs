//! `doctor --connect`: connects to the databases and buckets that the objects name, from the user's machine, with the
//! Secrets that the user may read. No value of a Secret is printed: messages contain only hosts, databases and buckets.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use stanchion_postgres::{AllowedNetworks, ConnectionConfig, PoolSettings, Pools, TlsMode};
use stanchion_supabase::dependencies::{postgres, s3};

use crate::cluster::{Cluster, Unreadable, printable};

/// Number of concurrent connections.
const AT_ONCE: usize = 8;
/// The default key of a policy's URL.
const URL_KEY: &str = "DATABASE_URL";

/// A connection for an object, and its result.
#[derive(Clone, Debug)]
pub(crate) struct Contact {
    /// `SupabaseProject shop/demo`
    pub(crate) subject: String,
    pub(crate) namespace: String,
    pub(crate) what: What,
    pub(crate) result: Result<(), Obstacle>,
}

/// The kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Database,
    Bucket,
}

/// Why the connection failed.
#[derive(Clone, Debug)]
pub(crate) enum Obstacle {
    /// The Secret or the spec cannot be used.
    Unread(String),
    /// The server did not answer, or rejected the login.
    Failed(String),
}

/// The Secrets that were read, each once.
struct Secrets<'a> {
    cluster: &'a Cluster,
    read: BTreeMap<(String, String), Result<BTreeMap<String, ByteString>, Unreadable>>,
}

impl Secrets<'_> {
    /// The value of a key, without a trailing line break.
    async fn value(&mut self, namespace: &str, name: &str, key: &str) -> Result<SecretString, Obstacle> {
        let place = (namespace.to_owned(), name.to_owned());
        let is_known = self.read.contains_key(&place);
        if !is_known {
            let api: Api<Secret> = Api::namespaced(self.cluster.client.clone(), namespace);
            let read = self.cluster.get(&api, name).await;
            let values = read.map(|secret| secret.data.unwrap_or_default());
            self.read.insert(place.clone(), values);
        }
        let unread = |why: String| Obstacle::Unread(printable(&format!("Secret {name}: {why}")));
        let values = match self.read.get(&place) {
            Some(Ok(values)) => values,
            Some(Err(Unreadable::Forbidden)) => {
                return Err(unread("you may not read it".to_owned()));
            }
            Some(Err(Unreadable::Failed(why))) => return Err(unread(why.clone())),
            Some(Err(Unreadable::NotServed)) | None => return Err(unread("it does not exist".to_owned())),
        };
        let value = values
            .get(key)
            .ok_or_else(|| unread(format!("it has no key {key}")))?;
        let text = std::str::from_utf8(&value.0).map_err(|_| unread(format!("{key} is no text")))?;
        Ok(text.trim_end_matches(['\n', '\r']).into())
    }

    /// A parameter of a policy's connection, from the spec or from a Secret.
    async fn part(
        &mut self,
        namespace: &str,
        params: &Value,
        name: &str,
    ) -> Result<Option<SecretString>, Obstacle> {
        if let Some(kept) = params.get(format!("{name}Secret")) {
            return self
                .value(namespace, text(kept, "/name"), text(kept, "/key"))
                .await
                .map(Some);
        }
        Ok(params.get(name).and_then(|value| match value {
            Value::String(text) => Some(text.as_str().into()),
            Value::Number(number) => Some(number.to_string().into()),
            _ => None,
        }))
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// An address to connect to.
enum Address {
    Database(ConnectionConfig),
    Bucket(s3::Store),
}

/// Connects to everything that these objects name.
pub(super) async fn contacts(cluster: &Cluster, objects: &[Value]) -> Vec<Contact> {
    let mut secrets = Secrets {
        cluster,
        read: BTreeMap::new(),
    };
    let mut found = Vec::new();
    for object in objects
        .iter()
        .filter(|object| object.pointer("/metadata/deletionTimestamp").is_none())
    {
        let namespace = text(object, "/metadata/namespace");
        for what in [What::Database, What::Bucket] {
            let address = match (text(object, "/kind"), what) {
                ("PostgresInstance", What::Database) => instance(object, namespace, &mut secrets).await,
                ("PostgresPolicy", What::Database) => policy(object, namespace, &mut secrets).await,
                ("SupabaseProject", What::Database) => project(object, namespace, &mut secrets).await,
                ("SupabaseProject", What::Bucket) => bucket(object, namespace, &mut secrets).await,
                _ => continue,
            };
            found.push((super::checks::subject(object), namespace, what, address));
        }
    }
    let settings = PoolSettings {
        networks: AllowedNetworks::detect(Vec::new()),
        ..PoolSettings::default()
    };
    let pools = Pools::new(settings, Arc::new(()));
    let dialled = found.into_iter().map(|(subject, namespace, what, address)| {
        let pools = pools.clone();
        async move {
            let result = match address {
                Ok(address) => dial(&pools, &address).await,
                Err(obstacle) => Err(obstacle),
            };
            Contact {
                subject,
                namespace: namespace.to_owned(),
                what,
                result,
            }
        }
    });
    stream::iter(dialled).buffered(AT_ONCE).collect().await
}

async fn dial(pools: &Pools, address: &Address) -> Result<(), Obstacle> {
    let answered = match address {
        Address::Database(target) => postgres::probe(pools, target).await.map(drop),
        Address::Bucket(store) => s3::probe(store, pools.http()).await.map(drop),
    };
    answered
        .map_err(|problem| Obstacle::Failed(printable(&format!("{}: {}", problem.reason, problem.message))))
}

fn unusable(error: impl std::fmt::Display) -> Obstacle {
    Obstacle::Unread(printable(&error.to_string()))
}

/// The TLS mode; the schema's default if the object does not set it.
fn mode(text: &str) -> Result<TlsMode, Obstacle> {
    match text {
        "" => Ok(TlsMode::Prefer),
        text => text
            .parse()
            .map_err(|_| unusable(format!("{text} is no mode of TLS"))),
    }
}

async fn instance(object: &Value, namespace: &str, secrets: &mut Secrets<'_>) -> Result<Address, Obstacle> {
    let admin = text(object, "/spec/adminSecretRef/name");
    let key =
        |field: &str, default: &'static str| match text(object, &format!("/spec/adminSecretRef/{field}")) {
            "" => default.to_owned(),
            key => key.to_owned(),
        };
    let user = secrets
        .value(namespace, admin, &key("usernameKey", "username"))
        .await?;
    let password = secrets
        .value(namespace, admin, &key("passwordKey", "password"))
        .await?;
    let port = object
        .pointer("/spec/port")
        .and_then(Value::as_u64)
        .unwrap_or(5432);
    let database = match text(object, "/spec/database") {
        "" => "postgres",
        database => database,
    };
    let target = ConnectionConfig::new(
        text(object, "/spec/host"),
        u16::try_from(port).map_err(unusable)?,
        database,
        user.expose_secret().trim(),
    );
    let ca = certificate(object, "/spec/tls/caSecretRef", namespace, secrets).await?;
    let target = target.map_err(unusable)?.with_password(password);
    Ok(Address::Database(
        target.with_tls(mode(text(object, "/spec/tls/mode"))?, ca),
    ))
}

/// The PEM certificate in a key of a Secret.
async fn certificate(
    object: &Value,
    pointer: &str,
    namespace: &str,
    secrets: &mut Secrets<'_>,
) -> Result<Option<String>, Obstacle> {
    let Some(reference) = object.pointer(pointer) else {
        return Ok(None);
    };
    let key = match text(reference, "/key") {
        "" => "ca.crt",
        key => key,
    };
    let pem = secrets.value(namespace, text(reference, "/name"), key).await?;
    Ok(Some(pem.expose_secret().to_owned()))
}

async fn policy(object: &Value, namespace: &str, secrets: &mut Secrets<'_>) -> Result<Address, Obstacle> {
    let connection = object.pointer("/spec/connection").unwrap_or(&Value::Null);
    let target = match connection.get("params") {
        None => {
            let key = match text(connection, "/secretKey") {
                "" => URL_KEY,
                key => key,
            };
            let url = secrets
                .value(namespace, text(connection, "/secretRef/name"), key)
                .await?;
            ConnectionConfig::parse(&url).map_err(unusable)?
        }
        Some(params) => {
            let mut field = async |name: &str| secrets.part(namespace, params, name).await;
            let (host, port, database, user) = (
                field("host").await?,
                field("port").await?,
                field("dbname").await?,
                field("username").await?,
            );
            let (password, tls) = (field("password").await?, field("sslMode").await?);
            let plain = |value: Option<&SecretString>| {
                value.map_or_else(String::new, |value| value.expose_secret().trim().to_owned())
            };
            let number = match plain(port.as_ref()).as_str() {
                "" => stanchion_postgres::connection_config::DEFAULT_PORT,
                digits => digits.parse().map_err(|_| unusable("the port is not a number"))?,
            };
            let target = ConnectionConfig::new(
                &plain(host.as_ref()),
                number,
                &plain(database.as_ref()),
                &plain(user.as_ref()),
            )
            .map_err(unusable)?;
            let target = match password {
                Some(password) => target.with_password(password),
                None => target,
            };
            match plain(tls.as_ref()).as_str() {
                "" => target,
                tls => target.with_tls(mode(tls)?, None),
            }
        }
    };
    let ca = certificate(object, "/spec/connection/caSecret", namespace, secrets).await?;
    Ok(Address::Database(match ca {
        Some(pem) => {
            let mode = target.tls();
            target.with_tls(mode, Some(pem))
        }
        None => target,
    }))
}

async fn project(object: &Value, namespace: &str, secrets: &mut Secrets<'_>) -> Result<Address, Obstacle> {
    let secret = text(object, "/spec/database/secretRef/name");
    let mut value = async |key: &str| secrets.value(namespace, secret, key).await;
    let (host, port, database, user, password) = (
        value("host").await?,
        value("port").await?,
        value("database").await?,
        value("username").await?,
        value("password").await?,
    );
    let port = port.expose_secret().trim().parse();
    let port = port.map_err(|_| unusable(format!("Secret {secret}: port is no number")))?;
    let target = ConnectionConfig::new(
        host.expose_secret().trim(),
        port,
        database.expose_secret(),
        user.expose_secret(),
    );
    let ca = certificate(object, "/spec/database/caSecretRef", namespace, secrets).await?;
    let target = target.map_err(unusable)?.with_password(password);
    let mode = mode(text(object, "/spec/database/sslMode"))?;
    Ok(Address::Database(target.with_tls(mode, ca)))
}

async fn bucket(object: &Value, namespace: &str, secrets: &mut Secrets<'_>) -> Result<Address, Obstacle> {
    let secret = text(object, "/spec/storage/secretRef/name");
    let mut value = async |key: &str| secrets.value(namespace, secret, key).await;
    let plain = |value: SecretString| value.expose_secret().to_owned();
    let style = object
        .pointer("/spec/storage/forcePathStyle")
        .and_then(Value::as_bool);
    Ok(Address::Bucket(s3::Store {
        endpoint: plain(value("endpoint").await?),
        region: plain(value("region").await?),
        bucket: plain(value("bucket").await?),
        access_key_id: value("accessKeyId").await?,
        secret_access_key: value("secretAccessKey").await?,
        force_path_style: style.unwrap_or(true),
        ca: None,
    }))
}
