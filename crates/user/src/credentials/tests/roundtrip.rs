//! Other parsers read back what is written, with hostile values.

use std::time::Duration;

use percent_encoding::percent_decode_str;
use proptest::prelude::*;
use tokio_postgres::config::Host;

use super::*;

/// The query of a JDBC URL as Java's `URLDecoder` reads it: `+` is a space.
fn java_decode(text: &str) -> String {
    percent_decode_str(&text.replace('+', " "))
        .decode_utf8()
        .unwrap()
        .into_owned()
}

/// Splits a URL like pgJDBC: at the first `?`, the first `/`, the last `:`.
fn read_jdbc(url: &str) -> (String, u16, String, BTreeMap<String, String>) {
    let (server, query) = url
        .strip_prefix("jdbc:postgresql://")
        .unwrap()
        .split_once('?')
        .unwrap();
    let (address, database) = server.split_once('/').unwrap();
    let (host, port) = address.rsplit_once(':').unwrap();
    let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap());
    let pairs = pairs
        .map(|(name, value)| (name.to_owned(), java_decode(value)))
        .collect();
    (
        host.to_owned(),
        port.parse().unwrap(),
        java_decode(database),
        pairs,
    )
}

/// Parses like .NET's `DbConnectionStringBuilder`: a value in double quotes ends at a quote that is not doubled, any
/// other at the semicolon, without surrounding white space.
fn read_dotnet(text: &str) -> BTreeMap<String, String> {
    let mut words = BTreeMap::new();
    let mut characters = text.chars().peekable();
    while characters.peek().is_some() {
        let word: String = characters.by_ref().take_while(|c| *c != '=').collect();
        let mut value = String::new();
        if characters.next_if_eq(&'"').is_some() {
            while let Some(c) = characters.next() {
                if c == '"' && characters.next_if_eq(&'"').is_none() {
                    break;
                }
                value.push(c);
            }
            assert!(matches!(characters.next(), None | Some(';')));
        } else {
            let bare: String = characters.by_ref().take_while(|c| *c != ';').collect();
            assert!(
                !bare.contains(['"', '\'', '=']) && !bare.is_empty(),
                "{bare:?} needs quotes"
            );
            bare.trim().clone_into(&mut value);
        }
        assert_eq!(words.insert(word, value), None, "a word must not come twice");
    }
    words
}

/// Parses a line of a password file like libpq: `\` escapes the next character.
fn read_pgpass(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        match c {
            ':' => fields.push(String::new()),
            '\\' => fields.last_mut().unwrap().extend(characters.next()),
            c => fields.last_mut().unwrap().push(c),
        }
    }
    fields
}

const PIECES: &[&str] = &[
    "%00",
    "%40",
    "%2B",
    "${x}",
    "{{ .Host }}",
    "$$",
    "%s",
    "p' SUPERUSER VALID UNTIL 'infinity",
    "\"\"",
    "\\'",
    "';--",
    "?user=root",
    "&password=x",
    ";Host=evil",
    "]@[",
    "../",
    "\u{301}",
    "\u{202e}",
];

fn hostile(longest: usize) -> impl Strategy<Value = String> {
    let characters = "[@:/#%?&=+; '\"\\\\{}\\[\\]<>$!,|^`~_.a-zA-Z0-9éß漢😀\u{1}\u{7f}\u{a0}-]";
    let text = proptest::collection::vec(
        prop_oneof![
            characters,
            proptest::sample::select(PIECES).prop_map(str::to_owned)
        ],
        1..30,
    );
    let long = proptest::string::string_regex(&format!("{characters}{{1,{longest}}}")).unwrap();
    prop_oneof![4 => text.prop_map(|pieces| pieces.concat()), 1 => long]
}

fn hosts() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(
        &[
            "db",
            "db.example.com",
            "10.0.0.1",
            "::1",
            "fd00:1::2",
            "fe80::1%eth0",
        ][..],
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn what_is_written_is_what_a_driver_reads(
        username in hostile(63),
        password in hostile(1024),
        database in hostile(63),
        host in hosts(),
        port in 1..=u16::MAX,
        application in hostile(256),
    ) {
        let secret = secret(json!({
            "keys": ["uri", "jdbc", "pooler"],
            "params": {"application_name": application, "connect_timeout": "7"},
        }));
        let password = SecretString::from(password);
        let facts = Facts {
            username: &username,
            password: Some(&password),
            host,
            port,
            database: &database,
            sslmode: "require",
            pooler: Some(("pooler", 6432)),
            replica: None,
        };
        let data = plain(&secret, &facts);
        let password = password.expose_secret();

        for (uri, host, port) in [(&data["uri"], host, port), (&data["pooler-uri"], "pooler", 6432)] {
            let config: tokio_postgres::Config = uri.parse().unwrap();
            prop_assert_eq!(config.get_user(), Some(username.as_str()));
            prop_assert_eq!(config.get_password(), Some(password.as_bytes()));
            prop_assert_eq!(config.get_dbname(), Some(database.as_str()));
            prop_assert_eq!(config.get_hosts(), [Host::Tcp(host.to_owned())]);
            prop_assert_eq!(config.get_ports(), [port]);
            prop_assert_eq!(config.get_application_name(), Some(application.as_str()));
            prop_assert_eq!(config.get_connect_timeout(), Some(&Duration::from_secs(7)));
            prop_assert_eq!(config.get_ssl_mode(), tokio_postgres::config::SslMode::Require);
        }

        let (jdbc_host, jdbc_port, jdbc_database, query) = read_jdbc(&data["jdbc-uri"]);
        prop_assert_eq!(jdbc_host.trim_start_matches('[').trim_end_matches(']'), host);
        prop_assert_eq!((jdbc_port, jdbc_database.as_str()), (port, database.as_str()));
        let expected = [
            ("ApplicationName", application.as_str()),
            ("connectTimeout", "7"),
            ("password", password),
            ("sslmode", "require"),
            ("user", username.as_str()),
        ];
        prop_assert_eq!(query, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());

        let port = port.to_string();
        let expected = [
            ("Host", host),
            ("Port", &port),
            ("Database", &database),
            ("Username", &username),
            ("Password", password),
            ("Application Name", &application),
            ("Timeout", "7"),
            ("SSL Mode", "Require"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        prop_assert_eq!(read_dotnet(&data["dotnet"]), expected);

        let lines: Vec<&str> = data["pgpass"].split_terminator('\n').collect();
        prop_assert_eq!(lines.len(), 2);
        prop_assert_eq!(read_pgpass(lines[0]), [host, &port, &database, &username, password]);
        prop_assert_eq!(read_pgpass(lines[1]), ["pooler", "6432", &database, &username, password]);
    }
}
