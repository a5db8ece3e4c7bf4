//! The API keys that the gateway accepts, and the tokens that it puts in their place.
//!
//! A program may carry a short key, a long one, or one that was replaced: behind the gateway there is only the token
//! that is signed with the newest key pair. So the services need to know no key but that, and a key can be replaced
//! without any of them refusing its predecessor.

use crate::components::Project;
use crate::keys::names as key;
use crate::keys::token::Role;

/// A key that a program may carry.
pub(super) struct ApiKey {
    /// The environment variable that has it.
    pub(super) variable: &'static str,
    /// Its place in the Secret.
    pub(super) key: &'static str,
    /// Whose rights it gives.
    pub(super) role: Role,
}

impl ApiKey {
    /// Where its value goes.
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

/// The keys that there are.
pub(super) fn api_keys(project: &Project<'_>) -> impl Iterator<Item = &'static ApiKey> {
    let secret = project.key_secret();
    KEYS.iter().filter(move |key| project.has(&secret, key.key))
}

fn placeholder(variable: &str) -> String {
    format!("${{{variable}}}")
}

/// The token that stands for a role behind the gateway.
fn token(role: Role) -> String {
    placeholder(match role {
        Role::Anon => "ANON_KEY_ASYMMETRIC",
        Role::Service => "SERVICE_ROLE_KEY_ASYMMETRIC",
    })
}

/// `field` in Lua, with every key that it may hold exchanged for its token; `prefix` goes before both.
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

/// The `Authorization` that a service gets: the user's own token as it is, a key as a token, and where there is none
/// the token of the key in `apikey`.
pub(super) fn authorization(project: &Project<'_>) -> String {
    let mut parts = exchanged(project, "headers.authorization", "Bearer ", "Bearer ");
    parts.push("headers.authorization".into());
    parts.extend(exchanged(project, "headers.apikey", "", "Bearer "));
    first_of(parts)
}

/// The token of the key in `apikey`, for those who look at the key beside the user.
pub(super) fn header_key(project: &Project<'_>) -> String {
    first_of(exchanged(project, "headers.apikey", "", ""))
}

/// What a web socket carries, which has its key in the query.
pub(super) fn query_key(project: &Project<'_>) -> String {
    let mut parts = exchanged(project, "query_params.apikey", "", "");
    parts.push("query_params.apikey".into());
    first_of(parts)
}

/// The first that is something, in Lua. None of them is nothing, and not `false`, which would be written out.
fn first_of(mut parts: Vec<String>) -> String {
    parts.push("nil".into());
    format!("$({})", parts.join(" or "))
}
