//! Logflare: stores logs in the internal database, for the dashboard. A log collector sends them to its Service.

use serde_json::json;
use stanchion_api::SupabaseProjectSpec;
use stanchion_api::supabase::image;

use super::project::CA_VOLUME;
use super::{Component, Environment, Extras, Mount, Needed, Needs, Port, Probes, Project, Resources};
use crate::database::Login;
use crate::keys::{Generated, names as key};

/// Its schema in the internal database.
const SCHEMA: &str = "_analytics";
/// Its working directory, where it expects certificates under fixed names.
const HOME: &str = "/opt/app/rel/logflare/bin";
/// Its writable directory.
const SCRATCH: &str = "/tmp";

pub(super) const COMPONENT: Component = Component {
    name: "analytics",
    field: "analytics",
    label: "analytics",
    condition: "AnalyticsReady",
    options: |spec| spec.analytics.as_ref().map(|analytics| &analytics.options),
    image: image::ANALYTICS,
    ports: &[Port::service("http", 4000)],
    open: false,
    resources: Resources::new(("512Mi", "100m"), ("1Gi", "1")),
    user: 65534,
    probes: |_| Probes::http("http", "/health", 300),
    logins: &[Login::Analytics],
    keys: &[
        Generated::base64(key::LOGS_PUBLIC, 24),
        Generated::base64(key::LOGS_PRIVATE, 24),
        Generated::hex(key::ANALYTICS_COOKIE, 32),
    ],
    // Upstream has removed its routes: only pods of the project read and write logs.
    routes: &[],
    needs: |spec| Needs {
        secrets: certificate(spec).into_iter().collect(),
        ..Needs::default()
    },
    environment,
    extras,
};

/// The client certificate, if it has one.
fn certificate(spec: &SupabaseProjectSpec) -> Option<Needed> {
    let analytics = spec.analytics.as_ref()?;
    let name = analytics.client_certificate_secret_ref.as_ref()?.name.clone();
    Some(Needed {
        what: "analytics client certificate",
        name: name.filter(|name| !name.is_empty())?,
        keys: &["tls.crt", "tls.key"],
    })
}

fn environment(project: &Project<'_>, env: &mut Environment) {
    let (keys, database) = (project.key_secret(), project.database);
    env.set("LOGFLARE_NODE_HOST", "127.0.0.1");
    env.secret("RELEASE_COOKIE", &keys, key::ANALYTICS_COOKIE);
    env.set("RELEASE_TMP", SCRATCH);
    env.set("DB_USERNAME", project.logins.of(Login::Analytics));
    env.set("DB_DATABASE", project.logins.internal_database());
    env.set("DB_HOSTNAME", database.host.clone());
    env.set("DB_PORT", database.port.to_string());
    env.secret("DB_PASSWORD", &keys, key::password(Login::Analytics));
    env.set("DB_SCHEMA", SCHEMA);
    env.set("DB_POOL_SIZE", project.spec.database.max_connections.to_string());
    env.set("DB_SSL", project.encrypts().to_string());
    env.set_all(&[
        ("LOGFLARE_SINGLE_TENANT", "true"),
        ("LOGFLARE_SUPABASE_MODE", "true"),
    ]);
    env.secret("LOGFLARE_PUBLIC_ACCESS_TOKEN", &keys, key::LOGS_PUBLIC);
    env.secret("LOGFLARE_PRIVATE_ACCESS_TOKEN", &keys, key::LOGS_PRIVATE);
    env.set("LOGFLARE_FEATURE_FLAG_OVERRIDE", "multibackend=true");
    env.expanded(
        "POSTGRES_BACKEND_URL",
        project.internal_url("postgresql", Login::Analytics),
    );
    env.set("POSTGRES_BACKEND_SCHEMA", SCHEMA);
}

/// The certificates, under the names that it expects: without all three it does not use TLS.
fn extras(project: &Project<'_>) -> Extras {
    let shown = certificate(project.spec).filter(|_| project.encrypts());
    let mut mounts = Vec::new();
    if let (Some(shown), Some(ca)) = (shown, &project.spec.database.ca_secret_ref) {
        let volume = json!({ "secret": { "secretName": shown.name } });
        let file = |name: &'static str, volume, file: &str, path: &str| Mount {
            name,
            volume,
            path: format!("{HOME}/{path}"),
            file: Some(file.to_owned()),
        };
        mounts = vec![
            file(
                "client-certificate",
                Some(volume),
                "tls.crt",
                "db-client-cert.pem",
            ),
            file("client-certificate", None, "tls.key", "db-client-key.pem"),
            file(CA_VOLUME, None, &ca.key, "db-server-ca.pem"),
        ];
    }
    Extras {
        scratch: vec![SCRATCH],
        mounts,
        ..Extras::default()
    }
}
