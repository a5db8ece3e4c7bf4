//! Resolves a spec's connection to a target.
//!
//! One parser reads all URLs; a connection that is given by parameters never becomes a URL, so nothing in it needs
//! escaping.

use secrecy::{ExposeSecret, SecretString};
use stanchion_api::policy::{Connection, Params, SecretKey};
use stanchion_kernel::Problem;
use stanchion_postgres::{ConnectionConfig, Identity, TlsMode};

use crate::passwords::Secrets;
use crate::policy::validate::invalid;

const URL_KEY: &str = "DATABASE_URL";

/// A connection, validated as far as possible without reading anything.
#[derive(Clone, Debug)]
pub struct ConnectionRequest {
    form: ConnectionForm,
    ca: Option<SecretKey>,
    requires_identity: bool,
    /// Whether the spec itself contains a password.
    pub exposes_password: bool,
}

#[derive(Clone, Debug)]
enum ConnectionForm {
    Url(SecretKey),
    Parts(Box<Parts>),
}

#[derive(Clone, Debug)]
struct Parts {
    host: Source,
    port: Option<Source>,
    database: Source,
    user: Source,
    password: Option<Source>,
    tls: Option<Source>,
    set_role: Option<String>,
}

/// The source of a parameter.
#[derive(Clone, Debug)]
enum Source {
    Written(SecretString),
    Kept(SecretKey),
}

/// Validates a connection.
pub(crate) fn request(connection: &Connection) -> Result<ConnectionRequest, Problem> {
    let form = match (&connection.secret_ref, &connection.params) {
        (Some(secret), None) => ConnectionForm::Url(SecretKey {
            name: secret.name.clone(),
            key: connection.secret_key.clone().unwrap_or_else(|| URL_KEY.into()),
        }),
        (None, Some(params)) => ConnectionForm::Parts(Box::new(parts(params)?)),
        _ => {
            return Err(invalid(
                "connection needs exactly one of secretRef (a Secret with a URL) and params",
            ));
        }
    };
    Ok(ConnectionRequest {
        form,
        ca: connection.ca_secret.as_ref().map(|ca| SecretKey {
            name: ca.name.clone(),
            key: ca.key.clone(),
        }),
        requires_identity: connection.require_physical_identity == Some(true),
        exposes_password: connection
            .params
            .as_ref()
            .is_some_and(|params| params.password.is_some()),
    })
}

fn parts(params: &Params) -> Result<Parts, Problem> {
    if let Some(auth) = &params.auth {
        return Err(Problem::permanent(
            "InvalidConnectionParams",
            format!(
                "connection.params.auth.type {} is not supported; use a password, or a proxy that logs in by itself",
                auth.kind.as_str()
            ),
        ));
    }
    let port = params.port.map(|port| port.to_string());
    Ok(Parts {
        host: required("host", params.host.as_ref(), params.host_secret.as_ref())?,
        port: source("port", port.as_ref(), params.port_secret.as_ref())?,
        database: required("dbname", params.dbname.as_ref(), params.dbname_secret.as_ref())?,
        user: required(
            "username",
            params.username.as_ref(),
            params.username_secret.as_ref(),
        )?,
        password: source(
            "password",
            params.password.as_ref(),
            params.password_secret.as_ref(),
        )?,
        tls: source(
            "sslMode",
            params.ssl_mode.as_ref(),
            params.ssl_mode_secret.as_ref(),
        )?,
        set_role: params.set_role.clone(),
    })
}

fn source(name: &str, written: Option<&String>, kept: Option<&SecretKey>) -> Result<Option<Source>, Problem> {
    match (written, kept) {
        (Some(_), Some(_)) => Err(bad(format!(
            "{name} is given twice: as {name} and as {name}Secret"
        ))),
        (Some(written), None) => Ok(Some(Source::Written(written.as_str().into()))),
        (None, Some(kept)) => Ok(Some(Source::Kept(kept.clone()))),
        (None, None) => Ok(None),
    }
}

fn required(name: &str, written: Option<&String>, kept: Option<&SecretKey>) -> Result<Source, Problem> {
    source(name, written, kept)?.ok_or_else(|| bad(format!("{name} is missing: give {name} or {name}Secret")))
}

fn bad(message: impl std::fmt::Display) -> Problem {
    Problem::permanent("InvalidConnectionParams", format!("connection.params: {message}"))
}

