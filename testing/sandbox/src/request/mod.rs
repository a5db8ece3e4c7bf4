//! Parses a request: the path here, the query and the media types in separate files.

mod form;
mod query;

use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use percent_encoding::percent_decode_str;
use serde_json::json;

pub(crate) use form::Form;
pub(crate) use query::Query;

use crate::auth::User;
use crate::error::{About, ApiError, Fault, FieldError};
use crate::resource::{Registry, Resource};

const LONGEST_MANAGER: usize = 128;

/// The verbs of resource requests, as in RBAC and in the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl Verb {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }

    pub(crate) const fn writes(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

/// The parsed path of a resource request. The resource need not exist.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) namespace: String,
    pub(crate) plural: String,
    pub(crate) name: String,
    pub(crate) subresource: String,
    /// The path itself requests a watch.
    pub(crate) watch: bool,
}

impl Target {
    /// Parses a path; `None` for a non-resource path.
    pub(crate) fn parse(path: &str) -> Option<Self> {
        let parts: Vec<String> = path
            .trim_matches('/')
            .split('/')
            .map(|part| percent_decode_str(part).decode_utf8_lossy().into_owned())
            .collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        // The deprecated path for a watch.
        let (watch, rest) = match rest {
            ["watch", rest @ ..] => (true, rest),
            rest => (false, rest),
        };
        let (namespace, rest) = match rest {
            // `namespaces/x/status` and `/finalize` are subresources of the namespace itself.
            ["namespaces", namespace, plural, rest @ ..]
                if !(rest.is_empty() && matches!(*plural, "status" | "finalize")) =>
            {
                (*namespace, [&[*plural], rest].concat())
            }
            ["namespaces", name, ..] => (*name, rest.to_vec()),
            _ => ("", rest.to_vec()),
        };
        let (plural, name, subresource) = match rest.as_slice() {
            [plural] => (*plural, "", String::new()),
            [plural, name, subresource @ ..] => (*plural, *name, subresource.join("/")),
            [] => return None,
        };
        Some(Self {
            group: group.to_owned(),
            version: version.to_owned(),
            namespace: namespace.to_owned(),
            plural: plural.to_owned(),
            name: name.to_owned(),
            subresource,
            watch,
        })
    }

    /// The verb of a method.
    pub(crate) fn verb(&self, method: &Method, query: &Query) -> Option<Verb> {
        Some(match (method, self.name.is_empty()) {
            // For a single object `watch` in the query is ignored; in the path it is not.
            (&Method::GET | &Method::HEAD, unnamed) if self.watch || unnamed && query.flag("watch") => {
                Verb::Watch
            }
            (&Method::GET | &Method::HEAD, false) => Verb::Get,
            (&Method::GET | &Method::HEAD, true) => Verb::List,
            (&Method::POST, named) if named || !self.subresource.is_empty() => Verb::Create,
            (&Method::PUT, false) => Verb::Update,
            (&Method::PATCH, false) => Verb::Patch,
            (&Method::DELETE, false) => Verb::Delete,
            (&Method::DELETE, true) => Verb::DeleteCollection,
            _ => return None,
        })
    }

    pub(crate) fn resource(&self, registry: &Registry) -> Option<Arc<Resource>> {
        registry.get(&self.group, &self.version, &self.plural)
    }
}

/// A parsed request for a resource.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) user: User,
    pub(crate) verb: Verb,
    pub(crate) target: Target,
    pub(crate) resource: Arc<Resource>,
    pub(crate) query: Query,
    pub(crate) form: Form,
    pub(crate) content_type: String,
    pub(crate) user_agent: String,
    pub(crate) body: Bytes,
}

impl Call {
    /// The subject of errors about this request.
    pub(crate) fn about(&self) -> About<'_> {
        About {
            group: &self.resource.group,
            kind: &self.resource.plural,
            name: &self.target.name,
        }
    }

    pub(crate) fn key(&self) -> String {
        crate::store::key(&self.namespace(), &self.target.name)
    }

    /// The namespace of the object; empty for cluster-scoped objects.
    pub(crate) fn namespace(&self) -> String {
        if self.resource.namespaced {
            self.target.namespace.clone()
        } else {
            String::new()
        }
    }

    /// The name of this verb's options type.
    pub(crate) fn options(&self) -> &'static str {
        match self.verb {
            Verb::Create => "CreateOptions",
            Verb::Update => "UpdateOptions",
            Verb::Patch => "PatchOptions",
            Verb::Delete | Verb::DeleteCollection => "DeleteOptions",
            Verb::Get | Verb::List | Verb::Watch => "ListOptions",
        }
    }

    pub(crate) fn dry_run(&self) -> Result<bool, ApiError> {
        match self.query.get("dryRun") {
            None | Some("") => Ok(false),
            Some("All") => Ok(true),
            Some(other) => {
                let shown = Some(json!([other]));
                let error =
                    FieldError::new(Fault::NotSupported, "dryRun", shown, "supported values: \"All\"");
                Err(ApiError::invalid_option(self.options(), &error))
            }
        }
    }

    /// Rejects options that are invalid for every write.
    pub(crate) fn check_options(&self) -> Result<(), ApiError> {
        if self.query.text("fieldManager").len() <= LONGEST_MANAGER {
            return Ok(());
        }
        let detail = format!("may not be more than {LONGEST_MANAGER} bytes");
        let error = FieldError::new(Fault::TooLong, "fieldManager", None, detail);
        Err(ApiError::invalid_option(self.options(), &error))
    }

    /// The field manager of the write.
    pub(crate) fn manager(&self) -> String {
        match self.query.get("fieldManager") {
            Some(manager) if !manager.is_empty() => manager.to_owned(),
            _ => self
                .user_agent
                .split('/')
                .next()
                .unwrap_or_default()
                .chars()
                .take(LONGEST_MANAGER)
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_apart() {
        let parse =
            |path| Target::parse(path).map(|t| (t.group, t.namespace, t.plural, t.name, t.subresource));
        let own = |a: [&str; 5]| Some((a[0].into(), a[1].into(), a[2].into(), a[3].into(), a[4].into()));
        assert_eq!(parse("/api/v1/pods"), own(["", "", "pods", "", ""]));
        assert_eq!(parse("/api/v1/namespaces"), own(["", "", "namespaces", "", ""]));
        assert_eq!(
            parse("/api/v1/namespaces/x"),
            own(["", "x", "namespaces", "x", ""])
        );
        assert_eq!(
            parse("/api/v1/namespaces/x/status"),
            own(["", "x", "namespaces", "x", "status"])
        );
        assert_eq!(
            parse("/api/v1/namespaces/x/pods/a/log"),
            own(["", "x", "pods", "a", "log"])
        );
        assert_eq!(
            parse("/apis/apps/v1/namespaces/x/deployments/a/scale"),
            own(["apps", "x", "deployments", "a", "scale"])
        );
        assert_eq!(parse("/version"), None);
        assert_eq!(parse("/apis/apps/v1"), None);
    }
}
