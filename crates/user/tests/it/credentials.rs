//! The credentials Secret: its contents work as they are, and Secrets of others stay untouched.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::json;
use stanchion_testkit::wait;
use tokio_postgres::NoTls;

use super::bed::{Bed, PATIENCE, any, condition, role_name};

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
    let bed = Bed::new(any()).await;
    let (role, _operator) = (role_name(), bed.operator().await);
    let hostile = r#"p@ss:w/rd#%20 'q"=;\&?é"#;
    let database = bed.database.name().to_owned();
    bed.password("alice", hostile).await;
    let port = bed.database.server().port();
    let endpoint = json!({ "host": "127.0.0.1", "port": port });
    bed.instance(
        "main",
        json!({ "endpoints": { "pooler": endpoint, "replica": endpoint } }),
    )
    .await;
    let wish = |label: &str, name: &str| {
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
    bed.user("alice", &role, wish("one", "out")).await;
    bed.ready("alice").await;
    let values = bed.values("out").await;
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

    let secret = bed.secrets().get("out").await.unwrap();
    assert_eq!(secret.type_.as_deref(), Some("kubernetes.io/basic-auth"));
    assert_eq!(secret.labels()["app"], "one");
    assert_eq!(secret.annotations()["note"], "x");
    let owner = &secret.owner_references()[0];
    assert_eq!(
        (owner.kind.as_str(), owner.controller),
        ("PostgresUser", Some(true))
    );

    // Re-rendered on any change of its inputs.
    bed.user("alice", &role, wish("two", "out")).await;
    wait::until(&bed.secrets(), "out", PATIENCE, |secret: &Secret| {
        secret.labels().get("app").is_some_and(|label| label == "two")
    })
    .await;
    assert_eq!(bed.values("out").await["LABEL"], "two");
    bed.password("alice", "plain").await;
    wait::eventually(PATIENCE, "the new password", async || {
        bed.values("out").await["password"] == "plain"
    })
    .await;
    bed.secrets()
        .delete("out", &DeleteParams::default())
        .await
        .unwrap();
    let made = wait::until(&bed.secrets(), "out", PATIENCE, |_: &Secret| true).await;
    assert_ne!(made.uid(), secret.uid());

    // Under another name the first one is deleted.
    bed.user("alice", &role, wish("two", "moved")).await;
    bed.ready("alice").await;
    assert_eq!(connects(&bed.values("moved").await["uri"]).await.unwrap(), role);
    wait::gone(&bed.secrets(), "out", PATIENCE).await;
    bed.delete("alice").await;
    bed.gone("alice").await;
    wait::gone(&bed.secrets(), "moved", PATIENCE).await;
}

/// A Secret of somebody else is never written, with or without a password.
#[tokio::test]
async fn a_foreign_secret_is_left_alone() {
    let bed = Bed::new(any()).await;
    let (role, operator) = (role_name(), bed.operator().await);
    bed.keys("theirs", &[("key", "value")]).await;
    let before = bed.secrets().get("theirs").await.unwrap();
    let wish = json!({
        "passwordSecretRef": null, "password": { "generate": {} }, "credentialsSecret": { "name": "theirs" },
    });
    bed.user("alice", &role, wish).await;
    let user = bed.condition("alice", "Ready", "False", "SecretConflict").await;
    assert_eq!(condition(&user, "PasswordSynced"), None);
    assert!(!bed.has_role(&role).await);
    bed.look_again(&operator, "alice").await;
    assert_eq!(bed.secrets().get("theirs").await.unwrap(), before);
    bed.delete("alice").await;
    bed.gone("alice").await;
    assert_eq!(bed.secrets().get("theirs").await.unwrap(), before);
}

/// A Secret that was renamed in a failed reconcile does not stay, with the password in it, when it is renamed again.
#[tokio::test]
async fn no_renamed_secret_is_forgotten() {
    let bed = Bed::new(any()).await;
    let (role, _operator) = (role_name(), bed.operator().await);
    let wish = |secret: &str, memory: &str| {
        json!({
            "passwordSecretRef": null, "password": { "generate": {} }, "credentialsSecret": { "name": secret },
            "role": { "parameters": { "work_mem": memory } },
        })
    };
    bed.user("alice", &role, wish("first", "1MB")).await;
    bed.ready("alice").await;
    bed.user("alice", &role, wish("second", "lots")).await;
    bed.condition("alice", "Ready", "False", "InvalidSpec").await;
    assert!(bed.secrets().get_opt("second").await.unwrap().is_some());
    bed.user("alice", &role, wish("third", "1MB")).await;
    let user = bed.ready("alice").await;
    assert_eq!(user.status.unwrap().stale_secrets, [] as [String; 0]);
    for gone in ["first", "second"] {
        assert!(bed.secrets().get_opt(gone).await.unwrap().is_none(), "{gone}");
    }
    let secret = bed.values("third").await;
    assert!(bed.logs_in(&role, &secret["password"]).await);
}
