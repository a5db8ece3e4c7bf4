//! Connection parameters (`credentialsSecret.params`), with the names of each driver.
//!
//! Parameters have libpq's names. pgJDBC and Npgsql have other names for some; pgJDBC ignores unknown ones, Npgsql
//! refuses to connect.

use std::collections::BTreeMap;

use stanchion_kernel::Problem;

use super::escape;

const SSLMODE: &str = "sslmode";

/// Parameters that the role and the server determine; a second value in the query would override them.
const TAKEN: &[&str] = &[
    "user", "password", "passfile", "host", "hostaddr", "port", "dbname", "service",
];

/// libpq's modes, and Npgsql's names for them.
const MODES: &[(&str, &str)] = &[
    ("disable", "Disable"),
    ("allow", "Allow"),
    ("prefer", "Prefer"),
    ("require", "Require"),
    ("verify-ca", "VerifyCA"),
    ("verify-full", "VerifyFull"),
];

/// libpq's name, pgJDBC's, Npgsql's.
const NAMES: &[(&str, &str, &str)] = &[
    ("application_name", "ApplicationName", "Application Name"),
    ("channel_binding", "channelBinding", "Channel Binding"),
    ("connect_timeout", "connectTimeout", "Timeout"),
    ("options", "options", "Options"),
    ("sslcert", "sslcert", "SSL Certificate"),
    ("sslkey", "sslkey", "SSL Key"),
    ("sslmode", "sslmode", "SSL Mode"),
    ("sslrootcert", "sslrootcert", "Root Certificate"),
];

/// The parameters of one Secret; `sslmode` is always among them.
pub(super) struct Params<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Params<'a> {
    /// The given parameters, over the server's own `sslmode`.
    pub(super) fn new(given: &'a BTreeMap<String, String>, sslmode: &'a str) -> Self {
        let given = given.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        Self(std::iter::once((SSLMODE, sslmode)).chain(given).collect())
    }

    pub(super) fn sslmode(&self) -> &'a str {
        self.0.get(SSLMODE).copied().unwrap_or_default()
    }

    /// The query of a URI.
    pub(super) fn query(&self) -> String {
        query(self.0.iter().map(|(name, value)| (*name, *value)))
    }

    /// The query of a JDBC URL, after user and password.
    pub(super) fn jdbc_query(&self, login: impl Iterator<Item = (&'a str, &'a str)>) -> String {
        let named = self
            .0
            .iter()
            .map(|(name, value)| (known(name).map_or(*name, |(_, jdbc, _)| *jdbc), *value));
        query(login.chain(named))
    }

    /// Names and values for a .NET connection string. Parameters that Npgsql does not have are left out.
    pub(super) fn dotnet(&self) -> impl Iterator<Item = (&'static str, &'a str)> {
        self.0.iter().filter_map(|(name, value)| {
            let mode = MODES
                .iter()
                .find(|(mode, _)| *name == SSLMODE && mode == value)
                .map(|(_, dotnet)| *dotnet);
            Some((known(name)?.2, mode.unwrap_or(value)))
        })
    }
}

fn known(name: &str) -> Option<&'static (&'static str, &'static str, &'static str)> {
    NAMES.iter().find(|(libpq, _, _)| *libpq == name)
}

fn query<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let pairs: Vec<String> = pairs
        .map(|(name, value)| format!("{name}={}", escape::percent(value)))
        .collect();
    pairs.join("&")
}

/// Whether every format can express the parameters.
pub(super) fn check(given: &BTreeMap<String, String>) -> Result<(), Problem> {
    for (name, value) in given {
        let refuse = |why: &str| {
            let name = stanchion_kernel::text::shorten(&format!("{name:?}"), 64);
            Err(Problem::permanent(
                "InvalidSpec",
                format!("credentialsSecret.params: {name} {why}"),
            ))
        };
        // Names are not escaped: pgJDBC would not read them.
        if name.is_empty()
            || !name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
        {
            return refuse("is not the name of a parameter: only letters, digits, `_`, `-` and `.` are");
        }
        if TAKEN.contains(&name.to_ascii_lowercase().as_str()) {
            return refuse("cannot be set here: it follows from the role and the server");
        }
        if name == SSLMODE && !MODES.iter().any(|(mode, _)| mode == value) {
            let modes: Vec<&str> = MODES.iter().map(|(mode, _)| *mode).collect();
            return refuse(&format!("must be one of {}", modes.join(", ")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn each_driver_gets_its_own_words() {
        let given = map(&[
            ("application_name", "a b+c"),
            ("target_session_attrs", "primary"),
            ("connect_timeout", "3"),
        ]);
        let params = Params::new(&given, "verify-full");
        assert_eq!(
            params.query(),
            "application_name=a%20b%2Bc&connect_timeout=3&sslmode=verify-full&target_session_attrs=primary"
        );
        assert_eq!(
            params.jdbc_query([("user", "u")].into_iter()),
            "user=u&ApplicationName=a%20b%2Bc&connectTimeout=3&sslmode=verify-full&target_session_attrs=primary"
        );
        assert_eq!(
            params.dotnet().collect::<Vec<_>>(),
            [
                ("Application Name", "a b+c"),
                ("Timeout", "3"),
                ("SSL Mode", "VerifyFull")
            ]
        );
    }

    #[test]
    fn a_given_sslmode_wins_over_the_servers() {
        let given = map(&[("sslmode", "require")]);
        let params = Params::new(&given, "disable");
        assert_eq!(
            (params.sslmode(), params.query().as_str()),
            ("require", "sslmode=require")
        );
    }

    #[test]
    fn every_mode_of_a_server_has_a_word_in_npgsql() {
        use stanchion_api::instance::TlsMode::{Disable, Prefer, Require, VerifyCa, VerifyFull};
        for mode in [Disable, Prefer, Require, VerifyCa, VerifyFull] {
            let mode = serde_json::to_value(mode).unwrap();
            assert!(MODES.iter().any(|(libpq, _)| mode == *libpq), "{mode}");
        }
    }

    #[test]
    fn parameters_that_would_break_a_form_are_refused() {
        for (name, value) in [
            ("user", "x"),
            ("PassWord", "x"),
            ("", "x"),
            ("a b", "x"),
            ("a&b", "x"),
            ("sslmode", "on"),
        ] {
            let problem = check(&map(&[(name, value)])).unwrap_err();
            assert!(
                problem.message.starts_with("credentialsSecret.params: "),
                "{problem}"
            );
        }
        check(&map(&[("application_name", "&=?#")])).unwrap();
    }
}
