//! Supavisor: pools database connections for clients that open many. It keeps its own tables in the internal database,
//! and reads the verifiers of its clients from the project's database.

use stanchion_api::supabase::image;

use super::{Component, Environment, Extras, Files, Needs, Port, Probe, Probes, Project, Resources};
use crate::database::Login;
use crate::keys::{Generated, names as key};

/// Migrates, registers the tenant, and starts the server.
const START: &str =
    r#"/app/bin/migrate && /app/bin/supavisor eval "$(cat /etc/pooler/tenant.exs)" && exec /app/bin/server"#;

pub(super) const COMPONENT: Component = Component {
    name: "pooler",
    field: "pooler",
    label: "connection-pooler",
    condition: "PoolerReady",
    options: |spec| spec.pooler.as_ref().map(|pooler| &pooler.options),
    image: image::POOLER,
    ports: &[
        Port::service("session", 5432),
        Port::service("transaction", 6543),
        Port::pod("http", 4000),
    ],
    open: true,
    resources: Resources::new(("256Mi", "100m"), ("512Mi", "500m")),
    user: 65534,
    probes: |_| Probes {
        readiness: Probe::Http {
            port: "http",
            path: "/api/health",
        },
        liveness: Probe::Tcp("transaction"),
        start: 300,
    },
    logins: &[Login::Pooler, Login::PoolerAuth],
    keys: &[
        Generated::hex(key::VAULT, 16),
        Generated::hex(key::POOLER_COOKIE, 32),
    ],
    routes: &[],
    needs: |_| Needs::default(),
    environment,
    extras: |_| Extras {
        command: ["/usr/bin/tini", "-s", "-g", "--", "/bin/sh", "-c", START]
            .map(str::to_owned)
            .into(),
        files: Some(Files {
            suffix: "pooler-config",
            path: "/etc/pooler",
            data: vec![("tenant.exs", include_str!("pooler/tenant.exs").to_owned())],
        }),
        ..Extras::default()
    },
};

fn environment(project: &Project<'_>, env: &mut Environment) {
    let (keys, database) = (project.key_secret(), project.database);
    env.set("PORT", "4000");
    env.set("POSTGRES_HOST", database.host.clone());
    env.set("POSTGRES_PORT", database.port.to_string());
    env.set("POSTGRES_DB", database.name.clone());
    env.secret("DB_PASSWORD", &keys, key::password(Login::Pooler));
    env.expanded("DATABASE_URL", project.internal_url("ecto", Login::Pooler));
    env.set("CLUSTER_POSTGRES", "true");
    // Pods find each other by address, and trust every node with the cookie.
    env.field("NODE_IP", "status.podIP");
    env.secret("RELEASE_COOKIE", &keys, key::POOLER_COOKIE);
    env.secret("SECRET_KEY_BASE", &keys, key::SECRET_KEY_BASE);
    env.secret("VAULT_ENC_KEY", &keys, key::VAULT);
    env.secret("API_JWT_SECRET", &keys, key::JWT_SECRET);
    env.secret("METRICS_JWT_SECRET", &keys, key::JWT_SECRET);
    env.set_all(&[("REGION", "local"), ("ERL_AFLAGS", "-proto_dist inet_tcp")]);
    env.set("POOLER_TENANT_ID", project.spec.project_id.clone());
    env.set("POOLER_USER", project.logins.of(Login::PoolerAuth));
    env.secret("POOLER_PASSWORD", &keys, key::password(Login::PoolerAuth));
    if let Some(pooler) = &project.spec.pooler {
        env.set("POOLER_DEFAULT_POOL_SIZE", pooler.default_pool_size.to_string());
        env.set(
            "POOLER_MAX_CLIENT_CONN",
            pooler.max_client_connections.to_string(),
        );
    }
    env.set_all(&[("POOLER_POOL_MODE", "transaction"), ("DB_POOL_SIZE", "5")]);
    let ca = project.ca_file();
    let verify = match (project.encrypts(), &ca) {
        (false, _) => "",
        (true, None) => "none",
        (true, Some(_)) => "peer",
    };
    env.set("POOLER_UPSTREAM_VERIFY", verify);
    if let Some(file) = ca {
        env.set("GLOBAL_UPSTREAM_CA_PATH", file);
    }
}
