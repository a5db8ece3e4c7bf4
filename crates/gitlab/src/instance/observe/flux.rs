//! Reads the objects of Flux, and the release that Helm itself deployed.

use k8s_openapi::api::core::v1::Secret;
use kube::core::DynamicObject;
use stanchion_api::gitlab::patterns::is_name;
use stanchion_kernel::ambient;
use stanchion_kernel::apply::is_owned;
use stanchion_kernel::external::ServedKind;
use stanchion_kernel::{Problem, Reader};

use super::super::cache::Cached;
use super::super::target::Wanted;
use crate::flux::{self, HELM_RELEASE, HELM_REPOSITORY, Release};
use crate::helm::{self, Deployed, Unreadable};

/// The kinds of Flux, and the instance's objects of these kinds.
#[derive(Clone)]
pub struct Flux {
    /// The served version of repositories.
    pub repository_kind: Option<ServedKind>,
    /// The served version of releases.
    pub release_kind: Option<ServedKind>,
    /// The chart repository.
    pub repository: Option<DynamicObject>,
    pub release: Option<DynamicObject>,
}

/// The kinds of Flux, the chart repository and the release.
pub(super) async fn flux(read: &Reader, cached: Option<&Cached>, wanted: &Wanted) -> Result<Flux, Problem> {
    let (repository_kind, release_kind) =
        tokio::try_join!(read.served(&HELM_REPOSITORY), read.served(&HELM_RELEASE))?;
    let name = flux::name(&wanted.name);
    let repository = match &repository_kind {
        Some(kind) => match cached.filter(|_| read.is_external_unchanged(&kind.resource, &name)) {
            Some(cached) => cached.repository.clone(),
            None => read.get_external(&kind.resource, &name).await?,
        },
        None => None,
    };
    let release = match &release_kind {
        Some(kind) => release(read, kind, &name).await?,
        None => None,
    };
    Ok(Flux {
        repository_kind,
        release_kind,
        repository,
        release,
    })
}

/// The instance's release: under the operator's name for it, or under any name that a predecessor gave it.
pub(in super::super) async fn release(
    read: &Reader,
    kind: &ServedKind,
    name: &str,
) -> Result<Option<DynamicObject>, Problem> {
    if let Some(found) = read.get_external(&kind.resource, name).await? {
        return Ok(Some(found));
    }
    let all = read.list_external(&kind.resource).await?;
    let ours = all
        .into_iter()
        .find(|release| is_owned(&release.metadata, read.parent()));
    Ok(ours)
}

/// The release that Helm itself deployed under this name. Read only before any version is known to run: from then on
/// Flux reports it. Once Flux has a release, none can appear.
pub(super) async fn predecessor(
    read: &Reader,
    cached: Option<&Cached>,
    wanted: &Wanted,
    release: Option<&DynamicObject>,
) -> Result<Option<Result<Deployed, Unreadable>>, Problem> {
    /// The most revisions that are read. Helm keeps ten of a release by default.
    const REVISIONS: u32 = 64;
    let release = release.map(Release::of);
    let is_known = release.as_ref().is_some_and(|release| release.running.is_some());
    let has_release = release.is_some();
    let is_ruled_out = has_release && cached.is_some_and(|cached| !cached.has_predecessor);
    if is_known || is_ruled_out || wanted.installed.is_some() {
        return Ok(None);
    }
    let name = release
        .and_then(|release| release.name)
        .filter(|name| is_name(name))
        .unwrap_or_else(|| wanted.name.clone());
    let revisions = read
        .list_metadata::<Secret>(&helm::selector(&name, has_release), REVISIONS)
        .await?;
    let Some(newest) = helm::newest(revisions) else {
        return Ok(None);
    };
    let Some(secret) = read.get::<Secret>(&newest).await? else {
        return Ok(None);
    };
    let found = ambient::blocking(move || helm::read(&secret)).await;
    Ok(Some(found.unwrap_or(Err(Unreadable::Malformed))))
}
