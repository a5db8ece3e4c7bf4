//! A complete Supabase, with its own database and bucket. Its database is really initialised and its keys are real; its
//! pods are simulated, and the output says so.

use kube::core::ApiResource;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use stanchion_api::SupabaseProject;
use stanchion_api::supabase::condition;
use stanchion_local::s3::REGION;

use super::super::servers::{ACCESS_KEY, BUCKET, Servers};
use super::fact::{Fact, Source};
use super::{Example, Hint, Kind, Logins, login_secret, secret};

/// The Secret with the administrator's login.
const LOGIN: &str = "shop-database";
/// The database of the example.
const DATABASE: &str = "shop";

pub(super) const EXAMPLE: Example = Example {
    controller: "supabase",
    title: "A Supabase (its database and keys are real, its pods are simulated)",
    database: DATABASE,
    content: &[],
    kinds: &[Kind {
        resource: || ApiResource::erase::<SupabaseProject>(&()),
        steps: &[
            condition::POSTGRESQL_CONNECTED,
            condition::S3_CONNECTED,
            condition::SECRETS_READY,
            condition::NETWORK_READY,
            "KongReady",
            "AuthReady",
            "PostgRESTReady",
            "RealtimeReady",
            "StorageReady",
            "MetaReady",
            "StudioReady",
            condition::READY,
        ],
    }],
    prerequisites,
    objects: include_str!("../../../../../examples/sandbox/supabaseproject.yaml"),
    others: None,
    facts: &[
        Fact {
            what: "API and, at /, dashboard (in a cluster; no pod runs here, so nothing listens there)",
            source: Source::Field {
                resource: || ApiResource::erase::<SupabaseProject>(&()),
                name: "shop",
                path: "/status/endpoints/api",
            },
        },
        Fact {
            what: "anon key, decoded",
            source: Source::Claims {
                secret: "shop-jwt",
                key: "anon-key",
            },
        },
    ],
    logins: &[LOGIN],
    guide,
};

fn prerequisites(servers: &Servers) -> Vec<Value> {
    let storage = &servers.storage;
    vec![
        login_secret(LOGIN, DATABASE, servers, &[("database", DATABASE)]),
        secret(
            "shop-storage",
            &json!({
                "endpoint": storage.endpoint(), "region": REGION, "bucket": BUCKET,
                "accessKeyId": ACCESS_KEY, "secretAccessKey": storage.secret().expose_secret(),
            }),
        ),
    ]
}

fn guide(logins: &Logins) -> Vec<Hint> {
    let hint = |why, line| Hint { why, line };
    vec![
        hint("what there is", "kubectl get sbp,deployments".to_owned()),
        hint(
            "the steps that ran in its database",
            format!("{} -c 'TABLE _stanchion.steps'", logins.psql(LOGIN)),
        ),
        hint(
            "delete a Deployment: the operator creates it again",
            "kubectl delete deployment shop-auth".to_owned(),
        ),
        hint(
            "set an image that does not exist: the status says what is wrong",
            r#"kubectl patch sbp shop --type=merge -p '{"spec":{"studio":{"image":"no-such-image:1"}}}'"#
                .to_owned(),
        ),
        hint(
            "and take it back",
            r#"kubectl patch sbp shop --type=merge -p '{"spec":{"studio":{"image":null}}}'"#.to_owned(),
        ),
    ]
}
