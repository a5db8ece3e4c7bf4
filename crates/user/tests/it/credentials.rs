//! The credentials Secret: its contents work as they are, and Secrets of others stay untouched.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::json;
use stanchion_testkit::wait;
use tokio_postgres::NoTls;

use super::test_env::{TestEnv, WAIT_TIMEOUT, any, condition, role_name};

async fn connects(uri: &str) -> Result<String, tokio_postgres::Error> {
    let (client, connection) = uri.parse::<tokio_postgres::Config>()?.connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client.query_one("SELECT current_user::text", &[]).await?.get(0))
}

/// The pairs of a `key=value;` string, whose values may be in double quotes.
fn words(dotnet: &str) -> BTreeMap<String, String> {
    let mut words = BTreeMap::new();
    let mut rest = dotnet;
    while let Some((key, value)) = rest.split_once('=') {
        let (value, after) = match value.strip_prefix('"') {
            Some(quoted) => {
                let (text, after) = quoted.rsplit_once('"').unwrap();
                let end = text
                    .find("\";")
                    .map_or((text, after), |end| (&text[..end], &quoted[end + 1..]));
                (end.0.replace("\"\"", "\""), end.1.trim_start_matches(';'))
            }
            None => match value.split_once(';') {
                Some((value, after)) => (value.to_owned(), after),
                None => (value.to_owned(), ""),
            },
        };
        words.insert(key.to_owned(), value);
        rest = after;
    }
    words
}

/// A25, C10: every format logs in as it is; labels, type and template are as requested; the Secret is recreated,
/// re-rendered, renamed and garbage-collected.
#[tokio::test]
async fn every_form_logs_in() {
    let env = TestEnv::new(any()).await;
    let (role, _operator) = (role_name(), env.operator().await);
    let hostile = r#"p@ss:w/rd#%20 'q"=;\&?é"#;
    let database = env.database.name().to_owned();
    env.password("alice", hostile).await;
    let port = env.database.server().port();
    let endpoint = json!({ "host": "127.0.0.1", "port": port });
    env.instance(
        "main",
        json!({ "endpoints": { "pooler": endpoint, "replica": endpoint } }),
    )
    .await;
    let request = |label: &str, name: &str| {
        json!({
            "instanceRef": { "name": "main" },
            "credentialsSecret": {
                "name": name, "type": "kubernetes.io/basic-auth", "labels": { "app": label }, "annotations": { "note": "x" },
                "keys": ["libpq", "uri", "jdbc", "dotnet", "pgpass", "pooler", "replica"],
                "params": { "application_name": "the app" },
                "template": {
                    "POSTGRES_URL": "postgres://{{ .Username | urlquery }}:{{ .Password | urlquery }}@{{ .Host }}:{{ .Port }}/{{ .Database }}",
                    "LABEL": label,
                },
            },
        })
    };
    env.user("alice", &role, request("one", "out")).await;
    env.ready("alice").await;
    let values = env.values("out").await;
    for key in ["uri", "pooler-uri", "replica-uri", "POSTGRES_URL"] {
        assert_eq!(connects(&values[key]).await.unwrap(), role, "{key}");
    }
    let libpq = format!(
        "host={} port={} user={} dbname={}",
        values["PGHOST"], values["PGPORT"], values["PGUSER"], values["PGDATABASE"]
    );
    let mut config: tokio_postgres::Config = libpq.parse().unwrap();
    config.password(&values["PGPASSWORD"]);
    let (_client, _connection) = config.connect(NoTls).await.unwrap();
    assert_eq!(values["PGSSLMODE"], "prefer");
    let dotnet = words(&values["dotnet"]);
    assert_eq!(
        (&dotnet["Username"], &dotnet["Password"]),
        (&role, &hostile.to_owned())
    );
    assert!(values["jdbc-uri"].starts_with(&format!(
        "jdbc:postgresql://127.0.0.1:{port}/{database}?user={role}&password=p%40ss"
    )));
    let line = values["pgpass"].lines().next().unwrap();
    let escaped = hostile.replace('\\', r"\\").replace(':', r"\:");
    assert_eq!(line, format!("127.0.0.1:{port}:{database}:{role}:{escaped}"));
    assert_eq!(
        (values["username"].as_str(), values["dbname"].as_str()),
        (role.as_str(), database.as_str())
    );

    let secret = env.secrets().get("out").await.unwrap();
    assert_eq!(secret.type_.as_deref(), Some("kubernetes.io/basic-auth"));
    assert_eq!(secret.labels()["app"], "one");
    assert_eq!(secret.annotations()["note"], "x");
    let owner = &secret.owner_references()[0];
    assert_eq!(
        (owner.kind.as_str(), owner.controller),
        ("PostgresUser", Some(true))
    );

    // Re-rendered on any change of its inputs.
    env.user("alice", &role, request("two", "out")).await;
    wait::until(&env.secrets(), "out", WAIT_TIMEOUT, |secret: &Secret| {
        secret.labels().get("app").is_some_and(|label| label == "two")
    })
    .await;
    assert_eq!(env.values("out").await["LABEL"], "two");
    env.password("alice", "plain").await;
    wait::eventually(WAIT_TIMEOUT, "the new password", async || {
        env.values("out").await["password"] == "plain"
    })
    .await;
    env.secrets()
        .delete("out", &DeleteParams::default())
        .await
        .unwrap();
    let made = wait::until(&env.secrets(), "out", WAIT_TIMEOUT, |_: &Secret| true).await;
    assert_ne!(made.uid(), secret.uid());

    // Under another name the first one is deleted.
    env.user("alice", &role, request("two", "moved")).await;
    env.ready("alice").await;
    assert_eq!(connects(&env.values("moved").await["uri"]).await.unwrap(), role);
    wait::gone(&env.secrets(), "out", WAIT_TIMEOUT).await;
    env.delete("alice").await;
    env.gone("alice").await;
    wait::gone(&env.secrets(), "moved", WAIT_TIMEOUT).await;
}

