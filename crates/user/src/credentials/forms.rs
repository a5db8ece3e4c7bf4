//! Connection formats of drivers: URI, JDBC, .NET, password file.

use secrecy::ExposeSecret as _;

use super::params::Params;
use super::{Facts, escape};

/// A host and a port.
pub(super) type Address<'a> = (&'a str, u16);

/// `postgresql://…`, for libpq and most drivers.
pub(super) fn uri(facts: &Facts<'_>, (host, port): Address<'_>, params: &Params<'_>) -> String {
    let password = facts
        .password
        .map(|password| format!(":{}", escape::percent(password.expose_secret())));
    format!(
        "postgresql://{}{}@{}:{port}/{}?{}",
        escape::percent(facts.username),
        password.unwrap_or_default(),
        escape::host(host),
        escape::percent(facts.database),
        params.query(),
    )
}

/// `jdbc:postgresql://…`: pgJDBC takes user and password only from the query, and does not decode the host.
pub(super) fn jdbc<'a>(facts: &Facts<'a>, params: &Params<'a>) -> String {
    let password = facts
        .password
        .map(|password| ("password", password.expose_secret()));
    let login = [("user", facts.username)].into_iter().chain(password);
    let host = if facts.host.contains(':') {
        format!("[{}]", facts.host)
    } else {
        facts.host.to_owned()
    };
    let database = escape::percent(facts.database);
    format!(
        "jdbc:postgresql://{host}:{}/{database}?{}",
        facts.port,
        params.jdbc_query(login)
    )
}

/// A connection string for Npgsql.
pub(super) fn dotnet(facts: &Facts<'_>, params: &Params<'_>) -> String {
    let port = facts.port.to_string();
    let password = facts
        .password
        .map(|password| ("Password", password.expose_secret()));
    let words = [
        ("Host", facts.host),
        ("Port", port.as_str()),
        ("Database", facts.database),
        ("Username", facts.username),
    ];
    let all = words.into_iter().chain(password).chain(params.dotnet());
    let all: Vec<String> = all
        .map(|(word, value)| format!("{word}={}", escape::dotnet(value)))
        .collect();
    all.join(";")
}

/// A password file with a line for each address. There is none without a password, or for a password with a line break,
/// which the format cannot express.
pub(super) fn pgpass<'a>(facts: &Facts<'a>, addresses: impl Iterator<Item = Address<'a>>) -> Option<String> {
    let password = facts.password?.expose_secret();
    let line = |(host, port): Address<'_>| {
        let [host, database, username, password] =
            [host, facts.database, facts.username, password].map(escape::pgpass);
        format!("{host}:{port}:{database}:{username}:{password}\n")
    };
    (!password.contains(['\n', '\r'])).then(|| addresses.map(line).collect())
}
