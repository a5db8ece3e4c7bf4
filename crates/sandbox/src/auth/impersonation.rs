//! Acting as somebody else: the headers `Impersonate-*`, each of which needs a right of its own.

use std::collections::BTreeMap;

use http::HeaderMap;
use percent_encoding::percent_decode_str;

use super::rbac::{self, Attributes, Decision};
use super::{AUTHENTICATED, UNAUTHENTICATED, User};
use crate::error::{About, ApiError};
use crate::server::Server;

const GROUP: &str = "authentication.k8s.io";
const EXTRA: &str = "impersonate-extra-";

/// Whom the headers ask to be.
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

    /// Everything that is asked for, as what it takes the right to impersonate.
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

/// The namespace and the name in the name of a `ServiceAccount`'s user.
pub(crate) fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    (!namespace.is_empty() && !name.is_empty() && !name.contains(':')).then_some((namespace, name))
}

/// Whom a request is of, if `user` sent it.
pub(crate) fn impersonate(server: &Server, headers: &HeaderMap, user: User) -> Result<User, ApiError> {
    let wanted = Wanted::of(headers);
    let rights = wanted.rights();
    if rights.is_empty() {
        return Ok(user);
    }
    if wanted.user.is_empty() {
        let asked: Vec<String> = rights
            .iter()
            .map(|right| format!("{} {}", right.plural, right.name))
            .collect();
        return Err(ApiError::bad_request(format!(
            "requested [{}] without impersonating a user name",
            asked.join(", ")
        )));
    }
    for right in &rights {
        if let Decision::Denied(why) = rbac::authorize(server, &user, right) {
            let about = About {
                group: right.group,
                kind: right.plural,
                name: right.name,
            };
            return Err(ApiError::forbidden(about, &why));
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
