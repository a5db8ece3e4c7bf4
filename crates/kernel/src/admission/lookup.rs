//! Reads of other objects in a webhook: only what the author of the request may read, in the request's namespace.
//!
//! The answer of a webhook reveals something about the objects that it read. So it reads only what the author could
//! read with `kubectl get`: it asks the API server first, with a `SubjectAccessReview`. The results are cached for a
//! moment, concurrent requests share their lists, and only a few requests run at the same time, so that reviews do not
//! overload the API server. The permission for these reviews is that of [`crate::telemetry::guard`].

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReviewSpec};
use kube::api::ListParams;
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use stanchion_api::names;
use tokio::time::Instant;

use super::Request;
use crate::lenient::Lenient;
use crate::reviews::{Remembered, Reviews};

/// How long the result of a `SubjectAccessReview` is cached.
const PERMISSION_TTL: Duration = Duration::from_secs(30);
/// How long a list is kept for requests that wait for it.
const LISTS: Duration = Duration::from_secs(2);

/// The object was not read: the author may not read it, or the API server did not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unseen;

/// Reads other objects for a rule. Clones share the cache.
pub struct Lookup<K> {
    reviews: Arc<Reviews>,
    permissions: Arc<Remembered<Permission, bool>>,
    lists: Arc<Remembered<String, Arc<[K]>>>,
}

impl<K> Clone for Lookup<K> {
    fn clone(&self) -> Self {
        Self {
            reviews: Arc::clone(&self.reviews),
            permissions: Arc::clone(&self.permissions),
            lists: Arc::clone(&self.lists),
        }
    }
}

/// A user and what the user wants to read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Permission {
    user: String,
    verb: &'static str,
    namespace: String,
    name: Option<String>,
}

impl<K> Lookup<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    /// Reads with this client, which has the operator's permissions.
    pub fn new(client: Client) -> Self {
        Self {
            reviews: Arc::new(Reviews::new(client)),
            permissions: Arc::new(Remembered::new(PERMISSION_TTL)),
            lists: Arc::new(Remembered::new(LISTS)),
        }
    }

    /// Reads an object in the request's namespace, if the author may read it.
    pub async fn get(&self, request: &Request, name: &str) -> Result<Option<K>, Unseen> {
        let namespace = namespace(request)?;
        if !names::is_object(name) || !self.may(request, "get", namespace, Some(name)).await? {
            return Err(Unseen);
        }
        let _question = self.reviews.question().await;
        let api: Api<K> = Api::namespaced(self.reviews.client.clone(), namespace);
        api.get_opt(name).await.map_err(|_| Unseen)
    }

    /// The objects in the request's namespace, if the author may list them.
    pub async fn list(&self, request: &Request) -> Result<Arc<[K]>, Unseen> {
        let namespace = namespace(request)?;
        if !self.may(request, "list", namespace, None).await? {
            return Err(Unseen);
        }
        let (key, arrived) = (namespace.to_owned(), Instant::now());
        let _question = self.reviews.question().await;
        // The previous holder of the permit may have requested the same list. Its list is valid for all requests that
        // were waiting when it began; for a later request it could lack new objects.
        if let Some(known) = self.lists.get_since(&key, arrived.elapsed()) {
            return Ok(known);
        }
        let begun = Instant::now();
        let api: Api<Lenient<K>> = Api::namespaced(self.reviews.client.clone(), namespace);
        let listed = api.list(&ListParams::default()).await.map_err(|_| Unseen)?;
        let objects: Arc<[K]> = listed
            .items
            .into_iter()
            .filter_map(Lenient::into_object)
            .collect();
        self.lists.put(key, begun, Arc::clone(&objects));
        Ok(objects)
    }

    /// Asks the API server whether the author may do this.
    async fn may(
        &self,
        request: &Request,
        verb: &'static str,
        namespace: &str,
        name: Option<&str>,
    ) -> Result<bool, Unseen> {
        let author = &request.user_info;
        let permission = Permission {
            user: format!("{author:?}"),
            verb,
            namespace: namespace.to_owned(),
            name: name.map(ToOwned::to_owned),
        };
        if let Some(known) = self.permissions.get(&permission) {
            return Ok(known);
        }
        let _question = self.reviews.question().await;
        if let Some(known) = self.permissions.get(&permission) {
            return Ok(known);
        }
        let resource = ResourceAttributes {
            group: Some(K::group(&()).into_owned()),
            resource: Some(K::plural(&()).into_owned()),
            verb: Some(verb.into()),
            namespace: Some(namespace.into()),
            name: name.map(Into::into),
            ..ResourceAttributes::default()
        };
        let what = SubjectAccessReviewSpec {
            resource_attributes: Some(resource),
            ..SubjectAccessReviewSpec::default()
        };
        let asked = Instant::now();
        let allowed = self
            .reviews
            .is_allowed(author.clone(), what)
            .await
            .map_err(|_| Unseen)?;
        self.permissions.put(permission, asked, allowed);
        Ok(allowed)
    }
}

/// The namespace of the request: it comes from the API server, and not from the object.
fn namespace(request: &Request) -> Result<&str, Unseen> {
    let namespace = request.namespace.as_deref().unwrap_or_default();
    if names::is_namespace(namespace) {
        Ok(namespace)
    } else {
        Err(Unseen)
    }
}
