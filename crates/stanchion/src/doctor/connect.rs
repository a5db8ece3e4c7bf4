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
use serde::de::DeserializeOwned;
use serde_json::Value;
use stanchion_api::instance::{CaSecretRef, PostgresInstanceSpec};
use stanchion_api::supabase::{Database, Storage};
use stanchion_kernel::tls_mode;
use stanchion_postgres::{AllowedNetworks, ConnectionConfig, PoolSettings, Pools};
use stanchion_supabase::dependencies::{postgres, s3};

use crate::cluster::{Cluster, Unreadable, printable, text};

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
    pub(crate) result: Result<(), ConnectFailure>,
}

/// The kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Database,
    Bucket,
}

/// Why the connection failed.
#[derive(Clone, Debug)]
pub(crate) enum ConnectFailure {
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
    async fn value(
        &mut self,
        namespace: &str,
        name: &str,
        key: &str,
    ) -> Result<SecretString, ConnectFailure> {
        let place = (namespace.to_owned(), name.to_owned());
        let is_known = self.read.contains_key(&place);
        if !is_known {
            let api: Api<Secret> = Api::namespaced(self.cluster.client.clone(), namespace);
            let read = self.cluster.get(&api, name).await;
            let values = read.map(|secret| secret.data.unwrap_or_default());
            self.read.insert(place.clone(), values);
        }
        let unread = |why: String| ConnectFailure::Unread(printable(&format!("Secret {name}: {why}")));
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
        let text = std::str::from_utf8(&value.0).map_err(|_| unread(format!("{key} is not text")))?;
        Ok(text.trim_end_matches(['\n', '\r']).into())
    }

    /// A parameter of a policy's connection, from the spec or from a Secret.
    async fn part(
        &mut self,
        namespace: &str,
        params: &Value,
        name: &str,
    ) -> Result<Option<SecretString>, ConnectFailure> {
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

async fn dial(pools: &Pools, address: &Address) -> Result<(), ConnectFailure> {
    let answered = match address {
        Address::Database(target) => postgres::probe(pools, target).await.map(drop),
        Address::Bucket(store) => s3::probe(store, pools.http()).await.map(drop),
    };
    answered.map_err(|problem| {
        ConnectFailure::Failed(printable(&format!("{}: {}", problem.reason, problem.message)))
    })
}

fn unusable(error: impl std::fmt::Display) -> ConnectFailure {
    ConnectFailure::Unread(printable(&error.to_string()))
}

/// A part of a spec, with the defaults that the operator uses. The error does not quote values: some are secrets.
fn part<T: DeserializeOwned>(object: &Value, pointer: &str) -> Result<T, ConnectFailure> {
    let part = object.pointer(pointer).unwrap_or(&Value::Null);
    T::deserialize(part).map_err(|_| {
        let field = pointer.trim_start_matches('/').replace('/', ".");
        unusable(format!(
            "{field} does not match the CRD of this program's version"
        ))
    })
}

async fn instance(
    object: &Value,
    namespace: &str,
    secrets: &mut Secrets<'_>,
) -> Result<Address, ConnectFailure> {
    let spec: PostgresInstanceSpec = part(object, "/spec")?;
    let admin = &spec.admin_secret_ref;
    let user = secrets.value(namespace, &admin.name, &admin.username_key).await?;
    let password = secrets.value(namespace, &admin.name, &admin.password_key).await?;
    let target = ConnectionConfig::new(&spec.host, spec.port, &spec.database, user.expose_secret().trim());
    let tls = spec.tls.unwrap_or_default();
    let ca = certificate(tls.ca_secret_ref.as_ref(), namespace, secrets).await?;
    let target = target.map_err(unusable)?.with_password(password);
    Ok(Address::Database(target.with_tls(tls_mode(tls.mode), ca)))
}

/// The PEM certificate in a key of a Secret.
async fn certificate(
    reference: Option<&CaSecretRef>,
    namespace: &str,
    secrets: &mut Secrets<'_>,
) -> Result<Option<String>, ConnectFailure> {
    let Some(CaSecretRef { name, key }) = reference else {
        return Ok(None);
    };
    let pem = secrets.value(namespace, name, key).await?;
    Ok(Some(pem.expose_secret().to_owned()))
}

/// Its spec may contain a password, so it stays JSON.
async fn policy(
    object: &Value,
    namespace: &str,
    secrets: &mut Secrets<'_>,
) -> Result<Address, ConnectFailure> {
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
                tls => {
                    let mode = tls.parse();
                    let mode = mode.map_err(|_| unusable(format!("{tls} is not a TLS mode")))?;
                    target.with_tls(mode, None)
                }
            }
        }
    };
    let reference = connection
        .get("caSecret")
        .map(|_| part::<CaSecretRef>(object, "/spec/connection/caSecret"));
    let ca = certificate(reference.transpose()?.as_ref(), namespace, secrets).await?;
    Ok(Address::Database(match ca {
        Some(pem) => {
            let mode = target.tls();
            target.with_tls(mode, Some(pem))
        }
        None => target,
    }))
}

