//! Authentication: bearer tokens, `ServiceAccounts` and impersonation.

pub(crate) mod escalation;
mod impersonation;
pub(crate) mod rbac;
pub(crate) mod reviews;
pub(crate) mod tokens;

use std::collections::BTreeMap;

use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::server::Server;

/// The group whose members may do everything.
pub const MASTERS: &str = "system:masters";
const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const ANONYMOUS: &str = "system:anonymous";

/// A user or program that sends requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The name, such as `admin` or `system:serviceaccount:ns:name`.
    pub name: String,
    /// The groups that it belongs to.
    pub groups: Vec<String>,
    /// The uid of a `ServiceAccount`; empty for most others.
    pub uid: String,
    /// Additional attributes, for webhooks and reviews.
    pub extra: BTreeMap<String, Vec<String>>,
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
            .chain([AUTHENTICATED])
            .map(str::to_owned)
            .collect();
        Self {
            name: name.to_owned(),
            groups,
            uid: String::new(),
            extra: BTreeMap::new(),
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

    /// A user without credentials.
    pub fn anonymous() -> Self {
        Self {
            name: ANONYMOUS.to_owned(),
            groups: vec![UNAUTHENTICATED.to_owned()],
            uid: String::new(),
            extra: BTreeMap::new(),
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
        if !self.extra.is_empty() {
            value["extra"] = json!(self.extra);
        }
        value
    }
}

/// Determines the user of a request. `door` is the user of the in-process service, if it has one.
pub(crate) fn authenticate(
    server: &Server,
    request: &Request<Bytes>,
    door: Option<&User>,
) -> Result<User, ApiError> {
    let authorization = request.headers().get("authorization");
    let authorization = authorization.and_then(|value| value.to_str().ok());
    // Other schemes are ignored: such a request has no credentials.
    let token = authorization.and_then(|header| {
        let (scheme, token) = header.trim().split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    let user = match (token, door) {
        (Some(token), _) => server
            .tokens
            .user(token, server)
            .ok_or_else(ApiError::unauthorized)?,
        (None, Some(user)) => user.clone(),
        (None, None) => User::anonymous(),
    };
    impersonation::impersonate(server, request, user)
}
