//! Every route has its guard, and the file contains no key.

use serde_json::Value;

use super::*;
use crate::components::project::tests::{ProjectFixture, fixture};

fn parsed(fixture: &ProjectFixture) -> Value {
    serde_saphyr::from_str(&configuration(&fixture.project())).unwrap()
}

fn service<'a>(config: &'a Value, name: &str) -> &'a Value {
    let services = config["services"].as_array().unwrap();
    services
        .iter()
        .find(|service| service["name"] == name)
        .unwrap_or(&Value::Null)
}

fn plugins(config: &Value, name: &str) -> Vec<String> {
    let plugins = service(config, name)["plugins"].as_array().unwrap();
    plugins
        .iter()
        .map(|plugin| plugin["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn every_path_leads_where_it_should() {
    let config = parsed(&fixture(|_| {}));
    let table: Vec<String> = config["services"]
        .as_array()
        .unwrap()
        .iter()
        .map(|service| {
            let path = service["routes"][0]["paths"][0].as_str().unwrap();
            let plugins = plugins(&config, service["name"].as_str().unwrap()).join(" ");
            format!("{path} → {} ({plugins})", service["url"].as_str().unwrap())
        })
        .collect();
    insta::assert_snapshot!(table.join("\n"));
}

#[test]
fn the_file_names_variables_and_holds_no_key() {
    let fixture = fixture(|_| {});
    let text = configuration(&fixture.project());
    for (name, value) in fixture.keys.iter() {
        use secrecy::ExposeSecret as _;
        // The dashboard's user name is an ordinary word.
        if name != key::DASHBOARD_USERNAME {
            assert!(!text.contains(value.expose_secret()), "{name}");
        }
    }
    let mut environment = Environment::default();
    super::environment(&fixture.project(), &mut environment);
    for part in text.split("${").skip(1) {
        let name = part.split('}').next().unwrap();
        assert!(
            environment
                .variables()
                .iter()
                .any(|variable| variable.name == name),
            "{name} is in no environment"
        );
    }
}

#[test]
fn without_a_dashboard_nothing_leads_there() {
    let config = parsed(&fixture(|spec| {
        spec["studio"] = serde_json::json!({"enabled": false});
    }));
    assert_eq!(service(&config, "dashboard"), &Value::Null);
    assert_eq!(service(&config, "mcp"), &Value::Null);
    assert_ne!(service(&config, "auth-v1"), &Value::Null);
}

/// The script as the container runs it, with values that would break a careless one.
#[test]
fn the_start_writes_any_value_in() {
    let folder = tempfile::tempdir().unwrap();
    let template = folder.path().join("kong.yml");
    let fixture = fixture(|_| {});
    std::fs::write(&template, configuration(&fixture.project())).unwrap();
    let output = folder.path().join("out.yml");
    let script = include_str!("entrypoint.sh")
        .replace("/etc/kong/kong.yml", template.to_str().unwrap())
        .replace("exec /entrypoint.sh kong docker-start", "");
    let nasty = r#"p"a\s's: ${HOME} & # %"#;
    let mut command = std::process::Command::new("/bin/sh");
    command
        .arg("-c")
        .arg(script)
        .env("KONG_DECLARATIVE_CONFIG", &output);
    let mut environment = Environment::default();
    super::environment(&fixture.project(), &mut environment);
    for variable in environment.variables() {
        if variable.value.is_none() {
            command.env(&variable.name, format!("value-of-{}", variable.name));
        }
    }
    command.env("DASHBOARD_PASSWORD", nasty);
    assert!(command.status().unwrap().success());
    let text = std::fs::read_to_string(output).unwrap();
    let config: Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(config["basicauth_credentials"][0]["password"], nasty);
    assert_eq!(
        config["consumers"][1]["keyauth_credentials"][0]["key"],
        "value-of-SUPABASE_ANON_KEY"
    );
    let headers = &service(&config, "rest-v1")["plugins"][2]["config"]["add"]["headers"];
    let header = headers[0].as_str().unwrap();
    assert!(
        header.contains("headers.apikey == 'value-of-SUPABASE_SECRET_KEY' and 'Bearer value-of-SERVICE_ROLE_KEY_ASYMMETRIC'"),
        "{header}"
    );
}
