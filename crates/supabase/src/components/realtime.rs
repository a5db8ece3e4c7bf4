//! Realtime: changes of the database, presence and messages, over web sockets.

use stanchion_api::supabase::image;

use super::kong::routes::{Guard, route};
use super::{Component, Environment, Extras, Needs, Port, Probes, Project, Resources};
use crate::database::Login;
use crate::keys::names as key;

/// The authorities that Debian, which its image is made of, knows.
const DEBIAN_AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

pub(super) const COMPONENT: Component = Component {
    name: "realtime",
    field: "realtime",
    label: "realtime",
    condition: "RealtimeReady",
    options: |spec| Some(&spec.realtime.options),
    image: image::REALTIME,
    ports: &[Port {
        name: "http",
        number: 4000,
        service: true,
    }],
    open: false,
    resources: Resources {
        requests: ("128Mi", "100m"),
        limits: ("256Mi", "200m"),
    },
    user: 65534,
    probes: |_| Probes::http("http", "/healthcheck", 300),
    logins: &[Login::Realtime],
    keys: &[],
    routes: &[
        route("realtime-v1-ws", "/socket", "/realtime/v1/", Guard::WebSocket),
        route(
            "realtime-v1-rest-openapi",
            "/api/openapi",
            "/realtime/v1/api/openapi",
            Guard::Closed,
        ),
        route(
            "realtime-v1-rest-tenants",
            "/api/tenants",
            "/realtime/v1/api/tenants",
            Guard::Closed,
        ),
        route("realtime-v1-rest", "/api", "/realtime/v1/api", Guard::Key),
    ],
    needs: |_| Needs::default(),
    environment,
    extras: |_| Extras::default(),
};

fn environment(project: &Project<'_>, env: &mut Environment) {
    let (keys, database) = (project.key_secret(), project.database);
    env.set("PORT", "4000");
    env.set("DB_HOST", database.host.clone());
    env.set("DB_PORT", database.port.to_string());
    env.set("DB_NAME", database.name.clone());
    env.set("DB_USER", project.logins.of(Login::Realtime));
    env.secret("DB_PASSWORD", &keys, key::password(Login::Realtime));
    env.set("DB_POOL_SIZE", project.spec.database.max_connections.to_string());
    env.set("DB_SSL", project.encrypts().to_string());
    // Without a file it would check nothing.
    let known = project.trusts_its_image().then(|| DEBIAN_AUTHORITIES.to_owned());
    if let Some(file) = project.ca_file().or(known) {
        env.set("DB_SSL_CA_CERT", file);
    }
    env.set("DB_AFTER_CONNECT_QUERY", "SET search_path TO _realtime");
    env.secret("DB_ENC_KEY", &keys, key::REALTIME_ENCRYPTION);
    env.secret("API_JWT_SECRET", &keys, key::JWT_SECRET);
    env.secret("API_JWT_JWKS", &keys, key::JWKS);
    env.secret("METRICS_JWT_SECRET", &keys, key::JWT_SECRET);
    env.secret("SECRET_KEY_BASE", &keys, key::SECRET_KEY_BASE);
    // A tenant is known by the first label of the host name that the gateway asks for.
    env.set("SELF_HOST_TENANT_NAME", project.host("realtime"));
    env.set_all(&[
        ("APP_NAME", "realtime"),
        ("RLIMIT_NOFILE", "10000"),
        ("ERL_AFLAGS", "-proto_dist inet_tcp"),
        ("DNS_NODES", "''"),
        ("SEED_SELF_HOST", "true"),
        ("RUN_JANITOR", "true"),
        ("DISABLE_HEALTHCHECK_LOGGING", "true"),
    ]);
}
