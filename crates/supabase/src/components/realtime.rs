//! Realtime: database changes, presence and messages over web sockets.
//!
//! Its image starts with a script that calls `sudo`, which a restricted pod cannot; our command does the same steps.

use stanchion_api::supabase::image;

use super::kong::routes::{Guard, route};
use super::{Component, Environment, Extras, Needs, Port, Probes, Project, Resources};
use crate::database::Login;
use crate::keys::{Generated, names as key};

/// The certificate authorities of Debian, on which its image is based.
const DEBIAN_AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Migrates Realtime's own tables.
const PREPARE: &str = r#"ulimit -S -n "$RLIMIT_NOFILE"; /app/bin/migrate"#;
/// Registers the tenant as upstream does.
const SEED: &str = "/app/bin/realtime eval 'Realtime.Release.seeds(Realtime.Repo)'";
/// Upstream's seeds connect to the database unencrypted, so our own script registers the tenant if connections must be
/// encrypted. It is the shell's first argument, so that it needs no file.
const REGISTER: &str = r#"/app/bin/realtime eval "$1""#;
const SCRIPT: &str = include_str!("realtime/tenant.exs");
const SERVE: &str = "exec /app/bin/server";

pub(super) const COMPONENT: Component = Component {
    name: "realtime",
    field: "realtime",
    label: "realtime",
    condition: "RealtimeReady",
    options: |spec| Some(&spec.realtime.options),
    image: image::REALTIME,
    ports: &[Port::service("http", 4000)],
    open: false,
    resources: Resources::new(("256Mi", "100m"), ("512Mi", "500m")),
    user: 65534,
    probes: |_| Probes::http("http", "/healthcheck", 300),
    logins: &[Login::Realtime],
    keys: &[
        Generated::hex(key::REALTIME_COOKIE, 32),
        Generated::hex(key::REALTIME_ENCRYPTION_GCM, 16),
    ],
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
    extras,
};

fn extras(project: &Project<'_>) -> Extras {
    let shell = ["/usr/bin/tini", "-s", "-g", "--", "/bin/sh", "-c"];
    let (steps, arguments) = if project.encrypts() {
        (vec![PREPARE, REGISTER, SERVE], vec!["realtime", SCRIPT])
    } else {
        (vec![PREPARE, SEED, SERVE], Vec::new())
    };
    let steps = steps.join(" && ");
    Extras {
        command: shell
            .into_iter()
            .chain([steps.as_str()])
            .chain(arguments)
            .map(str::to_owned)
            .collect(),
        ..Extras::default()
    }
}

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
    // Without a file it would verify nothing.
    let known = project.trusts_its_image().then(|| DEBIAN_AUTHORITIES.to_owned());
    if let Some(file) = project.ca_file().or(known) {
        env.set("DB_SSL_CA_CERT", file);
    }
    env.set("DB_AFTER_CONNECT_QUERY", "SET search_path TO _realtime");
    // The first decrypts values of older versions; the second also authenticates new values.
    env.secret("DB_ENC_KEY", &keys, key::REALTIME_ENCRYPTION);
    env.secret("DB_ENC_KEY_GCM", &keys, key::REALTIME_ENCRYPTION_GCM);
    env.set("DB_ENC_WRITE_GCM", "true");
    env.secret("API_JWT_SECRET", &keys, key::JWT_SECRET);
    env.secret("API_JWT_JWKS", &keys, key::JWKS);
    env.secret("METRICS_JWT_SECRET", &keys, key::JWT_SECRET);
    env.secret("SECRET_KEY_BASE", &keys, key::SECRET_KEY_BASE);
    // Pods find each other by address, and trust every node with the cookie.
    env.field("POD_IP", "status.podIP");
    env.secret("RELEASE_COOKIE", &keys, key::REALTIME_COOKIE);
    // Replication slots belong to the server: a second project on it needs its own names.
    if let Some(suffix) = project.logins.slot_suffix() {
        env.set("SLOT_NAME_SUFFIX", suffix);
    }
    // The first label of the gateway's host name identifies the tenant.
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
