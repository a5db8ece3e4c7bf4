//! Connects to the database, and reads the passwords of roles from the environment.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use stanchion_postgres::{Budget, ConnectionConfig, Limits, Session, Terms, Timeouts};
use stanchion_roles::expand::Desired;
use stanchion_roles::plan::Password;

use super::args::{Auth, DatabaseArgs};
use super::auth::AzureWorkloadIdentity;
use super::console::Console;
use super::{Failure, While as _};

/// Timeout of the connection.
const CONNECT: Duration = Duration::from_secs(10);

/// Connects, or fails at once with the cause.
pub(super) async fn connect(args: &DatabaseArgs, console: &Console<'_>) -> Result<Session, Failure> {
    let mut target = ConnectionConfig::parse(&SecretString::from(args.database_url.as_str()))
        .doing("failed to connect: the database URL is not valid")?
        .with_application_name("stanchion-roles");
    if let Some(auth) = args.auth {
        if target.has_password() {
            return Err(Failure::new("--auth needs a database URL without a password"));
        }
        target = target.with_password(token(auth, console).await?);
    }
    let defaults = Timeouts::default();
    let terms = Terms {
        timeouts: Timeouts {
            // The user waits and has chosen the server, so the timeout of the URL applies.
            connect: target.connect_timeout().unwrap_or(defaults.connect.max(CONNECT)),
            statement: Duration::from_secs(args.statement_timeout),
            lock: Duration::from_secs(args.lock_timeout),
            ..defaults
        },
        limits: Limits::ALONE,
        budget: Budget::new(2 * Limits::ALONE.answer),
        ..Terms::default()
    };
    Session::connect_on(&target, &terms, Arc::new(()))
        .await
        .doing("failed to connect")
}

async fn token(auth: Auth, console: &Console<'_>) -> Result<SecretString, Failure> {
    match auth {
        Auth::AzureWorkloadIdentity => {
            let doing = "failed to get a token by Azure workload identity";
            let identity = AzureWorkloadIdentity::from_env(&|name| console.variable(name)).doing(doing)?;
            identity.token().await.doing(doing)
        }
    }
}

/// How to handle a variable that is not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unset {
    /// The command fails.
    Fails,
    /// The plan is only displayed: it shows that the password would be set.
    Planned,
}

/// The password of each role that takes one from the environment. The operator resolves those from Secrets.
pub(super) fn passwords(
    desired: &Desired,
    unset: Unset,
    console: &mut Console<'_>,
) -> Result<BTreeMap<String, Password>, Failure> {
    let mut passwords = BTreeMap::new();
    let mut random = rand::rng();
    for (name, role) in &desired.roles {
        let Some(password) = &role.password else { continue };
        let Some(variable) = &password.from_env else {
            console.warn(&format!(
                "role \"{name}\" has its password from a Secret: it is left alone here"
            ));
            continue;
        };
        match console.variable(variable) {
            Some(value) if !value.is_empty() => {
                passwords.insert(name.clone(), Password::new(value.into(), &mut random));
            }
            Some(_) => {
                return Err(Failure::new(format!(
                    "failed to resolve role passwords: environment variable {variable} of role \"{name}\" is empty"
                )));
            }
            None if unset == Unset::Planned => {
                passwords.insert(name.clone(), Password::new(SecretString::default(), &mut random));
            }
            None => {
                return Err(Failure::new(format!(
                    "failed to resolve role passwords: environment variable {variable} of role \"{name}\" is not set"
                )));
            }
        }
    }
    Ok(passwords)
}
