//! Studio: the dashboard. The gateway protects it with a user name and a password.

use stanchion_api::supabase::image;

use super::kong::routes::{Guard, route};
use super::postgrest::{MAX_ROWS, SCHEMAS, SEARCH_PATH};
use super::{Component, Environment, Extras, Needs, Port, Probe, Probes, Project, Resources};
use crate::database::Login;
use crate::keys::names as key;

pub(super) const COMPONENT: Component = Component {
    name: "studio",
    field: "studio",
    label: "studio",
    condition: "StudioReady",
    options: |spec| spec.studio.enabled.then_some(&spec.studio.options),
    image: image::STUDIO,
    ports: &[Port::service("http", 3000)],
    open: false,
    resources: Resources::new(("256Mi", "100m"), ("512Mi", "500m")),
    user: 1000,
    probes: |_| Probes {
        readiness: Probe::Http {
            port: "http",
            path: "/api/platform/profile",
        },
        liveness: Probe::Tcp("http"),
        start: 120,
    },
    logins: &[],
    keys: &[],
    routes: &[
        route("mcp-blocker", "/api/mcp", "/api/mcp", Guard::Closed),
        route("mcp", "/api/mcp", "/mcp", Guard::Closed),
        route("dashboard", "/", "/", Guard::Password),
    ],
    needs: |_| Needs::default(),
    environment,
    extras: |_| Extras {
        scratch: vec!["/app/snippets", "/app/edge-functions"],
        ..Extras::default()
    },
};

fn environment(project: &Project<'_>, env: &mut Environment) {
    let (keys, public) = (project.key_secret(), project.public_url());
    env.set_all(&[("PORT", "3000"), ("HOSTNAME", "0.0.0.0")]);
    env.set("SUPABASE_URL", format!("http://{}:8000", project.host("kong")));
    for name in [
        "SUPABASE_PUBLIC_URL",
        "NEXT_PUBLIC_SUPABASE_URL",
        "NEXT_PUBLIC_SITE_URL",
    ] {
        env.set(name, public.clone());
    }
    env.set("NEXT_PUBLIC_GOTRUE_URL", format!("{public}/auth/v1"));
    env.set(
        "STUDIO_PG_META_URL",
        format!("http://{}:8080", project.host("meta")),
    );
    env.set("DEFAULT_ORGANIZATION_NAME", "Default Organization");
    env.set("DEFAULT_PROJECT_NAME", project.spec.project_id.clone());
    env.set_all(&[
        ("PGRST_DB_SCHEMAS", SCHEMAS),
        ("PGRST_DB_MAX_ROWS", MAX_ROWS),
        ("PGRST_DB_EXTRA_SEARCH_PATH", SEARCH_PATH),
        ("NEXT_ANALYTICS_BACKEND_PROVIDER", "postgres"),
        ("SNIPPETS_MANAGEMENT_FOLDER", "/app/snippets"),
        ("EDGE_FUNCTIONS_MANAGEMENT_FOLDER", "/app/edge-functions"),
    ]);
    logs(project, env);
    let database = project.database;
    env.set("POSTGRES_HOST", database.host.clone());
    env.set("POSTGRES_PORT", database.port.to_string());
    // Studio appends it unchanged to a URL, from which meta reads the database and whether to encrypt.
    let mode = project.node_ssl_mode("require");
    env.set(
        "POSTGRES_DB",
        format!("{}?sslmode={mode}", project.database_in_url()),
    );
    env.set("POSTGRES_USER_READ_WRITE", project.logins.of(Login::Meta));
    env.set("POSTGRES_USER_READ_ONLY", project.logins.of(Login::ReadOnly));
    // It supports one password for both.
    env.secret("POSTGRES_PASSWORD", &keys, key::password(Login::Meta));
    for (variable, key) in [
        ("SUPABASE_ANON_KEY", key::ANON),
        ("NEXT_PUBLIC_SUPABASE_ANON_KEY", key::ANON),
        ("SUPABASE_SERVICE_KEY", key::SERVICE),
        ("SUPABASE_PUBLISHABLE_KEY", key::PUBLISHABLE),
        ("SUPABASE_SECRET_KEY", key::SECRET),
        ("AUTH_JWT_SECRET", key::JWT_SECRET),
        ("PG_META_CRYPTO_KEY", key::META_CRYPTO),
    ] {
        env.secret(variable, &keys, key);
    }
}

/// Logs are shown if analytics stores them.
fn logs(project: &Project<'_>, env: &mut Environment) {
    let kept = project.spec.analytics.is_some();
    for switch in ["NEXT_PUBLIC_ENABLE_LOGS", "ENABLED_FEATURES_LOGS_ALL"] {
        env.set(switch, kept.to_string());
    }
    if kept {
        let keys = project.key_secret();
        env.set(
            "LOGFLARE_URL",
            format!("http://{}:4000", project.host("analytics")),
        );
        env.secret("LOGFLARE_PUBLIC_ACCESS_TOKEN", &keys, key::LOGS_PUBLIC);
        env.secret("LOGFLARE_PRIVATE_ACCESS_TOKEN", &keys, key::LOGS_PRIVATE);
    }
}
