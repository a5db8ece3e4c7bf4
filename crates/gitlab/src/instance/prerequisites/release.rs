//! What the release needs beside its backends: Flux, the profile, the chart's repository, a license, and the
//! `ServiceAccount` that Flux installs with.

use std::time::Duration;

use serde_json::Value;
use stanchion_api::gitlab::{ChartRepository, Edition, GitlabProfileSpec, Values};
use stanchion_kernel::apply::is_owned;
use stanchion_kernel::external::ServedKind;
use stanchion_kernel::text::shorten;

use super::super::observe::Current;
use super::super::target::Wanted;
use super::{Blocker, Check, UpgradePlan, named};
use crate::account;
use crate::flux::{HELM_RELEASE, HELM_REPOSITORY};
use crate::values::{self, ChartVersion};

/// How often the obstacles of the `ServiceAccount` are checked.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// The kinds of Flux, as the cluster serves them.
#[derive(Clone, Debug)]
pub struct FluxKinds {
    pub repositories: ServedKind,
    pub releases: ServedKind,
}

/// The `ServiceAccount` that Flux installs with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Account {
    /// The `ServiceAccount` that the operator creates for the instance.
    Own(String),
    /// A `ServiceAccount` that an administrator created in the instance's namespace, and named in the profile.
    Given(String),
    /// Flux's own: the administrator trusts everybody who may write an instance.
    Flux,
}

impl Account {
    /// The `ServiceAccount`'s name; `None` for Flux's own.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Own(name) | Self::Given(name) => Some(name),
            Self::Flux => None,
        }
    }
}

/// Whether the existing release may be adopted: one that the instance controls, or one without a controller that installs
/// GitLab in this namespace. Any other under this name belongs to somebody else, and would be replaced by GitLab.
pub(super) fn recognised(current: &Current) -> Check<()> {
    let Some(release) = &current.flux.release else {
        return Ok(());
    };
    if is_owned(&release.metadata, &current.parent) {
        return Ok(());
    }
    let Some(other) = installs_other(&release.data, &current.parent.key.namespace) else {
        return Ok(());
    };
    let words = format!(
        "HelmRelease {} exists, installs {other} and was not created for this instance: delete it, or give the instance another name",
        release.metadata.name.as_deref().unwrap_or_default()
    );
    Err(Blocker {
        requeue_after: Some(LOOK_AGAIN),
        ..Blocker::human("NotOurs", words)
    })
}

/// What a `HelmRelease` installs, if that is not GitLab in its own namespace. An adopted one loses the fields that the
/// operator does not set: Flux would leave what is elsewhere, and install a second GitLab here.
fn installs_other(release: &Value, namespace: &str) -> Option<String> {
    let field = |path: &str| release.pointer(path).filter(|value| !value.is_null());
    match field("/spec/chart/spec/chart").and_then(Value::as_str) {
        Some("gitlab") => {}
        Some(chart) => return Some(format!("chart {}", shorten(chart, 64))),
        None => return Some("something else than GitLab's chart".to_owned()),
    }
    if field("/spec/kubeConfig").is_some() {
        return Some("GitLab in another cluster (kubeConfig)".to_owned());
    }
    ["targetNamespace", "storageNamespace"]
        .into_iter()
        .find_map(|name| {
            let other = field(&format!("/spec/{name}"))?.as_str().unwrap_or_default();
            let is_here = other.is_empty() || other == namespace;
            (!is_here).then(|| format!("GitLab with {name} {}", shorten(other, 64)))
        })
}

/// The chart repository.
pub(super) fn repository(
    wanted: &Wanted,
    current: &Current,
    profile: Option<&GitlabProfileSpec>,
) -> Check<ChartRepository> {
    let profile = profile.and_then(|profile| profile.release.repository.as_ref());
    let map = current.map.as_ref().and_then(|map| map.repository.as_ref());
    let named = wanted.spec.helm.repository.as_ref();
    current
        .tenants
        .repository(named, profile, map)
        .map_err(|refused| Blocker::failed("ChartRepositoryNotAllowed", refused.0))
}

