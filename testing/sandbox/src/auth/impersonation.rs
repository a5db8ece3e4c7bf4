//! Impersonation: the headers `Impersonate-*`, each of which needs its own permission.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderMap, Request};
use percent_encoding::percent_decode_str;

use super::rbac::{self, Attributes};
use super::{AUTHENTICATED, UNAUTHENTICATED, User};
use crate::error::ApiError;
use crate::request::{Query, Target};
use crate::server::Server;

const GROUP: &str = "authentication.k8s.io";
const EXTRA: &str = "impersonate-extra-";

/// The user that the headers ask for.
struct Wanted<'a> {
    user: &'a str,
    groups: Vec<&'a str>,
    uid: &'a str,
    extra: BTreeMap<String, Vec<String>>,
}

impl<'a> Wanted<'a> {
    fn of(headers: &'a HeaderMap) -> Self {
        let all = |name: &str| {
            let values = headers.get_all(name).iter();
            values.filter_map(|value| value.to_str().ok())
        };
        let mut extra = BTreeMap::<String, Vec<String>>::new();
        for (name, value) in headers {
            if let (Some(key), Ok(value)) = (name.as_str().strip_prefix(EXTRA), value.to_str()) {
                let key = percent_decode_str(key).decode_utf8_lossy().into_owned();
                extra.entry(key).or_default().push(value.to_owned());
            }
        }
        Self {
            user: all("impersonate-user").next().unwrap_or_default(),
            groups: all("impersonate-group").collect(),
            uid: all("impersonate-uid").next().unwrap_or_default(),
            extra,
        }
    }

    /// The permissions that the headers need.
    fn rights(&self) -> Vec<Attributes<'_>> {
        let right = |group, plural, name| Attributes {
            verb: "impersonate",
            group,
            plural,
            name,
            ..Attributes::default()
        };
        let user = match service_account(self.user) {
            Some((namespace, name)) => Attributes {
                namespace,
                ..right("", "serviceaccounts", name)
            },
            None => right("", "users", self.user),
        };
        let mut rights: Vec<Attributes<'_>> = Some(user)
            .filter(|user| !user.name.is_empty())
            .into_iter()
            .chain(self.groups.iter().map(|group| right("", "groups", group)))
            .collect();
        for (key, values) in &self.extra {
            rights.extend(values.iter().map(|value| Attributes {
                subresource: key,
                ..right(GROUP, "userextras", value)
            }));
        }
        if !self.uid.is_empty() {
            rights.push(right(GROUP, "uids", self.uid));
        }
        rights
    }

    /// The user in Go's format.
    fn in_go(&self) -> String {
        let list = |words: &[&str]| {
            let quoted: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
            format!("[]string{{{}}}", quoted.join(", "))
        };
        let groups = if self.groups.is_empty() {
            "[]string(nil)".to_owned()
        } else {
            list(&self.groups)
        };
        let extra = if self.extra.is_empty() {
            "map[string][]string(nil)".to_owned()
        } else {
            let pairs = self.extra.iter().map(|(key, values)| {
                let values: Vec<&str> = values.iter().map(String::as_str).collect();
                format!("{key:?}:{}", list(&values))
            });
            format!("map[string][]string{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        };
        format!(
            "&user.DefaultInfo{{Name:{:?}, UID:{:?}, Groups:{groups}, Extra:{extra}}}",
            self.user, self.uid
        )
    }

    /// The error for a user who may not impersonate: even this single request may not be made as another user. The
    /// permissions that the message names are new in Kubernetes, and the sandbox does not support them.
    fn refusal(&self, server: &Server, user: &User, request: &Request<Bytes>) -> Option<ApiError> {
        let mode = if service_account(self.user).is_some() {
            "serviceaccount"
        } else if self.user.starts_with("system:node:") {
            "arbitrary-node"
        } else {
            "user-info"
        };
        let target = Target::parse(request.uri().path());
        let query = Query::parse(request.uri().query().unwrap_or_default());
        let (plain, method) = match &target {
            Some(target) => (
                Attributes::of(target, target.verb(request.method(), &query)?, &query),
                String::new(),
            ),
            None => (
                Attributes {
                    path: Some(request.uri().path()),
                    ..Attributes::default()
                },
                request.method().as_str().to_lowercase(),
            ),
        };
        let verb = format!("impersonate-on:{mode}:{}{method}", plain.verb);
        server.authorize(user, &Attributes { verb: &verb, ..plain }).err()
    }

    fn into_user(self) -> User {
        let mut groups: Vec<String> = match service_account(self.user) {
            Some((namespace, name)) if self.groups.is_empty() => {
                User::service_account(namespace, name).groups
            }
            _ => self.groups.iter().map(|&group| group.to_owned()).collect(),
        };
        let known = |group: &str| groups.iter().any(|known| known == group);
        let missing = match self.user {
            super::ANONYMOUS => (!known(UNAUTHENTICATED)).then_some(UNAUTHENTICATED),
            _ => (!known(AUTHENTICATED) && !known(UNAUTHENTICATED)).then_some(AUTHENTICATED),
        };
        groups.extend(missing.map(str::to_owned));
        User {
            name: self.user.to_owned(),
            groups,
            uid: self.uid.to_owned(),
            extra: self.extra,
        }
    }
}

/// The namespace and the name in the user name of a `ServiceAccount`.
fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    (!namespace.is_empty() && !name.is_empty() && !name.contains(':')).then_some((namespace, name))
}

/// The effective user of a request that `user` sent.
pub(crate) fn impersonate(server: &Server, request: &Request<Bytes>, user: User) -> Result<User, ApiError> {
    let wanted = Wanted::of(request.headers());
    let rights = wanted.rights();
    if rights.is_empty() {
        return Ok(user);
    }
    if wanted.user.is_empty() {
        return Err(ApiError::bad_request(format!(
            "requested {} without impersonating a user name",
            wanted.in_go()
        )));
    }
    for right in &rights {
        if let Err(error) = server.authorize(&user, right) {
            return Err(if rbac::may_ever(server, &user, "impersonate") {
                error
            } else {
                wanted.refusal(server, &user, request).unwrap_or(error)
            });
        }
    }
    Ok(wanted.into_user())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(headers: &[(&'static str, &'static str)]) -> Vec<String> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        Wanted::of(&map).into_user().groups
    }

    #[test]
    fn groups_follow_from_the_user_unless_they_are_named() {
        let robot = ("impersonate-user", "system:serviceaccount:ns:robot");
        for (headers, wanted) in [
            (vec![("impersonate-user", "eve")], vec![AUTHENTICATED]),
            (
                vec![robot],
                vec![
                    "system:serviceaccounts",
                    "system:serviceaccounts:ns",
                    AUTHENTICATED,
                ],
            ),
            (vec![robot, ("impersonate-group", "g")], vec!["g", AUTHENTICATED]),
            (
                vec![("impersonate-user", "eve"), ("impersonate-group", AUTHENTICATED)],
                vec![AUTHENTICATED],
            ),
            (
                vec![("impersonate-user", "system:anonymous")],
                vec![UNAUTHENTICATED],
            ),
        ] {
            assert_eq!(groups(&headers), wanted, "{headers:?}");
        }
    }
}
