//! postgres-meta: the database's structure, for the dashboard.

use stanchion_api::supabase::image;

use super::{Component, Environment, Extras, Port, Probes, Project, Resources};
use crate::database::Login;
use crate::keys::names as key;

pub(super) const COMPONENT: Component = Component {
    name: "meta",
    field: "meta",
    label: "metadata",
    condition: "MetaReady",
    options: |spec| Some(&spec.meta.options),
    image: image::META,
    ports: &[Port {
        name: "http",
        number: 8080,
        service: true,
    }],
    resources: Resources {
        requests: ("64Mi", "50m"),
        limits: ("128Mi", "100m"),
    },
    user: 1000,
    probes: |_| Probes::http("http", "/health", 60),
    environment,
    extras: |_| Extras::default(),
};

fn environment(project: &Project<'_>, env: &mut Environment) {
    let (keys, database) = (project.key_secret(), project.database);
    env.set("PG_META_PORT", "8080");
    env.set("PG_META_DB_HOST", database.host.clone());
    env.set("PG_META_DB_PORT", database.port.to_string());
    env.set("PG_META_DB_NAME", project.database_in_url());
    env.set("PG_META_DB_USER", project.logins.of(Login::Meta));
    env.secret("PG_META_DB_PASSWORD", &keys, key::password(Login::Meta));
    env.set("PG_META_DB_SSL_MODE", project.ssl_mode());
    if let Some(ca) = &project.spec.database.ca_secret_ref {
        env.secret("PG_META_DB_SSL_ROOT_CERT", &ca.name, &ca.key);
    }
    env.secret("CRYPTO_KEY", &keys, key::META_CRYPTO);
}