/// A Secret of somebody else is never written, with or without a password.
#[tokio::test]
async fn a_foreign_secret_is_left_alone() {
    let env = TestEnv::new(any()).await;
    let (role, operator) = (role_name(), env.operator().await);
    env.secret("theirs", json!({ "key": "value" })).await;
    let before = env.secrets().get("theirs").await.unwrap();
    let request = json!({
        "passwordSecretRef": null, "password": { "generate": {} }, "credentialsSecret": { "name": "theirs" },
    });
    env.user("alice", &role, request).await;
    let user = env.condition("alice", "Ready", "False", "SecretConflict").await;
    assert_eq!(condition(&user, "PasswordSynced"), None);
    assert!(!env.has_role(&role).await);
    env.look_again(&operator, "alice").await;
    assert_eq!(env.secrets().get("theirs").await.unwrap(), before);
    env.delete("alice").await;
    env.gone("alice").await;
    assert_eq!(env.secrets().get("theirs").await.unwrap(), before);
}

/// A Secret that was renamed in a failed reconcile does not stay, with the password in it, when it is renamed again.
#[tokio::test]
async fn no_renamed_secret_is_forgotten() {
    let env = TestEnv::new(any()).await;
    let (role, _operator) = (role_name(), env.operator().await);
    let request = |secret: &str, memory: &str| {
        json!({
            "passwordSecretRef": null, "password": { "generate": {} }, "credentialsSecret": { "name": secret },
            "role": { "parameters": { "work_mem": memory } },
        })
    };
    env.user("alice", &role, request("first", "1MB")).await;
    env.ready("alice").await;
    env.user("alice", &role, request("second", "lots")).await;
    env.condition("alice", "Ready", "False", "InvalidSpec").await;
    assert!(env.secrets().get_opt("second").await.unwrap().is_some());
    env.user("alice", &role, request("third", "1MB")).await;
    let user = env.ready("alice").await;
    assert_eq!(user.status.unwrap().stale_secrets, [] as [String; 0]);
    for gone in ["first", "second"] {
        assert!(env.secrets().get_opt(gone).await.unwrap().is_none(), "{gone}");
    }
    let secret = env.values("third").await;
    assert!(env.logs_in(&role, &secret["password"]).await);
}
