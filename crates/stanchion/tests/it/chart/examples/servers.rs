//! The servers behind the names in the examples.
//!
//! No name of an example resolves on a test machine. So hosts, ports, endpoints, regions and certificates are replaced by
//! those of local servers, and a bucket is in the path of its URL. Everything else is as in the files. What the comments
//! of the examples require (databases, roles, Secrets of other people) is created here.

use std::path::PathBuf;

use serde_json::{Map, Value, json};
use stanchion_gitlab::storage::Buckets;
use stanchion_testkit::cluster::Cluster;
use stanchion_testkit::postgres::{ADMIN, ADMIN_PASSWORD, Postgres, Tls, Version, versions};
use stanchion_testkit::s3::S3;
use stanchion_testkit::scratch::Scratch;

/// Every password and access key in the examples.
const PASSWORD: &str = "change-me";
/// The hosts of PostgreSQL servers in the examples.
const HOSTS: [&str; 5] = [
    "db.internal",
    "main.databases.svc",
    "postgres.databases.svc",
    "postgres.example.com",
    "shop-pg-rw",
];
const HERE: &str = "127.0.0.1";

/// The local servers.
pub(super) struct ExampleServers {
    /// The operator's default server.
    pub(super) default: Postgres,
    /// The `PostgresInstance` `main`.
    main: Postgres,
    /// The server of `examples/sandbox`.
    pub(super) demo: Postgres,
    /// The servers of all policies and of GitLab.
    policies: Postgres,
    /// One for each `SupabaseProject`: its roles belong to the whole server.
    projects: Vec<(String, Postgres)>,
    s3: S3,
    scratch: Scratch,
}

async fn server(version: Version) -> Postgres {
    let tls = Tls {
        required: false,
        ..Tls::default()
    };
    Postgres::builder(version)
        .setting("wal_level", "logical")
        .tls(tls)
        .start()
        .await
}

impl ExampleServers {
    /// Starts the servers for these files: `main` in the newest version, because an example needs 16, and the others in
    /// the oldest.
    pub(super) async fn start(files: &[(String, String)]) -> Self {
        let versions = versions();
        let (oldest, newest) = (versions[0], versions[versions.len() - 1]);
        let mut projects = Vec::new();
        for (name, _) in files {
            if name.starts_with("supabaseproject-") {
                projects.push((name.clone(), server(oldest).await));
            }
        }
        let servers = Self {
            default: server(oldest).await,
            main: server(newest).await,
            demo: server(oldest).await,
            policies: server(oldest).await,
            projects,
            s3: S3::start_with_key(PASSWORD, PASSWORD).await,
            scratch: Scratch::new("stanchion-examples-").unwrap(),
        };
        servers.fill().await;
        servers
    }

