//! Third-party kinds: their CRD may be missing, be installed later, or be served in another version.
//!
//! A controller declares them once, with the versions that it can write. Their objects wake like any other while the
//! kind is served. When that changes, the kernel wakes the objects whose passes asked for the kind. So nothing has to
//! be restarted if the other operator is installed after this one.

pub(crate) mod watch;

use std::collections::HashMap;
use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::core::{ApiResource, GroupVersionKind};
use parking_lot::Mutex;

use crate::watch::dependencies::Reference;

/// A third-party kind.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ExternalKind {
    /// API group.
    pub group: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Plural.
    pub plural: &'static str,
    /// The versions that the controller can write, the preferred one first.
    pub versions: &'static [&'static str],
}

impl ExternalKind {
    /// The name of its CRD.
    pub fn definition(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// The kind in one version.
    pub fn at(&self, version: &str) -> ApiResource {
        let kind = GroupVersionKind::gvk(self.group, version, self.kind);
        ApiResource::from_gvk_with_plural(&kind, self.plural)
    }

    /// Its CRD, as a reference.
    pub(crate) fn reference(&self) -> Reference {
        let resource = ApiResource::erase::<CustomResourceDefinition>(&());
        Reference::new(&resource, None, &self.definition())
    }
}

/// A kind as the cluster serves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedKind {
    /// The kind in the preferred served version.
    pub resource: ApiResource,
    /// All versions in [`ExternalKind::versions`] that are served: they show how old the other operator is.
    pub versions: Vec<&'static str>,
}

/// The last result of discovery for each kind. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct DiscoveryCache(Arc<Mutex<HashMap<&'static ExternalKind, ServedKind>>>);

impl DiscoveryCache {
    /// The last result.
    pub(crate) fn last(&self, kind: &'static ExternalKind) -> Option<ServedKind> {
        let served = self.0.lock();
        served.get(kind).cloned()
    }

    /// Records a result.
    pub(crate) fn note(&self, kind: &'static ExternalKind, found: Option<&ServedKind>) {
        let mut served = self.0.lock();
        match found {
            Some(found) => served.insert(kind, found.clone()),
            None => served.remove(kind),
        };
    }
}

/// How the cluster serves a kind, if it does in a version that the controller can write.
pub(crate) async fn discover(
    client: &Client,
    kind: &'static ExternalKind,
) -> Result<Option<ServedKind>, kube::Error> {
    let mut versions = Vec::new();
    for version in kind.versions {
        let api_version = format!("{}/{version}", kind.group);
        match client.list_api_group_resources(&api_version).await {
            Ok(list) if list.resources.iter().any(|served| served.name == kind.plural) => {
                versions.push(*version);
            }
            Ok(_) => {}
            // The response for a missing version is not a Status, so only its code counts.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(error),
        }
    }
    Ok(versions.first().copied().map(|best| ServedKind {
        resource: kind.at(best),
        versions,
    }))
}
