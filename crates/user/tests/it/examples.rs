//! Every file of `examples/postgresuser` becomes Ready, with the default rules and what the file itself asks for.

use kube::{Api, ResourceExt as _};
use stanchion_api::{PostgresInstance, PostgresUser};
use stanchion_postgres::ConnectionConfig;
use stanchion_testkit::postgres::{Postgres, Tls, Version, versions};
use stanchion_user::Openings;

use crate::test_env::{How, TestEnv, any, condition};

/// What the examples expect on their server: an administrator, and what people created.
const GIVEN: &str = "\
CREATE ROLE stanchion LOGIN SUPERUSER PASSWORD 'change-me'; \
CREATE ROLE importer; CREATE ROLE billing_team; CREATE ROLE \"test-db-group\"; \
CREATE DATABASE app; CREATE DATABASE orders; CREATE DATABASE warehouse; CREATE DATABASE \"test-db\"";

/// The namespaces in the examples.
const NAMESPACES: [&str; 4] = ["databases", "shop", "billing", "app"];

#[tokio::test]
async fn every_example_becomes_ready() {
    // The newest: full.yaml needs 16.
    let version = *versions().last().unwrap();
    let server = Postgres::builder(version).tls(Tls::default()).start().await;
    for statement in GIVEN.split("; ") {
        server.execute("postgres", statement).await;
    }
    server.execute("warehouse", "CREATE SCHEMA stock").await;
    let env = TestEnv::new(any()).await;
    let mut names = Vec::new();
    for namespace in NAMESPACES {
        names.push((namespace, env.cluster.namespace(namespace).await));
    }
    // The file from-movetokube.yaml asks for this flag; the others need none.
    let openings = Openings {
        roles: vec!["*-group".into()],
        ..Openings::default()
    };
    let _operator = env.start(How {
        admin: ConnectionConfig::parse(&server.url("postgres").into()).unwrap(),
        openings,
        more: names.iter().map(|(_, name)| name.clone()).collect(),
        ..env.how().await
    });
    let databases = &names[0].1;
    let authority = server.authority().unwrap().pem();
    let secret = serde_json::json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "main-tls", "namespace": databases },
        "stringData": { "ca.crt": authority },
    });
    env.cluster.apply(&secret.to_string(), databases).await;

    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/postgresuser");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    // First the instance: an operator of some namespaces does not see at once that another one has got it.
    files.sort_by_key(|path| !path.ends_with("instance-tls.yaml"));
    let mut users = Vec::new();
    for path in files {
        let mut text = std::fs::read_to_string(path).unwrap();
        for (example, own) in &names {
            text = text
                .replace(&format!("namespace: {example}\n"), &format!("namespace: {own}\n"))
                .replace(
                    &format!("namespaces: [{example}]"),
                    &format!("namespaces: [{own}]"),
                );
        }
        let (shop, billing) = (&names[1].1, &names[2].1);
        let text = text
            .replace("names: [shop, billing]", &format!("names: [{shop}, {billing}]"))
            .replace("host: main.databases.svc", "host: localhost")
            .replace(
                "      set: false\n",
                if version < Version::V16 {
                    ""
                } else {
                    "      set: false\n"
                },
            )
            .replace("port: 5432", &format!("port: {}", server.port()));
        for object in env.cluster.apply(&text, &env.namespace).await {
            if object
                .types
                .as_ref()
                .is_some_and(|types| types.kind == "PostgresUser")
            {
                users.push((object.namespace().unwrap(), object.name_any()));
            }
        }
    }
    assert!(users.len() >= 5, "{users:?}");
    let connected = |instance: &PostgresInstance| {
        let conditions = instance.status.iter().flat_map(|status| &status.conditions);
        conditions.into_iter().any(|condition| {
            condition.status == "True" && condition.message.contains("the server was verified")
        })
    };
    let instances = Api::namespaced(env.client.clone(), databases);
    env.wait().until(&instances, "main", connected).await;
    for (namespace, name) in users {
        let api: Api<PostgresUser> = Api::namespaced(env.client.clone(), &namespace);
        let is_ready =
            |user: &PostgresUser| condition(user, "Ready") == Some(("True".into(), "UserCreated".into()));
        env.wait().until(&api, &name, is_ready).await;
    }
}
