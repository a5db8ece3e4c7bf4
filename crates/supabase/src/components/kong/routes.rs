//! The gateway's routes to a component, and who may use them. Each component lists its own.

use serde_json::{Value, json};

use super::expressions::{authorization, header_key, query_key};
use crate::components::{self, Component, Project};
use crate::put;

/// A route to a component, at its first port.
pub(crate) struct Route {
    /// A unique name among the routes of a project.
    pub name: &'static str,
    /// The path at the component.
    pub to: &'static str,
    /// The path at the gateway; the rest of the path is appended.
    pub path: &'static str,
    /// Who may use the route.
    pub guard: Guard,
    /// Read timeout in milliseconds, if it is longer than the default.
    pub timeout: Option<u32>,
}

/// Who may use a route.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Everybody.
    Open,
    /// Clients with a key.
    Key,
    /// Clients with a key; selects the schema of the GraphQL function.
    Graphql,
    /// Clients with a key in the query.
    WebSocket,
    /// Clients with the service key.
    Admin,
    /// Clients with the service key, and no scripts of other web sites.
    AdminOnly,
    /// Everybody: the service itself checks, perhaps an S3 signature.
    Own,
    /// Everybody: the functions themselves check. The gateway passes on which key was used, and removes what a client
    /// claims.
    Functions,
    /// Clients with the dashboard's password.
    Password,
    /// Nobody.
    Closed,
}

/// A route with the default timeout.
pub(crate) const fn route(name: &'static str, to: &'static str, path: &'static str, guard: Guard) -> Route {
    Route {
        name,
        to,
        path,
        guard,
        timeout: None,
    }
}

/// Every service with its route, for the components of the project.
pub(super) fn services(project: &Project<'_>) -> Vec<Value> {
    components::wanted(project.spec)
        .flat_map(|(component, _)| component.routes.iter().map(move |route| (component, route)))
        .map(|(component, route)| route.service(component, project))
        .collect()
}

impl Route {
    /// The route in Kong's format.
    fn service(&self, component: &Component, project: &Project<'_>) -> Value {
        let port = component.ports.first().map_or(80, |port| port.number);
        let mut service = json!({
            "name": self.name,
            "url": format!("http://{}:{port}{}", project.host(component.name), self.to),
            "routes": [{ "name": self.name, "strip_path": true, "paths": [self.path] }],
            "plugins": self.guard.plugins(project),
        });
        if let Some(timeout) = self.timeout {
            put(&mut service, "read_timeout", timeout);
        }
        service
    }
}

/// Sets headers, whether or not the request has them.
fn header(headers: &[String]) -> Value {
    json!({ "name": "request-transformer", "config": {
        "add": { "headers": headers },
        "replace": { "headers": headers },
    }})
}

/// Removes headers that are empty.
fn without_empty(headers: &[&str]) -> Value {
    let clear = |name: &&str| {
        format!(
            "if (kong.request.get_header('{name}') or ''):find('^%s*$') then\n  \
             kong.service.request.clear_header('{name}')\nend\n"
        )
    };
    let clear: String = headers.iter().map(clear).collect();
    json!({ "name": "post-function", "config": { "access": [clear] } })
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
            // A request with an S3 signature has neither key nor token, and must not get an empty one.
            Self::Own => json!([cors, header(&[token]), without_empty(&["authorization"])]),
            Self::Functions => {
                let key = format!("sb-api-key: {}", header_key(project));
                // Remove the client's header before setting the gateway's own.
                let own = json!({ "name": "request-transformer", "config": {
                    "remove": { "headers": ["sb-api-key"] },
                    "add": { "headers": [token, key] },
                    "replace": { "headers": [token] },
                }});
                json!([cors, own, without_empty(&["authorization", "sb-api-key"])])
            }
            Self::Password => {
                json!([cors, { "name": "basic-auth", "config": { "hide_credentials": true } }])
            }
        }
    }
}
