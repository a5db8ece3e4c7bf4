//! What a rule may look at beside the object: only what its author could read, in its author's own namespace.
//!
//! An answer of a webhook tells its reader something about what was looked at. So nothing is looked at that the author of
//! the request could not read with `kubectl get`: the cluster is asked first. Its answers are believed for a moment,
//! lists are shared by those who wait for them, and few questions are under way at once: reviews must not become a burden
//! for the API server. The right to ask is the one of [`crate::telemetry::guard`].

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::authentication::v1::UserInfo;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::api::{ListParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use stanchion_api::names;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::Request;
use crate::lenient::Lenient;

/// How long the cluster's answer about somebody's rights is believed.
const RIGHTS: Duration = Duration::from_secs(30);
/// How long a list is kept for those who wait for it.
const LISTS: Duration = Duration::from_secs(2);
/// How many answers of a kind are remembered.
const REMEMBERED: usize = 256;
/// How many questions are under way at once.
const QUESTIONS: usize = 4;

/// It was not looked at: the author may not read it, or the cluster did not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unseen;

/// Looks at other objects for a rule. Clones share what is remembered.
pub struct Lookup<K> {
    client: Client,
    questions: Arc<Semaphore>,
    rights: Arc<Remembered<Right, bool>>,
    lists: Arc<Remembered<String, Arc<[K]>>>,
}

impl<K> Clone for Lookup<K> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            questions: Arc::clone(&self.questions),
            rights: Arc::clone(&self.rights),
            lists: Arc::clone(&self.lists),
        }
    }
}

/// Who wants to read what.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Right {
    user: String,
    verb: &'static str,
    namespace: String,
    name: Option<String>,
}

impl<K> Lookup<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    /// Looks with this client, which has the operator's rights.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            questions: Arc::new(Semaphore::new(QUESTIONS)),
            rights: Arc::default(),
            lists: Arc::default(),
        }
    }

    /// Reads an object of the request's namespace, if its author may read it.
    pub async fn get(&self, request: &Request, name: &str) -> Result<Option<K>, Unseen> {
        let namespace = namespace(request)?;
        if !names::is_object(name) || !self.may(request, "get", namespace, Some(name)).await? {
            return Err(Unseen);
        }
        let _question = self.questions.acquire().await.map_err(|_| Unseen)?;
        let api: Api<K> = Api::namespaced(self.client.clone(), namespace);
        api.get_opt(name).await.map_err(|_| Unseen)
    }

    /// The objects of the request's namespace, if its author may list them.
    pub async fn list(&self, request: &Request) -> Result<Arc<[K]>, Unseen> {
        let namespace = namespace(request)?;
        if !self.may(request, "list", namespace, None).await? {
            return Err(Unseen);
        }
        let (key, arrived) = (namespace.to_owned(), Instant::now());
        let _question = self.questions.acquire().await.map_err(|_| Unseen)?;
        // Who had the question before may have asked the same. Its list is good for all who waited when it was begun; for
        // one who came later it could lack what was let in meanwhile.
        if let Some(known) = self.lists.get(&key, arrived.elapsed()) {
            return Ok(known);
        }
        let begun = Instant::now();
        let api: Api<Lenient<K>> = Api::namespaced(self.client.clone(), namespace);
        let listed = api.list(&ListParams::default()).await.map_err(|_| Unseen)?;
        let objects: Arc<[K]> = listed
            .items
            .into_iter()
            .filter_map(Lenient::into_object)
            .collect();
        self.lists.put(key, (begun, Arc::clone(&objects)), LISTS);
        Ok(objects)
    }

    /// Asks the cluster whether the author may do this.
    async fn may(
        &self,
        request: &Request,
        verb: &'static str,
        namespace: &str,
        name: Option<&str>,
    ) -> Result<bool, Unseen> {
        let author = &request.user_info;
        let right = Right {
            user: format!("{author:?}"),
            verb,
            namespace: namespace.to_owned(),
            name: name.map(ToOwned::to_owned),
        };
        if let Some(known) = self.rights.get(&right, RIGHTS) {
            return Ok(known);
        }
        let _question = self.questions.acquire().await.map_err(|_| Unseen)?;
        if let Some(known) = self.rights.get(&right, RIGHTS) {
            return Ok(known);
        }
        let review = review::<K>(author, verb, namespace, name);
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let answer = reviews.create(&PostParams::default(), &review).await;
        let allowed = answer
            .map_err(|_| Unseen)?
            .status
            .is_some_and(|status| status.allowed);
        self.rights.put(right, (Instant::now(), allowed), RIGHTS);
        Ok(allowed)
    }
}

/// The namespace that the request is about: the API server says it, and not the object.
fn namespace(request: &Request) -> Result<&str, Unseen> {
    let namespace = request.namespace.as_deref().unwrap_or_default();
    if names::is_namespace(namespace) {
        Ok(namespace)
    } else {
        Err(Unseen)
    }
}

fn review<K: Resource<DynamicType = ()>>(
    author: &UserInfo,
    verb: &str,
    namespace: &str,
    name: Option<&str>,
) -> SubjectAccessReview {
    SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: author.username.clone(),
            groups: author.groups.clone(),
            uid: author.uid.clone(),
            extra: author.extra.clone(),
            resource_attributes: Some(ResourceAttributes {
                group: Some(K::group(&()).into_owned()),
                resource: Some(K::plural(&()).into_owned()),
                verb: Some(verb.into()),
                namespace: Some(namespace.into()),
                name: name.map(Into::into),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    }
}

/// A few answers, each for a while.
struct Remembered<K, V>(Mutex<HashMap<K, (Instant, V)>>);

impl<K, V> Default for Remembered<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash, V: Clone> Remembered<K, V> {
    fn get(&self, key: &K, believed: Duration) -> Option<V> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, value) = known.get(key)?;
        (since.elapsed() <= believed).then(|| value.clone())
    }

    /// Remembers a value and from when it is.
    fn put(&self, key: K, value: (Instant, V), believed: Duration) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, (since, _)| since.elapsed() < believed);
        if known.len() < REMEMBERED {
            known.insert(key, value);
        }
    }
}
