//! `PostgREST`: the database as a REST API. Its login may become the role of each request.

use stanchion_api::supabase::image;

use super::kong::routes::{Guard, route};
use super::{Component, Environment, Extras, Needs, Port, Probe, Probes, Project, Resources};
use crate::database::Login;
use crate::keys::names as key;

/// The schemas that requests may use.
pub(super) const SCHEMAS: &str = "public,graphql_public";
/// The most rows in an answer.
pub(super) const MAX_ROWS: &str = "1000";
/// Additional schemas of the search path.
pub(super) const SEARCH_PATH: &str = "public,extensions";

pub(super) const COMPONENT: Component = Component {
    name: "postgrest",
    field: "postgrest",
    label: "rest-api",
    condition: "PostgRESTReady",
    options: |spec| Some(&spec.postgrest.options),
    image: image::POSTGREST,
    ports: &[Port::service("http", 3000)],
    open: false,
    resources: Resources::new(("128Mi", "100m"), ("256Mi", "200m")),
    user: 1000,
    // Its admin server shows the whole configuration, including the password: it listens in the pod only.
    probes: |_| Probes {
        readiness: Probe::Exec(&["postgrest", "--ready"]),
        liveness: Probe::Tcp("http"),
        start: 60,
    },
    logins: &[Login::Rest],
    keys: &[],
    routes: &[
        // The description of the API, and nothing below this path.
        route("rest-v1-openapi", "/", "~/rest/v1/$", Guard::Admin),
        route("rest-v1", "/", "/rest/v1/", Guard::Key),
        route("graphql-v1", "/rpc/graphql", "/graphql/v1", Guard::Graphql),
    ],
    needs: |_| Needs::default(),
    environment,
    extras: |_| Extras::default(),
};

fn environment(project: &Project<'_>, env: &mut Environment) {
    let keys = project.key_secret();
    env.secret("DB_PASSWORD", &keys, key::password(Login::Rest));
    let ca = project.ca_file();
    let parameters = match &ca {
        Some(file) => vec![("sslmode", project.ssl_mode()), ("sslrootcert", file)],
        // By default libpq looks for its own file; with `system` it accepts nothing weaker than verify-full.
        None if project.trusts_its_image() => vec![("sslmode", "verify-full"), ("sslrootcert", "system")],
        None => vec![("sslmode", project.ssl_mode())],
    };
    env.expanded("PGRST_DB_URI", project.database_url(Login::Rest, &parameters));
    env.set("PGRST_DB_POOL", project.spec.database.max_connections.to_string());
    env.secret("PGRST_JWT_SECRET", &keys, key::JWKS);
    env.set("PGRST_APP_SETTINGS_JWT_EXP", project.token_seconds().to_string());
    env.set_all(&[
        ("PGRST_DB_SCHEMAS", SCHEMAS),
        ("PGRST_DB_EXTRA_SEARCH_PATH", SEARCH_PATH),
        ("PGRST_DB_MAX_ROWS", MAX_ROWS),
        ("PGRST_DB_ANON_ROLE", "anon"),
        ("PGRST_DB_USE_LEGACY_GUCS", "false"),
        ("PGRST_ADMIN_SERVER_HOST", "localhost"),
        ("PGRST_ADMIN_SERVER_PORT", "3001"),
    ]);
}
