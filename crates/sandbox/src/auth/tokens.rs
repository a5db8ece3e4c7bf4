//! Bearer tokens: those that the sandbox is started with, and those that it issues for `ServiceAccounts`.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::User;
use crate::server::Server;
use crate::store;

/// Who a token stands for.
#[derive(Debug, Clone)]
enum Holder {
    User(User),
    Account {
        namespace: String,
        name: String,
        uid: String,
        expires: i64,
    },
}

/// All tokens that are valid.
#[derive(Debug, Default)]
pub(crate) struct Tokens(RwLock<HashMap<String, Holder>>);

impl Tokens {
    pub(crate) fn add(&self, token: &str, user: User) {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(token.to_owned(), Holder::User(user));
    }

    /// The holder of a token; that of a `ServiceAccount` ends with the account.
    pub(crate) fn user(&self, token: &str, server: &Server) -> Option<User> {
        let holder = self
            .0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(token)
            .cloned()?;
        match holder {
            Holder::User(user) => Some(user),
            Holder::Account {
                namespace,
                name,
                uid,
                expires,
            } => {
                let account = server
                    .store
                    .get("/serviceaccounts", &store::key(&namespace, &name))?;
                let valid = account.uid() == uid && server.clock.now().as_second() < expires;
                valid.then(|| User {
                    uid,
                    ..User::service_account(&namespace, &name)
                })
            }
        }
    }

    /// Issues a token for a `ServiceAccount`. It reads like a JWT, and is checked by lookup.
    pub(crate) fn issue(
        &self,
        server: &Server,
        namespace: &str,
        name: &str,
        uid: &str,
        audiences: &Value,
        seconds: i64,
    ) -> (String, jiff::Timestamp) {
        let now = server.clock.now();
        let expires = now.as_second() + seconds;
        let claims = json!({
            "aud": audiences, "exp": expires, "iat": now.as_second(), "nbf": now.as_second(),
            "iss": "https://kubernetes.default.svc", "jti": server.clock.uid(),
            "sub": format!("system:serviceaccount:{namespace}:{name}"),
            "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}},
        });
        let header = json!({"alg": "none", "typ": "JWT"});
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let token = format!(
            "{}.{}.{}",
            part(&header),
            part(&claims),
            URL_SAFE_NO_PAD.encode(server.clock.uid())
        );
        let (namespace, name, uid) = (namespace.to_owned(), name.to_owned(), uid.to_owned());
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(
            token.clone(),
            Holder::Account {
                namespace,
                name,
                uid,
                expires,
            },
        );
        (token, jiff::Timestamp::from_second(expires).unwrap_or(now))
    }
}
