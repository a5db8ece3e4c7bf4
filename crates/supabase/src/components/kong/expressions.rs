//! The API keys that the gateway accepts, and the tokens that replace them.
//!
//! A client may use a short key, a long one, or one that was rotated: behind the gateway there is only the token that
//! is signed with the newest key pair. So the services need to know only that, and a rotation makes none of them refuse
//! an old key.

use crate::components::Project;
use crate::keys::names as key;
use crate::keys::token::Role;

/// A key that a client may use.
pub(super) struct ApiKey {
    /// The environment variable that holds it.
    pub(super) variable: &'static str,
    /// Its key in the Secret.
    pub(super) key: &'static str,
    /// The role of its token.
    pub(super) role: Role,
}

impl ApiKey {
    /// The placeholder of its value.
    pub(super) fn placeholder(&self) -> String {
        placeholder(self.variable)
    }
}

const KEYS: &[ApiKey] = &[
    ApiKey {
        variable: "SUPABASE_ANON_KEY",
        key: key::ANON,
        role: Role::Anon,
    },
    ApiKey {
        variable: "SUPABASE_PUBLISHABLE_KEY",
        key: key::PUBLISHABLE,
        role: Role::Anon,
    },
    ApiKey {
        variable: "SUPABASE_ANON_KEY_PREVIOUS",
        key: key::PREVIOUS_ANON,
        role: Role::Anon,
    },
    ApiKey {
        variable: "SUPABASE_PUBLISHABLE_KEY_PREVIOUS",
        key: key::PREVIOUS_PUBLISHABLE,
        role: Role::Anon,
    },
    ApiKey {
        variable: "SUPABASE_ANON_KEY_NEXT",
        key: key::NEXT_ANON,
        role: Role::Anon,
    },
    ApiKey {
        variable: "SUPABASE_PUBLISHABLE_KEY_NEXT",
        key: key::NEXT_PUBLISHABLE,
        role: Role::Anon,
    },
    ApiKey {
        variable: "SUPABASE_SERVICE_KEY",
        key: key::SERVICE,
        role: Role::Service,
    },
    ApiKey {
        variable: "SUPABASE_SECRET_KEY",
        key: key::SECRET,
        role: Role::Service,
    },
    ApiKey {
        variable: "SUPABASE_SERVICE_KEY_PREVIOUS",
        key: key::PREVIOUS_SERVICE,
        role: Role::Service,
    },
    ApiKey {
        variable: "SUPABASE_SECRET_KEY_PREVIOUS",
        key: key::PREVIOUS_SECRET_KEY,
        role: Role::Service,
    },
    ApiKey {
        variable: "SUPABASE_SERVICE_KEY_NEXT",
        key: key::NEXT_SERVICE,
        role: Role::Service,
    },
    ApiKey {
        variable: "SUPABASE_SECRET_KEY_NEXT",
        key: key::NEXT_SECRET_KEY,
        role: Role::Service,
    },
];

/// The existing keys.
pub(super) fn api_keys(project: &Project<'_>) -> impl Iterator<Item = &'static ApiKey> {
    let secret = project.key_secret();
    KEYS.iter().filter(move |key| project.has(&secret, key.key))
}

fn placeholder(variable: &str) -> String {
    format!("${{{variable}}}")
}

/// The token of a role behind the gateway.
fn token(role: Role) -> String {
    placeholder(match role {
        Role::Anon => "ANON_KEY_ASYMMETRIC",
        Role::Service => "SERVICE_ROLE_KEY_ASYMMETRIC",
    })
}

/// A Lua expression that replaces every key in `field` by its token; `prefix` precedes both.
fn exchanged(project: &Project<'_>, field: &str, prefix: &str, said: &str) -> Vec<String> {
    api_keys(project)
        .map(|key| {
            format!(
                "({field} == '{prefix}{}' and '{said}{}')",
                key.placeholder(),
                token(key.role)
            )
        })
        .collect()
}

/// The `Authorization` for a service: the user's own token unchanged, a key as a token, and otherwise the token of the
/// key in `apikey`.
pub(super) fn authorization(project: &Project<'_>) -> String {
    let mut parts = exchanged(project, "headers.authorization", "Bearer ", "Bearer ");
    parts.push("headers.authorization".into());
    parts.extend(exchanged(project, "headers.apikey", "", "Bearer "));
    first_of(parts)
}

/// The token of the key in `apikey`, for services that check the key in addition to the user.
pub(super) fn header_key(project: &Project<'_>) -> String {
    first_of(exchanged(project, "headers.apikey", "", ""))
}

/// The token for a web socket, which has its key in the query.
pub(super) fn query_key(project: &Project<'_>) -> String {
    let mut parts = exchanged(project, "query_params.apikey", "", "");
    parts.push("query_params.apikey".into());
    first_of(parts)
}

/// A Lua expression for the first value that is set. If none is, it is `nil`, not `false`, which Kong would print.
fn first_of(mut parts: Vec<String>) -> String {
    parts.push("nil".into());
    format!("$({})", parts.join(" or "))
}
