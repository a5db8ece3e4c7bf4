//! Checks whether cached results are still valid, without any request.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Resource;
use stanchion_kernel::Reader;

use super::cache::{ProjectCache, Resolved};
use super::children::Children;
use super::target::Wanted;

/// How long the last dependency check stays valid, if the project is converged and none of its inputs changed.
pub fn converged(
    cache: &ProjectCache,
    reader: &Reader,
    wanted: &Wanted,
    children: &Children,
    within: Duration,
) -> Option<Duration> {
    let (before, left) = cache.converged(&reader.parent().key, within)?;
    let same = before.generation == wanted.generation
        && before.rotate == wanted.rotate
        && children.fingerprint() == Some(before.children);
    let changed =
        changed::<Secret>(reader, &before.secrets) + changed::<ConfigMap>(reader, &before.config_maps);
    (same && changed == 0 && !is_over(wanted.before.previous_until)).then_some(left)
}

/// The cached results, if none of their inputs can have changed: an unchanged spec causes no read.
pub fn resolved(
    cache: &ProjectCache,
    reader: &Reader,
    wanted: &Wanted,
    within: Duration,
) -> Option<Resolved> {
    let resolved = cache.resolved(&reader.parent().key, &wanted.reading(), within)?;
    let changed = changed::<Secret>(reader, &wanted.secret_names());
    // While new keys are published, the progress of the rollouts decides what comes next.
    let keys = &resolved.render_inputs.keys;
    let waits = keys.published_at.is_some() || is_over(keys.previous_until);
    (changed == 0 && !waits).then_some(resolved)
}

/// How many of these have changed since they were read. Each is checked, because only a checked object stays registered
/// as a dependency.
fn changed<'a, K>(reader: &Reader, names: impl IntoIterator<Item = &'a String>) -> usize
where
    K: Resource<DynamicType = ()>,
{
    let names = names.into_iter();
    names.filter(|name| !reader.is_unchanged::<K>(name)).count()
}

/// Whether the grace period of the old keys has ended.
fn is_over(previous_until: Option<Timestamp>) -> bool {
    previous_until.is_some_and(|until| until <= stanchion_kernel::ambient::now())
}
