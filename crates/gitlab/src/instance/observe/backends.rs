//! Reads the objects that other operators run for an instance.

use std::collections::{BTreeMap, HashMap};

use futures::future::{join_all, try_join_all};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use kube::core::{DynamicObject, ObjectMeta};
use stanchion_api::gitlab::GitlabProfileSpec;
use stanchion_kernel::apply::Written;
use stanchion_kernel::external::{ExternalKind, ServedKind};
use stanchion_kernel::watch::MANAGED_BY;
use stanchion_kernel::{Problem, Reader};

use super::super::cache::Cached;
use super::super::target::Wanted;
use crate::backends::kinds::{ELASTICSEARCH, PERCONA, REDIS, REDIS_REPLICATION, REDIS_SENTINEL};
use crate::backends::{elasticsearch, percona, redis};

/// The backends that other operators run.
#[derive(Clone, Default)]
pub struct Backends {
    pub objects: HashMap<&'static ExternalKind, Backend>,
    /// The `StatefulSets` of the Redis, by name.
    pub stateful_sets: BTreeMap<String, StatefulSet>,
}

/// An object of another operator.
#[derive(Clone)]
pub struct Backend {
    /// The served version of the kind, if the cluster serves it.
    pub served: Option<ServedKind>,
    pub object: Option<DynamicObject>,
}

impl Backends {
    /// The object of another operator, and whether its kind is served.
    pub fn of(&self, kind: &'static ExternalKind) -> &Backend {
        const NONE: &Backend = &Backend {
            served: None,
            object: None,
        };
        self.objects.get(kind).unwrap_or(NONE)
    }
}

impl Backends {
    /// What later passes need of them, after these writes.
    pub(crate) fn after(&self, written: &Written) -> Self {
        let mut after = self.clone();
        for (kind, backend) in &mut after.objects {
            // Its name does not change.
            if let Some(object) = written.objects(kind.kind).last() {
                backend.object = Some(object.clone());
            }
            if let Some(object) = &mut backend.object {
                object.metadata.managed_fields = None;
            }
        }
        for set in after.stateful_sets.values_mut() {
            set.metadata.managed_fields = None;
            if let Some(spec) = &mut set.spec {
                spec.template = PodTemplateSpec::default();
            }
        }
        after
    }
}

impl Backend {
    /// Whether it exists and the operator did not create it: it may be somebody's database.
    pub(crate) fn is_somebody_elses(&self) -> bool {
        let object = self.object.as_ref();
        object.is_some_and(|object| !is_made_here(&object.metadata))
    }
}

/// Whether the operator created it.
pub(crate) fn is_made_here(meta: &ObjectMeta) -> bool {
    let label = meta.labels.as_ref().and_then(|labels| labels.get(MANAGED_BY.0));
    label.map(String::as_str) == Some(MANAGED_BY.1)
}

/// The objects that other operators run, or will run.
pub(super) async fn backends(
    read: &Reader,
    cached: Option<&Cached>,
    wanted: &Wanted,
    profile: Option<&GitlabProfileSpec>,
) -> Result<Backends, Problem> {
    let name = wanted.name.as_str();
    let mut objects: Vec<(&'static ExternalKind, String)> = Vec::new();
    let topology = wanted
        .requests(profile.map(|profile| &profile.defaults))
        .redis()
        .topology;
    if wanted.spec.postgres.managed {
        objects.push((&PERCONA, percona::name(name)));
    }
    if wanted.spec.redis.managed {
        objects.extend(
            redis::kinds(topology)
                .iter()
                .map(|kind| (*kind, redis::name(name))),
        );
    }
    if wanted.needs_elasticsearch() {
        objects.push((&ELASTICSEARCH, elasticsearch::name(name)));
    }
    let found = try_join_all(objects.into_iter().map(async |(kind, name)| {
        let served = read.served(kind).await?;
        let known = cached.and_then(|cached| cached.backends.objects.get(kind));
        let known = known.filter(|known| known.served == served);
        let object = match (&served, known) {
            (None, _) => None,
            (Some(served), Some(known)) if read.is_external_unchanged(&served.resource, &name) => {
                known.object.clone()
            }
            (Some(served), _) => read.get_external(&served.resource, &name).await?,
        };
        Ok::<_, Problem>((kind, Backend { served, object }))
    }))
    .await?;
    let names = if wanted.spec.redis.managed {
        redis::stateful_sets(name, topology)
    } else {
        Vec::new()
    };
    let sets = try_join_all(names.into_iter().map(async |name| {
        let set: Option<StatefulSet> = match cached.filter(|_| read.is_unchanged::<StatefulSet>(&name)) {
            Some(cached) => cached.backends.stateful_sets.get(&name).cloned(),
            None => read.get(&name).await?,
        };
        Ok::<_, Problem>(set.map(|set| (name, set)))
    }))
    .await?;
    Ok(Backends {
        objects: found.into_iter().collect(),
        stateful_sets: sets.into_iter().flatten().collect(),
    })
}

/// The objects that other operators run for an instance, independent of its current spec. Only an event lists them: a
/// kind that cannot be read, for example because its operator is too old, does not keep the instance.
pub(in super::super) async fn retained(read: &Reader, instance: &str) -> Vec<String> {
    let objects = [
        (&PERCONA, percona::name(instance)),
        (&REDIS, redis::name(instance)),
        (&REDIS_REPLICATION, redis::name(instance)),
        (&REDIS_SENTINEL, redis::name(instance)),
        (&ELASTICSEARCH, elasticsearch::name(instance)),
    ];
    let found = join_all(objects.into_iter().map(async |(kind, name)| {
        let served = read.served(kind).await.ok().flatten()?;
        let object = read.get_external(&served.resource, &name).await.ok().flatten();
        object.map(|_| format!("{} {name}", kind.kind))
    }))
    .await;
    found.into_iter().flatten().collect()
}
