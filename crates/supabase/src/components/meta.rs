//! postgres-meta: reads the database's structure, for the dashboard.

use stanchion_api::supabase::image;

use super::kong::routes::{Guard, route};
use super::{Component, Environment, Extras, Needs, Port, Probes, Project, Resources};
use crate::database::Login;
use crate::keys::names as key;

pub(super) const COMPONENT: Component = Component {
    name: "meta",
    field: "meta",
    label: "metadata",
    condition: "MetaReady",
    options: |spec| Some(&spec.meta.options),
    image: image::META,
    ports: &[Port::service("http", 8080)],
    open: false,
    resources: Resources::new(("192Mi", "50m"), ("256Mi", "200m")),
    user: 1000,
    probes: |_| Probes::http("http", "/health", 120),
    // Studio reads with the second login, through this component.
    logins: &[Login::Meta, Login::ReadOnly],
    keys: &[],
    routes: &[route("meta", "/", "/pg/", Guard::AdminOnly)],
    needs: |_| Needs::default(),
    environment,
    extras: |_| Extras::default(),
};

fn environment(project: &Project<'_>, env: &mut Environment) {
    let (keys, database) = (project.key_secret(), project.database);
    env.set("PG_META_PORT", "8080");
    env.set("PG_META_DB_HOST", database.host.clone());
    env.set("PG_META_DB_PORT", database.port.to_string());
    // It escapes the name itself.
    env.set("PG_META_DB_NAME", database.name.clone());
    env.set("PG_META_DB_USER", project.logins.of(Login::Meta));
    env.secret("PG_META_DB_PASSWORD", &keys, key::password(Login::Meta));
    // It verifies a certificate in one mode only, and cannot fall back to an unencrypted connection.
    env.set("PG_META_DB_SSL_MODE", project.node_ssl_mode("require"));
    let ca = project.spec.database.ca_secret_ref.as_ref();
    if let Some(ca) = ca.filter(|_| project.encrypts()) {
        env.secret("PG_META_DB_SSL_ROOT_CERT", &ca.name, &ca.key);
    }
    env.secret("CRYPTO_KEY", &keys, key::META_CRYPTO);
}
