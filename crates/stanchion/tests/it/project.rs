//! A `SupabaseProject` and the binary, with exactly the permissions of `stanchion rbac`.

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client, Config};
use serde_json::{Value, json};
use stanchion_api::supabase::SupabaseProject;
use stanchion_testkit::cluster::{Cluster, Grant, path_rule};
use stanchion_testkit::port;
use stanchion_testkit::postgres::{ADMIN, ADMIN_PASSWORD, Postgres, any};
use stanchion_testkit::s3::S3;

use crate::operator::{Operator, stdout};

const ACCOUNT: &str = "stanchion";

fn secret(name: &str, values: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name }, "stringData": values })
}

/// The project and its prerequisites, in the order of the examples.
fn manifest(server: &Postgres, s3: &S3) -> String {
    let database = json!({
        "host": "127.0.0.1", "port": server.port().to_string(), "database": "postgres",
        "username": ADMIN, "password": ADMIN_PASSWORD,
    });
    let storage = json!({
        "endpoint": s3.endpoint(), "region": S3::REGION, "bucket": s3.bucket(),
        "accessKeyId": s3.access_key(), "secretAccessKey": s3.secret_key(),
    });
    let project = json!({
        "apiVersion": "supabase.strrl.dev/v1alpha1", "kind": "SupabaseProject", "metadata": { "name": "shop" },
        "spec": {
            "projectId": "shop", "database": { "secretRef": { "name": "db" }, "sslMode": "disable" },
            "storage": { "secretRef": { "name": "s3" } },
        },
    });
    let all = [secret("db", &database), secret("s3", &storage), project];
    all.map(|object| object.to_string()).join("\n---\n")
}

/// A21 of docs/supabase/checks.md.
#[tokio::test]
async fn a21_a_project_runs_with_the_least_permissions_and_the_process_says_how_it_is() {
    let cluster = Cluster::shared().await;
    cluster.install_crds(stanchion_api::crds()).await;
    let namespace = cluster.namespace("project").await;
    let account = format!("{namespace}/{ACCOUNT}");
    let scope = ["--namespace", namespace.as_str()];
    let rights = stdout(["rbac", "--service-account", &account].iter().chain(&scope));
    cluster.apply(&rights, &namespace).await;
    let user = cluster.log_in(&namespace, ACCOUNT).await;
    let (server, s3) = (Postgres::start(any()).await, S3::start().await);
    let audit = cluster.audit();
    let https = format!("127.0.0.1:{}", port::free());
    let url = format!("https://{https}");
    let arguments = [
        "--leader-elect",
        "--operator-namespace",
        &namespace,
        "--webhook-addr",
        &https,
        "--webhook-url",
        &url,
    ];
    let operator = Operator::start(user.kubeconfig_path(), &[&arguments[..], &scope[..]].concat());
    operator.ready().await;

    cluster.apply(&manifest(&server, &s3), &namespace).await;
    let client = cluster.client().await;
    let projects: Api<SupabaseProject> = Api::namespaced(client.clone(), &namespace);
    operator
        .wait_for("the project to run", async || {
            let project = projects.get("shop").await.map_err(|error| error.to_string())?;
            let phase = serde_json::to_value(project.status).unwrap()["phase"].clone();
            if phase == "Running" {
                Ok(())
            } else {
                Err(phase.to_string())
            }
        })
        .await;

    // When the API server ends a watch, the operator is not ready for a moment.
    operator.ready().await;
    for path in ["/healthz", "/livez"] {
        let (code, text) = operator.get("health", path).await.unwrap();
        assert_eq!(code, 200, "{path}: {text}\n{}", operator.log());
    }
    let (code, metrics) = operator.get("metrics", "/metrics").await.unwrap();
    assert_eq!(code, 200);
    assert!(metrics.contains(r#"controller_runtime_reconcile_total{controller="supabase""#));
    // From outside they need a token whose owner may read them; the operator's own may not.
    let scrape = async |token: &str| {
        let mut config = Config::new(url.parse().unwrap());
        config.accept_invalid_certs = true;
        config.auth_info.token = Some(token.to_owned().into());
        let request = http::Request::get("/metrics").body(Vec::new()).unwrap();
        Client::try_from(config).unwrap().request_text(request).await
    };
    let grants = [Grant::Everywhere(vec![path_rule("/metrics")])];
    let scraper = cluster.user(&namespace, "scraper", &grants).await;
    let metrics = operator
        .wait_for("the scraper to be let in", async || scrape(scraper.token()).await)
        .await;
    assert!(metrics.contains("controller_runtime_reconcile_total"));
    for stranger in ["nobody", user.token()] {
        let refused = scrape(stranger).await;
        assert!(refused.is_err(), "{refused:?}");
    }
    let leases: Api<Lease> = Api::namespaced(client.clone(), &namespace);
    let lease = leases.get("stanchion").await.unwrap();
    assert!(lease.spec.unwrap().holder_identity.is_some());
    // The object's columns contain what the original's `GET /api/projects` returns.
    let table = http::Request::get(format!("{}/shop", projects.resource_url()))
        .header("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(Vec::new())
        .unwrap();
    let columns = client.request_text(table).await.unwrap();
    for word in [
        "Phase",
        "Ready",
        "URL",
        "Running",
        "True",
        "http://shop-kong:8000",
    ] {
        assert!(columns.contains(word), "{columns}");
    }
    let log = operator.log();
    operator.stop().await;
    let forbidden = audit.requests().await.of_user(user.name()).forbidden();
    assert_eq!(forbidden.count(), 0, "{forbidden:#?}\n{log}");
}
