//! Kinds that somebody else defines: they may not be there, come later, or be served in another version.
//!
//! A controller names them once, with the versions that it can write. Their objects wake like any other as long as
//! the kind is served; that it is, or no longer is, wakes whoever asked for it. So nothing has to be restarted
//! when the other operator is installed after this one.

mod discovery;
pub(crate) mod watch;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::{ApiResource, GroupVersionKind};

pub(crate) use self::discovery::discover;
use crate::watch::references::Reference;

/// A kind of somebody else's.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Foreign {
    /// API group.
    pub group: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Plural.
    pub plural: &'static str,
    /// The versions that can be written, the best one first.
    pub versions: &'static [&'static str],
}

impl Foreign {
    /// The name of its definition.
    pub fn definition(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// The kind in one version.
    pub fn at(&self, version: &str) -> ApiResource {
        let kind = GroupVersionKind::gvk(self.group, version, self.kind);
        ApiResource::from_gvk_with_plural(&kind, self.plural)
    }

    /// Its definition, as something that can be read.
    pub(crate) fn reference(&self) -> Reference {
        let resource = ApiResource::erase::<CustomResourceDefinition>(&());
        Reference::new(&resource, None, &self.definition())
    }
}

/// A kind as the cluster serves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// In the best version.
    pub resource: ApiResource,
    /// All versions of [`Foreign::versions`] that are served: they tell how old the other operator is.
    pub versions: Vec<&'static str>,
}

/// How each kind was last found. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Catalogue(Arc<Mutex<HashMap<&'static Foreign, Served>>>);

impl Catalogue {
    /// What was found last.
    pub(crate) fn last(&self, kind: &'static Foreign) -> Option<Served> {
        let served = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        served.get(kind).cloned()
    }

    /// Notes what was found now.
    pub(crate) fn note(&self, kind: &'static Foreign, found: Option<&Served>) {
        let mut served = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match found {
            Some(found) => served.insert(kind, found.clone()),
            None => served.remove(kind),
        };
    }
}
