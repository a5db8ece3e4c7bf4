//! Checks the chart's repository, and the `ServiceAccount` that Flux installs with.

use std::time::Duration;

use serde_json::Value;
use stanchion_api::gitlab::{ChartRepository, GitlabProfileSpec};
use stanchion_kernel::apply::is_owned;
use stanchion_kernel::text::shorten;

use super::super::observe::Current;
use super::super::target::Wanted;
use super::{Blocker, Check};
use crate::account;

/// How often the obstacles of the `ServiceAccount` are checked.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

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

/// Whether the existing release may be adopted: one that the instance controls, or one of GitLab's chart without a
/// controller. Another chart under this name belongs to somebody else, and would be replaced by GitLab.
pub(super) fn recognised(current: &Current) -> Check<()> {
    let (Some(release), Some(parent)) = (&current.release, &current.parent) else {
        return Ok(());
    };
    let chart = release
        .data
        .pointer("/spec/chart/spec/chart")
        .and_then(Value::as_str);
    if is_owned(&release.metadata, parent) || chart == Some("gitlab") {
        return Ok(());
    }
    let words = format!(
        "HelmRelease {} exists, installs {} and was not made for this instance: delete it, or give the instance another name",
        release.metadata.name.as_deref().unwrap_or_default(),
        chart.map_or_else(
            || "something else than GitLab's chart".to_owned(),
            |chart| format!("chart {}", shorten(chart, 64))
        )
    );
    Err(Blocker {
        requeue_after: Some(LOOK_AGAIN),
        ..Blocker::human("NotOurs", words)
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
                 creates it there with the rights that the chart needs, or the instance names another profile",
                wanted.namespace
            ),
        ));
    }
    if current.tenants.trusted {
        return Ok(Account::Flux);
    }
    if let Some(theirs) = current.account.somebody_elses(&wanted.name) {
        let words = format!(
            "{theirs} exists and was not made for this instance, so Flux does not install with its rights: delete it, or \
             give the instance another name"
        );
        return Err(Blocker {
            requeue_after: Some(LOOK_AGAIN),
            ..Blocker::human("NotOurs", words)
        });
    }
    Ok(Account::Own(account::name(&wanted.name)))
}
