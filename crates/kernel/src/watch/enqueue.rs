//! Enqueues an object from the pass of another one.
//!
//! Two objects of a kind can conflict although neither refers to the other: the first must be reconciled when the
//! second appears. The index of reads does not cover that, so the second one enqueues the first.

use std::collections::HashMap;
use std::sync::Arc;

use kube::Resource;
use kube::core::ApiResource;
use parking_lot::Mutex;

use super::dependencies::{Key, kind_key};

type Wake = Arc<dyn Fn(Key) + Send + Sync>;

/// The queues of all controllers of an operator, by kind. Clones share them.
#[derive(Clone, Default)]
pub struct Enqueuers(Arc<Mutex<HashMap<String, Vec<Wake>>>>);

impl Enqueuers {
    /// Adds a controller's queue. A kind has one for each scope.
    pub(crate) fn register<K: Resource<DynamicType = ()>>(&self, wake: Wake) {
        let kind = kind_key(&ApiResource::erase::<K>(&()));
        let mut enqueuers = self.0.lock();
        enqueuers.entry(kind).or_default().push(wake);
    }

    /// Enqueues an object. Controllers without this object ignore it.
    pub(crate) fn enqueue<K: Resource<DynamicType = ()>>(&self, key: &Key) {
        let kind = kind_key(&ApiResource::erase::<K>(&()));
        let enqueuers = {
            let enqueuers = self.0.lock();
            enqueuers.get(&kind).cloned().unwrap_or_default()
        };
        for wake in enqueuers {
            wake(key.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};

    use super::*;

    #[test]
    fn enqueues_only_objects_of_the_kind() {
        let (enqueuers, enqueued) = (Enqueuers::default(), Arc::new(Mutex::new(Vec::new())));
        for scope in ["one", "two"] {
            let enqueued = Arc::clone(&enqueued);
            enqueuers.register::<Secret>(Arc::new(move |key: Key| {
                enqueued.lock().push((scope, key.name));
            }));
        }
        let key = Key {
            namespace: "ns".into(),
            name: "it".into(),
        };
        enqueuers.enqueue::<ConfigMap>(&key);
        assert!(enqueued.lock().is_empty());
        enqueuers.enqueue::<Secret>(&key);
        assert_eq!(
            *enqueued.lock(),
            [("one", "it".to_owned()), ("two", "it".to_owned())]
        );
    }
}