/// Reads the values from Secrets.
pub(crate) async fn resolve(
    request: &ConnectionRequest,
    secrets: &mut Secrets<'_>,
) -> Result<ConnectionConfig, Problem> {
    let target = match &request.form {
        ConnectionForm::Url(url) => {
            let text = secrets.value(&url.name, &url.key).await?;
            ConnectionConfig::parse(&text).map_err(|error| {
                Problem::human(
                    "InvalidConnectionParams",
                    format!("Secret {}, key {}: {error}", url.name, url.key),
                )
            })?
        }
        ConnectionForm::Parts(parts) => of_parts(parts, secrets).await?,
    }
    .named_in(secrets.namespace());
    Ok(match &request.ca {
        Some(ca) => {
            let pem = secrets.value(&ca.name, &ca.key).await?;
            let mode = target.tls();
            target.with_tls(mode, Some(pem.expose_secret().to_owned()))
        }
        None => target,
    })
}

async fn of_parts(parts: &Parts, secrets: &mut Secrets<'_>) -> Result<ConnectionConfig, Problem> {
    let host = read(&parts.host, secrets).await?;
    let database = read(&parts.database, secrets).await?;
    let user = read(&parts.user, secrets).await?;
    let port = match &parts.port {
        Some(port) => read(port, secrets)
            .await?
            .expose_secret()
            .trim()
            .parse()
            .map_err(|_| bad("the port is not a number from 1 to 65535"))?,
        None => stanchion_postgres::connection_config::DEFAULT_PORT,
    };
    let mut target = ConnectionConfig::new(
        host.expose_secret().trim(),
        port,
        database.expose_secret(),
        user.expose_secret(),
    )
    .map_err(bad)?
    .with_set_role(parts.set_role.clone());
    if let Some(password) = &parts.password {
        target = target.with_password(read(password, secrets).await?);
    }
    if let Some(mode) = &parts.tls {
        let mode: TlsMode = read(mode, secrets)
            .await?
            .expose_secret()
            .trim()
            .parse()
            .map_err(|_| {
                bad("sslMode must be one of disable, allow, prefer, require, verify-ca, verify-full")
            })?;
        target = target.with_tls(mode, None);
    }
    Ok(target)
}

async fn read(source: &Source, secrets: &mut Secrets<'_>) -> Result<SecretString, Problem> {
    match source {
        Source::Written(value) => Ok(value.clone()),
        Source::Kept(SecretKey { name, key }) => secrets.value(name, key).await,
    }
}

/// Refuses a server that does not report its identity, if the policy requires that.
pub(crate) fn check_identity(
    request: &ConnectionRequest,
    target: &ConnectionConfig,
    identity: &Identity,
) -> Result<(), Problem> {
    if request.requires_identity && identity.system() == target.to_string() {
        return Err(Problem::human(
            "TargetIdentityBlocked",
            "connection.requirePhysicalIdentity is set, and the role may not call pg_control_system(); grant it EXECUTE",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(connection: serde_json::Value) -> Result<ConnectionRequest, Problem> {
        request(&serde_json::from_value(connection).unwrap())
    }

    #[test]
    fn one_way_and_each_part_once() {
        check(json!({ "secretRef": { "name": "db" } })).unwrap();
        let parts = json!({ "host": "h", "dbname": "d", "username": "u", "password": "p" });
        assert!(check(json!({ "params": parts })).unwrap().exposes_password);
        for (broken, word) in [
            (json!({}), "exactly one"),
            (
                json!({ "secretRef": { "name": "db" }, "params": parts }),
                "exactly one",
            ),
            (
                json!({ "params": { "dbname": "d", "username": "u" } }),
                "host is missing",
            ),
            (
                json!({ "params": { "host": "h", "hostSecret": { "name": "a", "key": "b" }, "dbname": "d", "username": "u" } }),
                "host is given twice",
            ),
            (
                json!({ "params": { "host": "h", "dbname": "d", "username": "u", "auth": { "type": "gcp_workload_identity" } } }),
                "gcp_workload_identity is not supported",
            ),
        ] {
            let problem = check(broken).unwrap_err();
            assert!(problem.message.contains(word), "{problem}");
        }
    }

    #[test]
    fn nothing_shows_a_password() {
        let request = check(
            json!({ "params": { "host": "h", "dbname": "d", "username": "u", "password": "hunter2" } }),
        )
        .unwrap();
        assert!(!format!("{request:?}").contains("hunter2"));
    }
}
