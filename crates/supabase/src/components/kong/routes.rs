//! Where each path leads, and what it takes to go there: one table.

use serde_json::{Value, json};

use super::expressions::{authorization, query_key};
use crate::components::Project;

/// One service with its one route.
pub(super) struct Route {
    name: &'static str,
    /// The component, its port, and the path there.
    to: (&'static str, u16, &'static str),
    /// The path here; what is after it is kept.
    path: &'static str,
    guard: Guard,
}

/// Who may pass.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Guard {
    /// Everybody.
    Open,
    /// Whoever has a key.
    Key,
    /// The same, and the function that answers is found in this schema.
    Graphql,
    /// Whoever has a key, in the query.
    WebSocket,
    /// Whoever has the service key.
    Admin,
    /// The service key, and no other web site's scripts.
    AdminOnly,
    /// Everybody: the service checks by itself, perhaps a signature of S3.
    Own,
    /// Whoever knows the dashboard's password.
    Password,
    /// Nobody.
    Closed,
}

const fn route(
    name: &'static str,
    to: (&'static str, u16, &'static str),
    path: &'static str,
    guard: Guard,
) -> Route {
    Route {
        name,
        to,
        path,
        guard,
    }
}

const ROUTES: &[Route] = &[
    route(
        "auth-v1-open",
        ("auth", 9999, "/verify"),
        "/auth/v1/verify",
        Guard::Open,
    ),
    route(
        "auth-v1-open-callback",
        ("auth", 9999, "/callback"),
        "/auth/v1/callback",
        Guard::Open,
    ),
    route(
        "auth-v1-open-authorize",
        ("auth", 9999, "/authorize"),
        "/auth/v1/authorize",
        Guard::Open,
    ),
    route(
        "auth-v1-open-jwks",
        ("auth", 9999, "/.well-known/jwks.json"),
        "/auth/v1/.well-known/jwks.json",
        Guard::Open,
    ),
    route(
        "auth-v1-open-sso-acs",
        ("auth", 9999, "/sso/saml/acs"),
        "/auth/v1/sso/saml/acs",
        Guard::Open,
    ),
    route(
        "auth-v1-open-sso-metadata",
        ("auth", 9999, "/sso/saml/metadata"),
        "/auth/v1/sso/saml/metadata",
        Guard::Open,
    ),
    route("auth-v1", ("auth", 9999, "/"), "/auth/v1/", Guard::Key),
    // The description of the whole API, and nothing below it.
    route(
        "rest-v1-openapi",
        ("postgrest", 3000, "/"),
        "~/rest/v1/$",
        Guard::Admin,
    ),
    route("rest-v1", ("postgrest", 3000, "/"), "/rest/v1/", Guard::Key),
    route(
        "graphql-v1",
        ("postgrest", 3000, "/rpc/graphql"),
        "/graphql/v1",
        Guard::Graphql,
    ),
    route(
        "realtime-v1-ws",
        ("realtime", 4000, "/socket"),
        "/realtime/v1/",
        Guard::WebSocket,
    ),
    route(
        "realtime-v1-rest-openapi",
        ("realtime", 4000, "/api/openapi"),
        "/realtime/v1/api/openapi",
        Guard::Closed,
    ),
    route(
        "realtime-v1-rest-tenants",
        ("realtime", 4000, "/api/tenants"),
        "/realtime/v1/api/tenants",
        Guard::Closed,
    ),
    route(
        "realtime-v1-rest",
        ("realtime", 4000, "/api"),
        "/realtime/v1/api",
        Guard::Key,
    ),
    route("storage-v1", ("storage", 5000, "/"), "/storage/v1/", Guard::Own),
    route(
        "well-known-oauth",
        ("auth", 9999, "/.well-known/oauth-authorization-server"),
        "/.well-known/oauth-authorization-server",
        Guard::Open,
    ),
    route("meta", ("meta", 8080, "/"), "/pg/", Guard::AdminOnly),
    route(
        "mcp-blocker",
        ("studio", 3000, "/api/mcp"),
        "/api/mcp",
        Guard::Closed,
    ),
    route("mcp", ("studio", 3000, "/api/mcp"), "/mcp", Guard::Closed),
    route("dashboard", ("studio", 3000, "/"), "/", Guard::Password),
];

/// The routes that lead to something.
pub(super) fn all(project: &Project<'_>) -> Vec<&'static Route> {
    let studio = project.spec.studio.enabled;
    ROUTES
        .iter()
        .filter(|route| studio || route.to.0 != "studio")
        .collect()
}

impl Route {
    /// As Kong wants it.
    pub(super) fn service(&self, project: &Project<'_>) -> Value {
        let (component, port, path) = self.to;
        json!({
            "name": self.name,
            "url": format!("http://{}:{port}{path}", project.host(component)),
            "routes": [{ "name": self.name, "strip_path": true, "paths": [self.path] }],
            "plugins": self.guard.plugins(project),
        })
    }
}

/// Puts a header there, whether or not the request has it.
fn header(headers: &[String]) -> Value {
    json!({ "name": "request-transformer", "config": {
        "add": { "headers": headers },
        "replace": { "headers": headers },
    }})
}

impl Guard {
    fn plugins(self, project: &Project<'_>) -> Value {
        let cors = json!({ "name": "cors" });
        let key = json!({ "name": "key-auth", "config": { "hide_credentials": false } });
        let allow = |groups: &[&str]| json!({ "name": "acl", "config": { "hide_groups_header": true, "allow": groups } });
        let closed = json!({ "name": "request-termination", "config": {
            "status_code": 403, "message": "Access is forbidden.",
        }});
        let token = format!("Authorization: {}", authorization(project));
        let everybody = ["admin", "anon"];
        match self {
            Self::Open => json!([cors]),
            Self::Closed => json!([closed]),
            Self::Key => json!([cors, key, header(&[token]), allow(&everybody)]),
            Self::Admin => json!([cors, key, header(&[token]), allow(&["admin"])]),
            Self::AdminOnly => json!([key, allow(&["admin"])]),
            Self::Graphql => {
                let profile = "Content-Profile: graphql_public".to_owned();
                json!([cors, key, header(&[profile, token]), allow(&everybody)])
            }
            Self::WebSocket => {
                let query = query_key(project);
                let exchange = json!({ "name": "request-transformer", "config": {
                    "add": { "headers": [format!("x-api-key:{query}")] },
                    "replace": { "querystring": [format!("apikey:{query}")] },
                }});
                json!([cors, key, exchange, allow(&everybody)])
            }
            Self::Own => {
                // A request that is signed as for S3 has neither, and must not get an empty one.
                let clear = "local it = kong.request.get_header('authorization')\n\
                             if it == nil or it:find('^%s*$') then\n  \
                             kong.service.request.clear_header('authorization')\nend\n";
                let strip = json!({ "name": "post-function", "config": { "access": [clear] } });
                json!([cors, header(&[token]), strip])
            }
            Self::Password => {
                json!([cors, { "name": "basic-auth", "config": { "hide_credentials": true } }])
            }
        }
    }
}