/// The `ServiceAccount` that Flux installs with.
pub(super) fn account(
    wanted: &Wanted,
    current: &Current,
    profile: Option<&GitlabProfileSpec>,
) -> Check<Account> {
    let given = profile.and_then(|profile| profile.release.service_account_name.clone());
    if let Some(name) = given {
        if current.given_account {
            return Ok(Account::Given(name));
        }
        return Err(Blocker::pending(
            "ServiceAccountMissing",
            format!(
                "the profile lets Flux install as ServiceAccount {name}, which is not in namespace {}: an administrator \
                 creates it there with the permissions that the chart needs, or the instance names another profile",
                wanted.namespace
            ),
        ));
    }
    if current.tenants.trusted {
        return Ok(Account::Flux);
    }
    if let Some(theirs) = current.account.somebody_elses(&wanted.name) {
        let words = format!(
            "{theirs} exists and was not created for this instance, so Flux does not install with its permissions: delete it, or \
             give the instance another name"
        );
        return Err(Blocker {
            requeue_after: Some(LOOK_AGAIN),
            ..Blocker::human("NotOurs", words)
        });
    }
    Ok(Account::Own(account::name(&wanted.name)))
}

pub(super) fn profile(wanted: &Wanted, current: &Current) -> Check<Option<GitlabProfileSpec>> {
    let Some(name) = &wanted.spec.profile else {
        return Ok(None);
    };
    let found = current.profile.clone().map(Some);
    found.ok_or_else(|| {
        Blocker::pending(
            "ProfileMissing",
            format!("GitlabProfile {name} does not exist yet; create it, or remove spec.profile"),
        )
    })
}

/// The license. Otherwise its absence would only show when GitLab runs without the licensed features.
pub(super) fn license(wanted: &Wanted, current: &Current) -> Check<()> {
    let Some(name) = wanted
        .spec
        .license_secret
        .as_ref()
        .filter(|_| wanted.spec.edition == Edition::Ee)
    else {
        return Ok(());
    };
    let secret = named(&current.secrets, name, "LicenseMissing", "license")?;
    let has_key = secret
        .data
        .as_ref()
        .is_some_and(|data| data.contains_key("license"));
    has_key.then_some(()).ok_or_else(|| {
        Blocker::failed(
            "LicenseMissing",
            format!("license: Secret {name} has no key license; add it"),
        )
    })
}

/// Whether Flux is installed.
pub(super) fn flux(current: &Current) -> Check<FluxKinds> {
    let flux = &current.flux;
    if let (Some(repositories), Some(releases)) = (&flux.repository_kind, &flux.release_kind) {
        return Ok(FluxKinds {
            repositories: repositories.clone(),
            releases: releases.clone(),
        });
    }
    let missing: Vec<String> = [
        (&HELM_REPOSITORY, &flux.repository_kind),
        (&HELM_RELEASE, &flux.release_kind),
    ]
    .into_iter()
    .filter(|(_, served)| served.is_none())
    .map(|(kind, _)| kind.definition())
    .collect();
    Err(Blocker::failed(
        "FluxMissing",
        format!("Flux is not installed: the cluster has no {}", missing.join(", ")),
    ))
}

/// Where GitLab stores objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectStore {
    /// In the buckets that the spec names.
    Provided,
    /// Where the values of the profile, the version map or the spec say.
    InValues,
    /// In the chart's own `MinIO`.
    Bundled,
}

/// Where GitLab stores objects: charts from 10 on bring no storage of their own.
pub(super) fn stored(wanted: &Wanted, written: &Values, upgrade: &Check<UpgradePlan>) -> Check<ObjectStore> {
    if wanted.spec.object_storage.credentials_secret.is_some() {
        return Ok(ObjectStore::Provided);
    }
    if values::names_object_storage(written) {
        return Ok(ObjectStore::InValues);
    }
    let chart = upgrade.as_ref().ok().map(|upgrade| upgrade.now.chart.as_str());
    match chart.filter(|chart| !ChartVersion::of(chart).bundles_backends()) {
        None => Ok(ObjectStore::Bundled),
        Some(chart) => Err(Blocker::failed(
            "ObjectStorageMissing",
            format!("chart {chart} brings no object storage: set objectStorage.credentialsSecret"),
        )),
    }
}
