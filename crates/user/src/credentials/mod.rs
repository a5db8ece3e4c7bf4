//! The contents of the credentials Secret, from values alone.
//!
//! | asked for by | keys |
//! |---|---|
//! | nothing: always there | `username`, `user`, `password`, `host`, `port`, `dbname`, `dotnet`, `pgpass` |
//! | `libpq` | `PGHOST`, `PGPORT`, `PGUSER`, `PGPASSWORD`, `PGDATABASE`, `PGSSLMODE` |
//! | `uri` | `uri` |
//! | `jdbc` | `jdbc-uri` |
//! | `pooler` | `pooler-host`, `pooler-port`, `pooler-uri` |
//! | `replica` | `replica-host`, `replica-port`, `replica-uri` |
//! | `template` | one each; a template wins over the key of the same name above |
//!
//! Every value is escaped for the form that it stands in: an unescaped `@` or `#` in a password is what breaks
//! connection strings elsewhere. A role without a password has no password keys and no password file, and its
//! URIs name the user only.
//!
//! Templates know the fields `.Username`, `.Password`, `.Host`, `.Port`, `.Database`, `.SSLMode` and `.Params` (the
//! query of a URI: `sslmode` and `params`, escaped, without `?`), and these functions:
//!
//! | function | writes |
//! |---|---|
//! | `urlquery` | a part of a URI. A space is `%20` and not Go's `+`, which libpq would take for a plus sign |
//! | `b64enc` | base64 |
//! | `quote` | a string of JSON or YAML, in double quotes |
//! | `squote` | one word of a shell, in single quotes |
//! | `conninfo` | a value of libpq's `key=value` form, in single quotes |
//! | `dotnet` | a value of a .NET connection string, in double quotes where it needs them |
//! | `pgpass` | a field of a password file |
//! | `trim`, `lower`, `upper` | without white space at both ends; in lower case; in upper case |
//!
//! The keys that movetokube's operator writes, for applications that read those:
//!
//! ```yaml
//! template:
//!   POSTGRES_URL: 'postgresql://{{ .Username | urlquery }}:{{ .Password | urlquery }}@{{ .Host }}:{{ .Port }}/{{ .Database | urlquery }}'
//!   POSTGRES_JDBC_URL: 'jdbc:postgresql://{{ .Host }}:{{ .Port }}/{{ .Database | urlquery }}'
//!   POSTGRES_DOTNET_URL: 'User ID={{ .Username | dotnet }};Password={{ .Password | dotnet }};Host={{ .Host }};Port={{ .Port }};Database={{ .Database | dotnet }};'
//!   HOST: '{{ .Host }}:{{ .Port }}'
//!   HOSTNAME: '{{ .Host }}'
//!   PORT: '{{ .Port }}'
//!   DATABASE_NAME: '{{ .Database }}'
//!   ROLE: '{{ .Username }}'
//!   LOGIN: '{{ .Username }}'
//!   PASSWORD: '{{ .Password }}'
//!   URI_ARGS: '{{ .Params }}'
//! ```

mod escape;
mod forms;
mod params;
mod template;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use secrecy::{ExposeSecret as _, SecretString};
use stanchion_api::user::{CredentialsSecret, KeySet};
use stanchion_kernel::Problem;
use stanchion_kernel::text::shorten;

use forms::Address;
use params::Params;
use template::{Field, Template};

/// The longest key that Kubernetes allows in a Secret.
const LONGEST_KEY: usize = 253;

