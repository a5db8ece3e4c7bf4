//! What leads to a component, and what it takes to go there. Each component has its own rows.

use serde_json::{Value, json};

use super::expressions::{authorization, header_key, query_key};
use crate::components::{self, Component, Project};
use crate::json::put;

/// One way to a component, at its first port.
pub struct Route {
    /// A name, among all routes of a project.
    pub name: &'static str,
    /// The path there.
    pub to: &'static str,
    /// The path here; what is after it is kept.
    pub path: &'static str,
    /// Who may pass.
    pub guard: Guard,
    /// For how many milliseconds an answer may keep one waiting, where that is longer than usual.
    pub timeout: Option<u32>,
}

/// Who may pass.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Guard {
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
    /// Everybody: the functions check by themselves. They are told which key was used, and nobody else can tell them.
    Functions,
    /// Whoever knows the dashboard's password.
    Password,
    /// Nobody.
    Closed,
}

/// A route that waits as long as usual.
pub const fn route(name: &'static str, to: &'static str, path: &'static str, guard: Guard) -> Route {
    Route {
        name,
        to,
        path,
        guard,
        timeout: None,
    }
}

/// Every service with its route, of the components that are there.
pub(super) fn services(project: &Project<'_>) -> Vec<Value> {
    components::wanted(project.spec)
        .flat_map(|(component, _)| component.routes.iter().map(move |route| (component, route)))
        .map(|(component, route)| route.service(component, project))
        .collect()
}

impl Route {
    /// As Kong wants it.
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

/// Puts a header there, whether or not the request has it.
fn header(headers: &[String]) -> Value {
    json!({ "name": "request-transformer", "config": {
        "add": { "headers": headers },
        "replace": { "headers": headers },
    }})
}

/// Takes headers away that have come out empty.
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
            // A request that is signed as for S3 has neither key nor token, and must not get an empty one.
            Self::Own => json!([cors, header(&[token]), without_empty(&["authorization"])]),
            Self::Functions => {
                let key = format!("sb-api-key: {}", header_key(project));
                // What a client says is taken away before ours is put there.
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
