//! Bearer tokens: those from the builder, and those that the sandbox issues for `ServiceAccounts`.

use std::collections::HashMap;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use parking_lot::RwLock;
use serde_json::{Value, json};

use super::User;
use crate::server::Server;
use crate::store::{self, Object};

/// The default audience of tokens: this server.
pub(crate) const AUDIENCE: &str = "https://kubernetes.default.svc";

/// An object whose deletion invalidates a token.
#[derive(Debug, Clone)]
pub(crate) struct Bound {
    pub(crate) storage: &'static str,
    pub(crate) key: String,
    pub(crate) uid: String,
}

/// A requested token.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) account: &'a Object,
    pub(crate) audiences: Vec<String>,
    pub(crate) seconds: i64,
    pub(crate) bound: Option<Bound>,
}

#[derive(Debug, Clone)]
struct Account {
    namespace: String,
    name: String,
    uid: String,
    audiences: Vec<String>,
    expires: i64,
    bound: Option<Bound>,
    /// The id of the token.
    id: String,
}

/// The holder of a token.
#[derive(Debug, Clone)]
enum Holder {
    User(User),
    Account(Box<Account>),
}

/// All valid tokens.
#[derive(Debug, Default)]
pub(crate) struct Tokens(RwLock<HashMap<String, Holder>>);

impl Tokens {
    pub(crate) fn add(&self, token: &str, user: User) {
        self.0.write().insert(token.to_owned(), Holder::User(user));
    }

    /// The holder of a token for this server.
    pub(crate) fn user(&self, token: &str, server: &Server) -> Option<User> {
        self.review(token, &[AUDIENCE.to_owned()], server)
            .ok()
            .map(|(user, _)| user)
    }

    /// The holder of a token and its matching audiences, or why it is not valid. The token of a `ServiceAccount`
    /// becomes invalid with the account and with the object that it is bound to.
    pub(crate) fn review(
        &self,
        token: &str,
        audiences: &[String],
        server: &Server,
    ) -> Result<(User, Vec<String>), String> {
        const UNKNOWN: &str = "invalid bearer token";
        let held = self.0.read();
        let holder = held.get(token).cloned();
        drop(held);
        match holder.ok_or(UNKNOWN)? {
            Holder::User(user) => Ok((user, audiences.to_vec())),
            Holder::Account(account) => account
                .check(audiences, server)
                .map_err(|why| format!("[{UNKNOWN}, {why}]")),
        }
    }

    /// Issues a token for a `ServiceAccount`. It looks like a JWT, and is checked by lookup.
    pub(crate) fn issue(&self, server: &Server, wanted: Wanted<'_>) -> (String, jiff::Timestamp) {
        let now = server.clock.now();
        let expires = now.as_second() + wanted.seconds;
        let account = Account {
            namespace: wanted.account.namespace().to_owned(),
            name: wanted.account.name().to_owned(),
            uid: wanted.account.uid().to_owned(),
            audiences: wanted.audiences,
            expires,
            bound: wanted.bound,
            id: server.clock.uid(),
        };
        let claims = json!({
            "aud": account.audiences, "exp": expires, "iat": now.as_second(), "nbf": now.as_second(),
            "iss": AUDIENCE, "jti": account.id,
            "sub": format!("system:serviceaccount:{}:{}", account.namespace, account.name),
            "kubernetes.io": {
                "namespace": account.namespace, "serviceaccount": {"name": account.name, "uid": account.uid},
            },
        });
        let header = json!({"alg": "none", "typ": "JWT"});
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let token = format!(
            "{}.{}.{}",
            part(&header),
            part(&claims),
            URL_SAFE_NO_PAD.encode(server.clock.uid())
        );
        self.0
            .write()
            .insert(token.clone(), Holder::Account(Box::new(account)));
        (token, jiff::Timestamp::from_second(expires).unwrap_or(now))
    }
}

impl Account {
    fn check(&self, audiences: &[String], server: &Server) -> Result<(User, Vec<String>), String> {
        if server.clock.now().as_second() >= self.expires {
            return Err("service account token has expired".to_owned());
        }
        let common: Vec<String> = audiences
            .iter()
            .filter(|audience| self.audiences.contains(audience))
            .cloned()
            .collect();
        if common.is_empty() {
            let quoted = |list: &[String]| {
                let quoted: Vec<String> = list.iter().map(|word| format!("{word:?}")).collect();
                quoted.join(" ")
            };
            return Err(format!(
                "token audiences [{}] is invalid for the target audiences [{}]",
                quoted(&self.audiences),
                quoted(audiences)
            ));
        }
        let key = store::key(&self.namespace, &self.name);
        let account = server.store.get("/serviceaccounts", &key);
        let account = account.ok_or_else(|| format!("serviceaccounts {:?} not found", self.name))?;
        if account.uid() != self.uid {
            return Err(format!(
                "service account UID ({}) does not match claim ({})",
                account.uid(),
                self.uid
            ));
        }
        let mut user = User::service_account(&self.namespace, &self.name);
        user.uid.clone_from(&self.uid);
        let mut extra = |key: &str, value: &str| {
            user.extra.insert(
                format!("authentication.kubernetes.io/{key}"),
                vec![value.to_owned()],
            );
        };
        extra("credential-id", &format!("JTI={}", self.id));
        if let Some(bound) = &self.bound {
            let found = server.store.get(bound.storage, &bound.key);
            let found = found.filter(|found| found.uid() == bound.uid);
            let found = found.ok_or("service account token has been invalidated")?;
            if bound.storage == "/pods" {
                extra("pod-name", found.name());
                extra("pod-uid", found.uid());
            }
        }
        Ok((user, common))
    }
}