async fn project(
    object: &Value,
    namespace: &str,
    secrets: &mut Secrets<'_>,
) -> Result<Address, ConnectFailure> {
    let spec: Database = part(object, "/spec/database")?;
    let secret = spec.secret_ref.name.unwrap_or_default();
    let mut value = async |key: &str| secrets.value(namespace, &secret, key).await;
    let (host, port, database, user, password) = (
        value("host").await?,
        value("port").await?,
        value("database").await?,
        value("username").await?,
        value("password").await?,
    );
    let port = port.expose_secret().trim().parse();
    let port = port.map_err(|_| unusable(format!("Secret {secret}: port is not a number")))?;
    let target = ConnectionConfig::new(
        host.expose_secret().trim(),
        port,
        database.expose_secret(),
        user.expose_secret(),
    );
    let ca = certificate(spec.ca_secret_ref.as_ref(), namespace, secrets).await?;
    let target = target.map_err(unusable)?.with_password(password);
    Ok(Address::Database(target.with_tls(tls_mode(spec.ssl_mode), ca)))
}

async fn bucket(
    object: &Value,
    namespace: &str,
    secrets: &mut Secrets<'_>,
) -> Result<Address, ConnectFailure> {
    let spec: Storage = part(object, "/spec/storage")?;
    let secret = spec.secret_ref.name.unwrap_or_default();
    let mut value = async |key: &str| secrets.value(namespace, &secret, key).await;
    let plain = |value: SecretString| value.expose_secret().to_owned();
    Ok(Address::Bucket(s3::Store {
        endpoint: plain(value("endpoint").await?),
        region: plain(value("region").await?),
        bucket: plain(value("bucket").await?),
        access_key_id: value("accessKeyId").await?,
        secret_access_key: value("secretAccessKey").await?,
        force_path_style: spec.force_path_style,
        ca: None,
    }))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;
    use stanchion_postgres::TlsMode;

    use super::*;
    use crate::fixed_answers;

    /// The mode with which the database of an object is connected to.
    async fn mode_of(kind: &str, spec: Value) -> TlsMode {
        let secret = json!({ "metadata": { "name": "db" }, "data": {
            "host": "ZGI=", "port": "NTQzMg==", "database": "YXBw", "username": "YWRtaW4=", "password": "eA==",
        } });
        let path = "/api/v1/namespaces/shop/secrets/db";
        let cluster = fixed_answers::cluster(&[(path, &secret.to_string())]).await;
        let mut secrets = Secrets {
            cluster: &cluster,
            read: BTreeMap::new(),
        };
        let object = json!({ "kind": kind, "spec": spec });
        let address = match kind {
            "PostgresInstance" => instance(&object, "shop", &mut secrets).await,
            _ => project(&object, "shop", &mut secrets).await,
        };
        match address.unwrap() {
            Address::Database(target) => target.tls(),
            Address::Bucket(_) => panic!("a bucket"),
        }
    }

    /// Otherwise doctor reports a server as reachable that the operator refuses.
    #[tokio::test]
    async fn the_defaults_are_those_of_the_operator() {
        let reference = json!({ "name": "db" });
        let project = json!({ "database": { "secretRef": reference } });
        assert_eq!(mode_of("SupabaseProject", project).await, TlsMode::Require);
        let strict = json!({ "database": { "secretRef": reference, "sslMode": "verify-full" } });
        assert_eq!(mode_of("SupabaseProject", strict).await, TlsMode::VerifyFull);
        let instance = json!({ "host": "db", "adminSecretRef": reference });
        assert_eq!(mode_of("PostgresInstance", instance).await, TlsMode::Prefer);
    }

    #[test]
    fn a_spec_that_cannot_be_read_is_not_quoted() {
        let object = json!({ "spec": { "database": "hunter2" } });
        let Err(ConnectFailure::Unread(why)) = part::<Database>(&object, "/spec/database") else {
            panic!("it is no database");
        };
        assert_eq!(
            why,
            "spec.database does not match the CRD of this program's version"
        );
    }
}