/// The values of a login.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    /// The login.
    pub username: &'a str,
    /// Its password; `None` if it has none, or if only a hash is known.
    pub password: Option<&'a SecretString>,
    /// The server's host, for applications.
    pub host: &'a str,
    /// The server's port.
    pub port: u16,
    pub database: &'a str,
    /// libpq's `sslmode`.
    pub sslmode: &'a str,
    /// The connection pooler's host and port.
    pub pooler: Option<(&'a str, u16)>,
    /// A read-only replica's host and port.
    pub replica: Option<(&'a str, u16)>,
}

/// Whether the Secret can be rendered, as far as that is known without the values.
pub(crate) fn check(secret: &CredentialsSecret) -> Result<(), Problem> {
    params::check(&secret.params)?;
    secret
        .template
        .iter()
        .try_for_each(|(key, text)| parse(key, text).map(drop))
}

/// The Secret's data.
pub(crate) fn render(
    secret: &CredentialsSecret,
    facts: &Facts<'_>,
) -> Result<BTreeMap<String, SecretString>, Problem> {
    params::check(&secret.params)?;
    let params = Params::new(&secret.params, facts.sslmode);
    let mut data = built_in(secret, facts, &params)?;
    for (key, text) in &secret.template {
        let rendered = parse(key, text)?.render(|field| value(field, facts, &params));
        data.insert(
            key.clone(),
            rendered.map_err(|mistake| in_template(key, &mistake))?,
        );
    }
    if data.values().map(String::len).sum::<usize>() > template::MOST {
        return Err(Problem::permanent(
            "InvalidSpec",
            "credentialsSecret.template: together too large for a Secret",
        ));
    }
    Ok(data.into_iter().map(|(key, value)| (key, value.into())).collect())
}

/// The keys without a template.
fn built_in<'a>(
    secret: &CredentialsSecret,
    facts: &Facts<'a>,
    params: &Params<'_>,
) -> Result<BTreeMap<String, String>, Problem> {
    let text = |value: &str| Some(value.to_owned());
    let password = || facts.password.map(|password| password.expose_secret().to_owned());
    let primary = (facts.host, facts.port);
    let mut addresses = vec![primary];
    let mut endpoint = |[host, port, uri]: [&'static str; 3], address: Address<'a>| {
        addresses.push(address);
        vec![
            (host, text(address.0)),
            (port, Some(address.1.to_string())),
            (uri, Some(forms::uri(facts, address, params))),
        ]
    };
    let mut data = vec![
        ("username", text(facts.username)),
        ("user", text(facts.username)),
        ("password", password()),
        ("host", text(facts.host)),
        ("port", Some(facts.port.to_string())),
        ("dbname", text(facts.database)),
        ("dotnet", Some(forms::dotnet(facts, params))),
    ];
    for key in &secret.keys {
        data.extend(match key {
            KeySet::Libpq => vec![
                ("PGHOST", text(facts.host)),
                ("PGPORT", Some(facts.port.to_string())),
                ("PGUSER", text(facts.username)),
                ("PGPASSWORD", password()),
                ("PGDATABASE", text(facts.database)),
                ("PGSSLMODE", text(params.sslmode())),
            ],
            KeySet::Uri => vec![("uri", Some(forms::uri(facts, primary, params)))],
            KeySet::Jdbc => vec![("jdbc-uri", Some(forms::jdbc(facts, params)))],
            // Always present.
            KeySet::Dotnet | KeySet::Pgpass => vec![],
            KeySet::Pooler => endpoint(
                ["pooler-host", "pooler-port", "pooler-uri"],
                need("pooler", facts.pooler)?,
            ),
            KeySet::Replica => endpoint(
                ["replica-host", "replica-port", "replica-uri"],
                need("replica", facts.replica)?,
            ),
        });
    }
    data.push(("pgpass", forms::pgpass(facts, addresses.into_iter())));
    Ok(data
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)))
        .collect())
}

fn value(field: Field, facts: &Facts<'_>, params: &Params<'_>) -> Option<String> {
    match field {
        Field::Username => Some(facts.username.to_owned()),
        Field::Password => facts.password.map(|password| password.expose_secret().to_owned()),
        Field::Host => Some(facts.host.to_owned()),
        Field::Port => Some(facts.port.to_string()),
        Field::Database => Some(facts.database.to_owned()),
        Field::SslMode => Some(params.sslmode().to_owned()),
        Field::Params => Some(params.query()),
    }
}

fn parse<'a>(key: &str, text: &'a str) -> Result<Template<'a>, Problem> {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if key.is_empty()
        || key.len() > LONGEST_KEY
        || !key.chars().all(legal)
        || key == "."
        || key.starts_with("..")
    {
        let key = shorten(&format!("{key:?}"), 64);
        let message = format!(
            "credentialsSecret.template: {key} cannot be a key of a Secret: only letters, digits, `-`, `_` and `.` \
             are, {LONGEST_KEY} of them at most"
        );
        return Err(Problem::permanent("InvalidSpec", message));
    }
    Template::parse(text).map_err(|mistake| in_template(key, &mistake))
}

fn in_template(key: &str, mistake: &template::Mistake) -> Problem {
    Problem::permanent(
        "InvalidSpec",
        format!("credentialsSecret.template.{key}: {mistake}"),
    )
}

/// The address of an endpoint. Somebody else may manage the instance, so a missing endpoint is not an error of the
/// object.
fn need<'a>(name: &str, address: Option<Address<'a>>) -> Result<Address<'a>, Problem> {
    let missing = || {
        let message = format!(
            "credentialsSecret.keys asks for `{name}`, but the instance has no such address: set \
             spec.endpoints.{name} of the PostgresInstance, or take `{name}` out"
        );
        Problem::human("EndpointMissing", message)
    };
    address.ok_or_else(missing)
}
