//! Enqueues an object from the pass of another one.
//!
//! Two objects of a kind can conflict although neither refers to the other: the first must be reconciled when the
//! second appears. The index of reads does not cover that, so the second one enqueues the first.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use kube::Resource;
use kube::core::ApiResource;

use super::references::{Key, kind_key};

type Wake = Arc<dyn Fn(Key) + Send + Sync>;

/// The queues of all controllers of an operator, by kind. Clones share them.
#[derive(Clone, Default)]
pub struct Bells(Arc<Mutex<HashMap<String, Vec<Wake>>>>);

impl Bells {
    /// Adds a controller's queue. A kind has one for each scope.
    pub(crate) fn hang<K: Resource<DynamicType = ()>>(&self, wake: Wake) {
        let kind = kind_key(&ApiResource::erase::<K>(&()));
        let mut bells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        bells.entry(kind).or_default().push(wake);
    }

    /// Enqueues an object. Controllers without this object ignore it.
    pub(crate) fn ring<K: Resource<DynamicType = ()>>(&self, key: &Key) {
        let kind = kind_key(&ApiResource::erase::<K>(&()));
        let bells = {
            let bells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            bells.get(&kind).cloned().unwrap_or_default()
        };
        for wake in bells {
            wake(key.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};

    use super::*;

    #[test]
    fn only_the_bells_of_the_kind_ring() {
        let (bells, heard) = (Bells::default(), Arc::new(Mutex::new(Vec::new())));
        for scope in ["one", "two"] {
            let heard = Arc::clone(&heard);
            bells.hang::<Secret>(Arc::new(move |key: Key| {
                heard.lock().unwrap().push((scope, key.name));
            }));
        }
        let key = Key {
            namespace: "ns".into(),
            name: "it".into(),
        };
        bells.ring::<ConfigMap>(&key);
        assert!(heard.lock().unwrap().is_empty());
        bells.ring::<Secret>(&key);
        assert_eq!(
            *heard.lock().unwrap(),
            [("one", "it".to_owned()), ("two", "it".to_owned())]
        );
    }
}
