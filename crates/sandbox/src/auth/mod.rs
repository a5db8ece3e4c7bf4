//! Who asks: bearer tokens, `ServiceAccounts` and impersonation.

pub(crate) mod rbac;
pub(crate) mod reviews;
pub(crate) mod tokens;

use http::HeaderMap;
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::server::Server;
use rbac::{Attributes, Decision};

/// The group whose members may do everything.
pub const MASTERS: &str = "system:masters";

/// A person or a program that makes requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The name, such as `admin` or `system:serviceaccount:ns:name`.
    pub name: String,
    /// The groups that it belongs to.
    pub groups: Vec<String>,
    /// The uid of a `ServiceAccount`; empty for others.
    pub uid: String,
}

impl User {
    /// A member of `system:masters`.
    pub fn admin() -> Self {
        Self::new("admin", &[MASTERS])
    }

    /// A user in some groups, and in `system:authenticated`.
    pub fn new(name: &str, groups: &[&str]) -> Self {
        let groups = groups
            .iter()
            .copied()
            .chain(["system:authenticated"])
            .map(str::to_owned)
            .collect();
        Self {
            name: name.to_owned(),
            groups,
            uid: String::new(),
        }
    }

    /// A `ServiceAccount`.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        let all = format!("system:serviceaccounts:{namespace}");
        Self::new(
            &format!("system:serviceaccount:{namespace}:{name}"),
            &["system:serviceaccounts", &all],
        )
    }

    pub(crate) fn anonymous() -> Self {
        Self {
            name: "system:anonymous".to_owned(),
            groups: vec!["system:unauthenticated".to_owned()],
            uid: String::new(),
        }
    }

    pub(crate) fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == MASTERS)
    }

    pub(crate) fn to_value(&self) -> Value {
        let mut value = json!({"username": self.name, "groups": self.groups});
        if !self.uid.is_empty() {
            value["uid"] = json!(self.uid);
        }
        value
    }
}

/// Finds out who sent a request. `door` is who the door already knows its callers to be.
pub(crate) fn authenticate(
    server: &Server,
    headers: &HeaderMap,
    door: Option<&User>,
) -> Result<User, ApiError> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let user = match (header("authorization"), door) {
        (Some(authorization), _) => {
            let token = authorization.strip_prefix("Bearer ").unwrap_or_default();
            server
                .tokens
                .user(token, server)
                .ok_or_else(ApiError::unauthorized)?
        }
        (None, Some(user)) => user.clone(),
        (None, None) => User::anonymous(),
    };
    let Some(name) = header("impersonate-user") else {
        return Ok(user);
    };
    let groups: Vec<&str> = headers
        .get_all("impersonate-group")
        .iter()
        .filter_map(|value| value.to_str().ok())
        .collect();
    let wanted = groups
        .iter()
        .map(|group| ("groups", *group))
        .chain([("users", name)]);
    for (plural, name) in wanted {
        let attributes = Attributes {
            verb: "impersonate",
            plural,
            name,
            ..Attributes::default()
        };
        if let Decision::Denied(why) = rbac::authorize(server, &user, &attributes) {
            let about = crate::error::About {
                group: "",
                kind: plural,
                name,
            };
            return Err(ApiError::forbidden(about, &why));
        }
    }
    Ok(User::new(name, &groups))
}
