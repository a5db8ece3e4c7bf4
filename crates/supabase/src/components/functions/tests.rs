//! The runtime's entry, run by Node: it has the same Web APIs, and stand-ins replace the two that it lacks.

use std::process::Command;

use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

use super::super::project::tests::{ProjectFixture, fixture};
use super::*;
use crate::keys::signing::SigningKey;
use crate::keys::token::{self, Role};

/// Sends each of the requests (a method, a path and an optional token) to the entry, and returns its answers; a
/// function answers with the path of its folder.
fn ask(fixture: &ProjectFixture, verify: bool, requests: &Value) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let entry = folder.path().join("index.mjs");
    std::fs::write(&entry, include_str!("main.mjs")).unwrap();
    let stage = folder.path().join("stage.mjs");
    let script = format!(
        r"
        let handler;
        globalThis.Deno = {{
          env: {{ get: (name) => process.env[name], toObject: () => ({{ ...process.env }}) }},
          serve: (given) => {{ handler = given; }},
        }};
        globalThis.EdgeRuntime = {{ userWorkers: {{
          create: async ({{ servicePath, envVars }}) => {{
            if (!envVars.some(([name]) => name === 'VERIFY_JWT')) throw new Error('no environment');
            if (servicePath.endsWith('/broken')) throw new Error('it is broken');
            return {{ fetch: async () => new Response(servicePath) }};
          }},
        }} }};
        await import({entry:?});
        for (const [method, path, token] of {requests}) {{
          const headers = token ? {{ authorization: token }} : {{}};
          const answer = await handler(new Request('http://functions:9000' + path, {{ method, headers }}));
          console.log(answer.status + ' ' + (await answer.text()));
        }}
        "
    );
    std::fs::write(&stage, script).unwrap();
    let keys = &fixture.keys;
    let output = Command::new("node")
        .arg(&stage)
        .env("SUPABASE_JWKS", keys.get(key::JWKS).unwrap().expose_secret())
        .env("VERIFY_JWT", verify.to_string())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_request_needs_a_token_of_the_projects() {
    let fixture = fixture(|_| {});
    let (keys, now) = (&fixture.keys, Timestamp::now());
    let bearer = |token: &SecretString| format!("Bearer {}", token.expose_secret());
    let secret = keys.get(key::JWT_SECRET).unwrap();
    let pair = SigningKey::parse(keys.get(key::SIGNING).unwrap().expose_secret()).unwrap();
    let anon = bearer(&token::symmetric(secret, Role::Anon, now));
    let signed = bearer(&token::asymmetric(&pair, Role::Service, now).unwrap());
    let other = "another-secret-another-secret-another".to_owned().into();
    let stranger = bearer(&token::symmetric(&other, Role::Service, now));
    // The header and the payload of one token, with the signature of another.
    let (_, signature) = signed.rsplit_once('.').unwrap();
    let forged = format!("{}.{signature}", anon.rsplit_once('.').unwrap().0);
    // The keys of the test project have expired.
    let expired = bearer(keys.get(key::ANON).unwrap());
    let requests = json!([
        ["GET", "/hello/world", anon],
        ["POST", "/hello", signed],
        ["OPTIONS", "/hello"],
        ["GET", "/_internal/health"],
        ["GET", "/hello"],
        ["GET", "/hello", "Basic x"],
        ["GET", "/hello", stranger],
        ["GET", "/hello", forged],
        ["GET", "/hello", expired],
        ["GET", "/hello", "Bearer a.b.c"],
        ["GET", "/", anon],
        ["GET", "/..%2fmain", anon],
        ["GET", "/broken", anon],
    ]);
    let answers = ask(&fixture, true, &requests);
    let statuses: Vec<&str> = answers.iter().map(|answer| &answer[..3]).collect();
    assert_eq!(
        statuses,
        [
            "200", "200", "200", "200", "401", "401", "401", "401", "401", "401", "400", "400", "500"
        ],
        "{answers:#?}"
    );
    assert_eq!(answers[0], "200 /home/deno/functions/hello");
    assert!(answers[12].contains("it is broken"));
}

#[test]
fn where_nothing_is_checked_anybody_passes() {
    let answers = ask(&fixture(|_| {}), false, &json!([["GET", "/hello"]]));
    assert_eq!(answers, ["200 /home/deno/functions/hello"]);
}

#[test]
fn each_file_of_a_config_map_is_a_function() {
    let mut fixture = fixture(|spec| spec["functions"] = json!({"source": {"configMap": {"name": "code"}}}));
    let files = [("hello.ts", "1"), ("README.md", "2"), ("bye.mjs", "3")];
    let files = files.map(|(name, text)| (name.to_owned(), text.to_owned()));
    fixture.config.insert("code".into(), files.into());
    assert_eq!(
        items("code", &fixture.project()),
        [
            json!({"key": "bye.mjs", "path": "bye/index.mjs"}),
            json!({"key": "hello.ts", "path": "hello/index.ts"}),
        ]
    );
    let hash = |fixture: &ProjectFixture| {
        let project = fixture.project();
        let functions = fixture.spec.functions.as_ref().unwrap();
        let deployment = super::super::deployment(&COMPONENT, &functions.options, &project);
        deployment["spec"]["template"]["metadata"]["annotations"]["supabase.strrl.dev/config-hash"].clone()
    };
    let before = hash(&fixture);
    fixture
        .config
        .get_mut("code")
        .unwrap()
        .insert("hello.ts".into(), "new".into());
    assert_ne!(hash(&fixture), before);
}