    /// The databases, schemas and roles that exist before the examples.
    async fn fill(&self) {
        let rows: [(&Postgres, &str, &str); 13] = [
            (&self.default, "app", ""),
            (&self.default, "test-db", r#"CREATE ROLE "test-db-group""#),
            (&self.main, "orders", ""),
            (
                &self.main,
                "warehouse",
                "CREATE SCHEMA stock; CREATE ROLE importer; CREATE ROLE billing_team; \
                 CREATE ROLE stanchion SUPERUSER LOGIN PASSWORD 'change-me'",
            ),
            (
                &self.demo,
                "app",
                "CREATE SCHEMA sales; CREATE TABLE sales.orders (id int)",
            ),
            (&self.demo, "stock", "CREATE SCHEMA warehouse"),
            (&self.demo, "shop", ""),
            (
                &self.policies,
                "shop",
                "CREATE SCHEMA inventory; CREATE ROLE admin SUPERUSER LOGIN PASSWORD 'change-me'",
            ),
            (&self.policies, "billing", ""),
            (
                &self.policies,
                "crm",
                "CREATE ROLE crm_admin CREATEROLE; CREATE ROLE operator LOGIN PASSWORD 'change-me' IN ROLE crm_admin",
            ),
            (&self.policies, "orders", "CREATE SCHEMA orders"),
            (&self.policies, "invoices", "CREATE SCHEMA invoices"),
            (&self.policies, "gitlabhq_production", ""),
        ];
        for (server, database, sql) in rows {
            server
                .execute("postgres", &format!("CREATE DATABASE \"{database}\""))
                .await;
            server.execute(database, sql).await;
        }
        for (name, server) in &self.projects {
            let database = if name.ends_with("-preview") {
                "preview"
            } else {
                "shop"
            };
            server
                .execute("postgres", &format!("CREATE DATABASE {database}"))
                .await;
        }
        for bucket in ["shop-files", "preview-files"] {
            self.s3.create_bucket(bucket);
        }
    }

    /// The server of an example.
    fn server(&self, file: &str) -> &Postgres {
        let project = self.projects.iter().find(|(name, _)| name == file);
        match project {
            Some((_, server)) => server,
            None if file.starts_with("sandbox-") => &self.demo,
            None if file.starts_with("postgresuser-") => &self.main,
            None => &self.policies,
        }
    }

    /// A file with the authorities of all servers, for `SSL_CERT_FILE`: `sslmode=verify-full` without a CA.
    pub(super) fn authorities(&self) -> PathBuf {
        let all = [&self.default, &self.main, &self.demo, &self.policies];
        let projects = self.projects.iter().map(|(_, server)| server);
        let pems: Vec<&str> = all.into_iter().chain(projects).map(authority).collect();
        let file = self.scratch.path().join("authorities.pem");
        std::fs::write(&file, pems.join("\n")).unwrap();
        file
    }

    /// What the comments of an example require in its namespace.
    pub(super) fn required(&self, file: &str) -> Vec<Value> {
        let server = self.server(file);
        let ca = |name: &str| secret(name, &json!({ "ca.crt": authority(server) }));
        let url = |database: &str| json!({ "DATABASE_URL": server.url(database) });
        let login = |name: &str, database: &str| {
            let values = json!({
                "host": HERE, "port": server.port().to_string(), "database": database,
                "username": ADMIN, "password": ADMIN_PASSWORD, "uri": server.url(database),
            });
            secret(name, &values)
        };
        match file {
            "postgresuser-instance-tls" => {
                let mut tls = ca("main-tls");
                tls["metadata"]["namespace"] = json!("databases");
                vec![tls]
            }
            "postgrespolicy-approval" => vec![
                secret("billing-database", &url("billing")),
                secret("billing-app", &json!({ "password": PASSWORD })),
            ],
            "postgrespolicy-parameters" => {
                vec![ca("db-ca"), secret("crm-login", &json!({ "password": PASSWORD }))]
            }
            "postgrespolicy-shared-profiles" => vec![
                secret("orders-database", &url("orders")),
                secret("invoices-database", &url("invoices")),
            ],
            "supabaseproject-cloudnativepg" => vec![ca("shop-pg-ca")],
            "supabaseproject-minimal" | "supabaseproject-minio" | "supabaseproject-preview" => {
                vec![ca("postgres-ca")]
            }
            "sandbox-postgresuser" => vec![
                login("postgres-admin", "app"),
                json!({
                    "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresInstance",
                    "metadata": { "name": "local" },
                    "spec": {
                        "host": HERE, "port": server.port(), "database": "postgres",
                        "adminSecretRef": { "name": "postgres-admin" },
                    },
                }),
            ],
            "sandbox-postgrespolicy" => vec![login("stock-database", "stock")],
            "sandbox-supabaseproject" => vec![
                login("shop-database", "shop"),
                secret("shop-storage", &self.bucket("bucket", "shop-files")),
            ],
            "sandbox-gitlabinstance" => {
                let mut buckets = self.bucket("bucket.registry", "registry");
                for class in Buckets::NAMES {
                    buckets[format!("bucket.{class}")] = json!(class);
                }
                buckets["accessKey"] = json!(PASSWORD);
                buckets["secretKey"] = json!(PASSWORD);
                vec![
                    login("code-database", "gitlabhq_production"),
                    secret("code-storage", &buckets),
                ]
            }
            _ => Vec::new(),
        }
    }

    fn bucket(&self, key: &str, name: &str) -> Value {
        json!({
            "endpoint": self.s3.endpoint(), "region": S3::REGION, key: name,
            "accessKeyId": PASSWORD, "secretAccessKey": PASSWORD,
        })
    }

    /// An object of an example, with the addresses of the local servers.
    pub(super) fn localise(&self, file: &str, object: &mut Value) {
        let server = self.server(file);
        match object {
            Value::Object(map) => {
                self.localise_map(server, map);
                for value in map.values_mut() {
                    self.localise(file, value);
                }
            }
            Value::Array(values) => values.iter_mut().for_each(|value| self.localise(file, value)),
            _ => {}
        }
    }

    fn localise_map(&self, server: &Postgres, map: &mut Map<String, Value>) {
        let is = |map: &Map<String, Value>, key: &str, text: &str| map.get(key) == Some(&json!(text));
        let host = map.get("host").and_then(Value::as_str).unwrap_or_default();
        if HOSTS.contains(&host) {
            map.insert("host".to_owned(), json!(HERE));
            let port = match map.get("port") {
                Some(Value::String(_)) => json!(server.port().to_string()),
                _ => json!(server.port()),
            };
            map.insert("port".to_owned(), port);
            if is(map, "username", ADMIN) {
                map.insert("password".to_owned(), json!(ADMIN_PASSWORD));
            }
        }
        if map.contains_key("endpoint") {
            map.insert("endpoint".to_owned(), json!(self.s3.endpoint()));
            map.insert("region".to_owned(), json!(S3::REGION));
        }
        if map.contains_key("forcePathStyle") {
            map.insert("forcePathStyle".to_owned(), json!(true));
        }
        if let Some(Value::String(pem)) = map.get_mut("ca.crt") {
            authority(server).clone_into(pem);
        }
        if let Some(Value::String(url)) = map.get_mut("DATABASE_URL") {
            *url = url.replace("db.internal:5432", &format!("{HERE}:{}", server.port()));
        }
    }

    /// Whether the password in this Secret opens the database of the demo.
    pub(super) async fn logs_in(&self, cluster: &Cluster, namespace: &str, name: &str) -> Result<(), String> {
        let secrets: kube::Api<k8s_openapi::api::core::v1::Secret> =
            kube::Api::namespaced(cluster.client().await, namespace);
        let secret = secrets.get(name).await.map_err(|error| error.to_string())?;
        let data = secret.data.unwrap_or_default();
        let text = |key: &str| String::from_utf8_lossy(&data[key].0).into_owned();
        let session = self
            .demo
            .connect(&text("username"), &text("password"), "app")
            .await;
        session.map(|_| ()).map_err(|error| error.to_string())
    }
}

fn authority(server: &Postgres) -> &str {
    server.authority().unwrap().pem()
}

fn secret(name: &str, values: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name }, "stringData": values })
}
