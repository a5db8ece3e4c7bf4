//! The keys of the Secret, and what is refused.

mod roundtrip;

use serde_json::json;

use super::*;

fn secret(mut json: serde_json::Value) -> CredentialsSecret {
    json["name"] = "it".into();
    serde_json::from_value(json).unwrap()
}

fn every_key() -> CredentialsSecret {
    secret(json!({"keys": ["libpq", "uri", "jdbc", "dotnet", "pgpass", "pooler", "replica"]}))
}

fn facts(password: Option<&SecretString>) -> Facts<'_> {
    Facts {
        username: "ann",
        password,
        host: "db.example.com",
        port: 5433,
        database: "app",
        sslmode: "require",
        pooler: Some(("pooler", 6432)),
        replica: Some(("fd00::1", 5434)),
    }
}

fn plain(secret: &CredentialsSecret, facts: &Facts<'_>) -> BTreeMap<String, String> {
    let data = render(secret, facts).unwrap();
    data.into_iter()
        .map(|(key, value)| (key, value.expose_secret().to_owned()))
        .collect()
}

#[test]
fn every_form_in_full() {
    let password = SecretString::from("p@ss: w/\"rd\\");
    let secret = secret(json!({
        "keys": ["libpq", "uri", "jdbc", "dotnet", "pgpass", "pooler", "replica"],
        "params": {"application_name": "my app"},
        "template": {"DSN": "host={{ .Host }} user={{ .Username | conninfo }}", "host": "{{ .Host }}:{{ .Port }}"},
    }));
    insta::assert_yaml_snapshot!(plain(&secret, &facts(Some(&password))), @r##"
    DSN: "host=db.example.com user='ann'"
    PGDATABASE: app
    PGHOST: db.example.com
    PGPASSWORD: "p@ss: w/\"rd\\"
    PGPORT: "5433"
    PGSSLMODE: require
    PGUSER: ann
    dbname: app
    dotnet: "Host=db.example.com;Port=5433;Database=app;Username=ann;Password=\"p@ss: w/\"\"rd\\\";Application Name=\"my app\";SSL Mode=Require"
    host: "db.example.com:5433"
    jdbc-uri: "jdbc:postgresql://db.example.com:5433/app?user=ann&password=p%40ss%3A%20w%2F%22rd%5C&ApplicationName=my%20app&sslmode=require"
    password: "p@ss: w/\"rd\\"
    pgpass: "db.example.com:5433:app:ann:p@ss\\: w/\"rd\\\\\npooler:6432:app:ann:p@ss\\: w/\"rd\\\\\nfd00\\:\\:1:5434:app:ann:p@ss\\: w/\"rd\\\\\n"
    pooler-host: pooler
    pooler-port: "6432"
    pooler-uri: "postgresql://ann:p%40ss%3A%20w%2F%22rd%5C@pooler:6432/app?application_name=my%20app&sslmode=require"
    port: "5433"
    replica-host: "fd00::1"
    replica-port: "5434"
    replica-uri: "postgresql://ann:p%40ss%3A%20w%2F%22rd%5C@[fd00::1]:5434/app?application_name=my%20app&sslmode=require"
    uri: "postgresql://ann:p%40ss%3A%20w%2F%22rd%5C@db.example.com:5433/app?application_name=my%20app&sslmode=require"
    user: ann
    username: ann
    "##);
}

#[test]
fn a_role_without_a_password_has_no_password_anywhere() {
    insta::assert_yaml_snapshot!(plain(&every_key(), &facts(None)), @r##"
    PGDATABASE: app
    PGHOST: db.example.com
    PGPORT: "5433"
    PGSSLMODE: require
    PGUSER: ann
    dbname: app
    dotnet: Host=db.example.com;Port=5433;Database=app;Username=ann;SSL Mode=Require
    host: db.example.com
    jdbc-uri: "jdbc:postgresql://db.example.com:5433/app?user=ann&sslmode=require"
    pooler-host: pooler
    pooler-port: "6432"
    pooler-uri: "postgresql://ann@pooler:6432/app?sslmode=require"
    port: "5433"
    replica-host: "fd00::1"
    replica-port: "5434"
    replica-uri: "postgresql://ann@[fd00::1]:5434/app?sslmode=require"
    uri: "postgresql://ann@db.example.com:5433/app?sslmode=require"
    user: ann
    username: ann
    "##);
}

#[test]
fn without_wishes_a_secret_has_the_default_forms() {
    let password = SecretString::from("x");
    let default = plain(&secret(json!({})), &facts(Some(&password)));
    let none = plain(&secret(json!({"keys": []})), &facts(Some(&password)));
    let more: Vec<&str> = default
        .keys()
        .filter(|key| !none.contains_key(*key))
        .map(String::as_str)
        .collect();
    let libpq = [
        "PGDATABASE",
        "PGHOST",
        "PGPASSWORD",
        "PGPORT",
        "PGSSLMODE",
        "PGUSER",
    ];
    assert_eq!(more, [&libpq[..], &["jdbc-uri", "uri"]].concat());
    let always = [
        "dbname", "dotnet", "host", "password", "pgpass", "port", "user", "username",
    ];
    assert_eq!(none.keys().collect::<Vec<_>>(), always);
}

#[test]
fn an_address_that_the_instance_lacks_is_named() {
    let password = SecretString::from("x");
    let lacking = Facts {
        pooler: None,
        replica: None,
        ..facts(Some(&password))
    };
    for key in ["pooler", "replica"] {
        let problem = render(&secret(json!({"keys": [key]})), &lacking).unwrap_err();
        assert_eq!(
            (problem.class, problem.reason),
            (stanchion_kernel::Class::Human, "EndpointMissing")
        );
        assert!(
            problem.message.contains(&format!("spec.endpoints.{key} ")),
            "{problem}"
        );
    }
}

#[test]
fn keys_that_kubernetes_would_refuse_are_refused_here() {
    let long = "k".repeat(254);
    for key in ["", "a b", "a/b", "é", ".", "..", "..a", &long] {
        let problem = check(&secret(json!({"template": {key: "x"}}))).unwrap_err();
        assert!(
            problem.message.starts_with("credentialsSecret.template: "),
            "{problem}"
        );
        assert!(problem.message.len() < 250, "{problem}");
    }
    check(&secret(json!({"template": {"A-b_c.9": "x", ".a": "x", "k": ""}}))).unwrap();
}

#[test]
fn a_mistake_in_a_template_names_key_and_place_and_no_value() {
    let canary = SecretString::from("canary-4711");
    for text in [
        "{{ .Nope }}",
        "{{ .Password | nope }}",
        "{{ .Password",
        "{{ .Password .Password }}",
    ] {
        let secret = secret(json!({"template": {"DSN": text}}));
        for problem in [
            check(&secret).unwrap_err(),
            render(&secret, &facts(Some(&canary))).unwrap_err(),
        ] {
            assert_eq!(problem.reason, "InvalidSpec");
            assert!(
                problem
                    .message
                    .starts_with("credentialsSecret.template.DSN: line 1, column "),
                "{problem}"
            );
            assert!(
                !format!("{problem} {problem:?}").contains("canary"),
                "{problem:?}"
            );
        }
    }
    let too_large =
        secret(json!({"template": {"DSN": format!("{{{{ .Password{} }}}}", " | quote".repeat(400))}}));
    let problem = render(&too_large, &facts(Some(&canary))).unwrap_err();
    assert!(problem.message.ends_with("too large for a Secret"), "{problem:?}");
    assert!(!format!("{problem:?}").contains("canary"));
    assert!(!format!("{:?}", render(&every_key(), &facts(Some(&canary)))).contains("canary"));
    assert!(!format!("{:?}", facts(Some(&canary))).contains("canary"));
}

#[test]
fn a_secret_stays_below_the_size_that_kubernetes_allows() {
    let password = SecretString::from("x".repeat(1000));
    let text = "{{ .Password }}".repeat(200);
    let template: BTreeMap<String, &str> = (0..6).map(|n| (format!("k{n}"), text.as_str())).collect();
    let problem = render(&secret(json!({"template": template})), &facts(Some(&password))).unwrap_err();
    assert_eq!(
        problem.message,
        "credentialsSecret.template: together too large for a Secret"
    );
}

#[test]
fn a_line_break_has_no_form_in_a_password_file() {
    for password in ["a\nb", "a\r"] {
        let password = SecretString::from(password);
        let data = plain(&every_key(), &facts(Some(&password)));
        assert!(!data.contains_key("pgpass"));
        assert_eq!(data["password"], password.expose_secret());
    }
}

#[test]
fn movetokubes_keys_come_from_the_template_in_the_documentation() {
    let source = include_str!("mod.rs");
    let block = source
        .split("```yaml\n")
        .nth(1)
        .unwrap()
        .split("//! ```")
        .next()
        .unwrap();
    let lines = block
        .lines()
        .filter_map(|line| line.strip_prefix("//!   ")?.split_once(": "));
    let template: BTreeMap<&str, &str> = lines.map(|(key, text)| (key, text.trim_matches('\''))).collect();
    assert_eq!(template.len(), 11);
    let password = SecretString::from("a;b@c");
    let data = plain(&secret(json!({"template": template})), &facts(Some(&password)));
    assert_eq!(
        data["POSTGRES_URL"],
        "postgresql://ann:a%3Bb%40c@db.example.com:5433/app"
    );
    assert_eq!(
        data["POSTGRES_JDBC_URL"],
        "jdbc:postgresql://db.example.com:5433/app"
    );
    let dotnet = r#"User ID=ann;Password="a;b@c";Host=db.example.com;Port=5433;Database=app;"#;
    assert_eq!(data["POSTGRES_DOTNET_URL"], dotnet);
    assert_eq!(
        (data["HOST"].as_str(), data["PASSWORD"].as_str()),
        ("db.example.com:5433", "a;b@c")
    );
}
