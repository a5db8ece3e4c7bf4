//! Kong's own schemas and plugins, in `LuaJIT`, on the file that its container reads. Only the router of Kong does not run:
//! `kong.rs` selects the service of a path.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use stanchion_testkit::report;

use super::kong::{Kong, Verdict, With};
use super::shop;

/// A folder with Kong's source, whose folder `kong` has the modules. `LuaJIT` must be in PATH, with lua-cjson,
/// lua-rex-pcre2, lua-socket and Penlight.
const VARIABLE: &str = "STANCHION_KONG_SOURCE";

fn source(test: &str) -> Option<PathBuf> {
    let source = std::env::var_os(VARIABLE).filter(|source| !source.is_empty());
    if source.is_none() {
        report::skipped(test, &format!("{VARIABLE} names no source of Kong"));
    }
    source.map(PathBuf::from)
}

/// Runs Kong's code on the configuration and the requests.
fn run(source: &Path, input: &Value) -> Value {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/kong");
    let mut luajit = Command::new("luajit")
        .arg(scripts.join("gateway.lua"))
        .arg(source)
        .arg(scripts.join("openresty.lua"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("luajit: {error}"));
    let mut stdin = luajit.stdin.take().unwrap();
    stdin.write_all(input.to_string().as_bytes()).unwrap();
    drop(stdin);
    let output = luajit.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}");
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
}

fn plugins(environment: &str) -> Vec<&str> {
    environment.split(',').collect()
}

fn headers(with: With<'_>) -> Value {
    use base64::Engine as _;
    match with {
        With::Nothing => json!({}),
        With::Key(key) => json!({ "apikey": key }),
        With::Basic(name, password) => {
            let text = base64::prelude::BASE64_STANDARD.encode(format!("{name}:{password}"));
            json!({ "Authorization": format!("Basic {text}") })
        }
    }
}

#[tokio::test]
async fn a20_kongs_own_plugins_decide_the_same() {
    let Some(source) = source("Kong's own plugins") else {
        return;
    };
    let (env, _operator, _) = shop(json!({})).await;
    let (kong, keys) = (Kong::of(&env).await, env.values("shop-jwt").await);
    let pod = env.pod("shop-kong").await;
    let names = plugins(pod.value("KONG_PLUGINS"));

    let all = [
        With::Nothing,
        With::Key("guess"),
        With::Key(&keys["anon-key"]),
        With::Key(&keys["publishable-key"]),
        With::Key(&keys["service-role-key"]),
        With::Key(&keys["secret-key"]),
        With::Basic("supabase", "guess"),
        With::Basic("supabase", &keys["dashboard-password"]),
    ];
    // Each service of the file with each kind of client.
    let paths: Vec<String> = kong
        .routes()
        .iter()
        .map(|(_, path, ..)| path.trim_start_matches('~').trim_end_matches('$').to_owned())
        .collect();
    let cases: Vec<(&str, With<'_>)> = paths
        .iter()
        .flat_map(|path| all.into_iter().map(move |with| (path.as_str(), with)))
        .collect();
    let requests: Vec<Value> = cases
        .iter()
        .map(|(path, with)| json!({ "service": kong.service_name(path), "headers": headers(*with) }))
        .collect();
    let input = json!({ "config": kong.config(), "plugins": names, "requests": requests });
    let answers = run(&source, &input);
    assert!(
        answers["errors"].is_null(),
        "Kong's schemas refuse the file: {answers:#}"
    );
    let answers = answers["answers"].as_array().unwrap();
    assert_eq!(answers.len(), cases.len());
    for ((path, with), answer) in cases.iter().zip(answers) {
        let expected = match kong.ask(path, *with) {
            Verdict::To(_) => Value::Null,
            Verdict::Refused(code) => json!(code),
        };
        assert_eq!(
            answer["status"],
            expected,
            "{path} with {:?}: {answer:#}",
            headers(*with)
        );
    }
}

/// What a service behind the gateway gets in place of a key.
#[tokio::test]
async fn a20_kongs_own_plugins_exchange_keys_for_tokens() {
    let Some(source) = source("Kong's own plugins, on keys") else {
        return;
    };
    let (env, _operator, _) = shop(json!({})).await;
    let (kong, keys) = (Kong::of(&env).await, env.values("shop-jwt").await);
    let pod = env.pod("shop-kong").await;
    let bearer = |name: &str| format!("Bearer {}", pod.value(name));
    let (anon, service) = (
        bearer("ANON_KEY_ASYMMETRIC"),
        bearer("SERVICE_ROLE_KEY_ASYMMETRIC"),
    );
    let own = "Bearer a.user's.token";
    let rows = [
        (
            "/rest/v1/todo",
            json!({ "apikey": keys["anon-key"] }),
            Some(anon.as_str()),
        ),
        (
            "/rest/v1/todo",
            json!({ "apikey": keys["publishable-key"] }),
            Some(&anon),
        ),
        (
            "/rest/v1/todo",
            json!({ "apikey": keys["secret-key"] }),
            Some(&service),
        ),
        (
            "/rest/v1/todo",
            json!({ "apikey": keys["anon-key"], "Authorization": own }),
            Some(own),
        ),
        (
            "/rest/v1/todo",
            json!({ "apikey": keys["anon-key"], "Authorization": format!("Bearer {}", keys["secret-key"]) }),
            Some(&service),
        ),
        ("/storage/v1/object", json!({}), None),
        (
            "/storage/v1/object",
            json!({ "Authorization": "AWS4-HMAC-SHA256 x" }),
            Some("AWS4-HMAC-SHA256 x"),
        ),
        (
            "/storage/v1/object",
            json!({ "apikey": keys["secret-key"] }),
            Some(&service),
        ),
    ];
    let mut requests: Vec<Value> = rows
        .iter()
        .map(|(path, headers, _)| json!({ "service": kong.service_name(path), "headers": headers }))
        .collect();
    requests.push(json!({
        "service": kong.service_name("/realtime/v1/websocket"), "query": { "apikey": keys["publishable-key"] },
    }));
    let names = plugins(pod.value("KONG_PLUGINS"));
    let answers = run(
        &source,
        &json!({ "config": kong.config(), "plugins": names, "requests": requests }),
    );
    for (at, (path, headers, expected)) in rows.iter().enumerate() {
        let answer = &answers["answers"][at];
        // A space before the value is not part of it.
        let sent = answer["headers"]["authorization"].as_str().map(str::trim);
        assert_eq!(sent, *expected, "{path} {headers}: {answer:#}");
    }
    let socket = &answers["answers"][rows.len()];
    let token = pod.value("ANON_KEY_ASYMMETRIC");
    assert_eq!(socket["query"]["apikey"], token, "{socket:#}");
    assert_eq!(socket["headers"]["x-api-key"], token, "{socket:#}");
}

/// The check above can fail: Kong's schemas refuse a setting that they do not know.
#[tokio::test]
async fn a20_kongs_own_schemas_refuse_what_kong_does_not_know() {
    let Some(source) = source("Kong's own schemas") else {
        return;
    };
    let service = json!({
        "name": "auth", "url": "http://shop-auth:9999/", "routes": [{ "name": "auth", "paths": ["/auth/"] }],
        "plugins": [{ "name": "key-auth", "config": { "hide_credential": false } }],
    });
    let config = json!({ "_format_version": "3.0", "services": [service] });
    let said = run(
        &source,
        &json!({ "config": config, "plugins": ["key-auth"], "requests": [] }),
    );
    let error = said.pointer("/errors/services/0/plugins/0/config/hide_credential");
    assert_eq!(error, Some(&json!("unknown field")), "{said:#}");
}
