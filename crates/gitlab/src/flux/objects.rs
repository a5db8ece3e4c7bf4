//! Builds the two objects for Flux.

#![allow(
    clippy::indexing_slicing,
    reason = "JSON is indexed by key, and only where it was made an object by the line before"
)]

use serde_json::{Value, json};
use stanchion_api::gitlab::{ChartRepository, Values};
use stanchion_kernel::external::ServedKind;

use super::name;

/// The chart to install.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chart {
    /// The existing or new name of the object.
    pub object: String,
    /// The name of the Helm release. `None` leaves it to Flux, as in an object that somebody else created: another name
    /// would be another release.
    pub release: Option<String>,
    /// The chart's version.
    pub version: String,
    /// The chart's values.
    pub values: Values,
    /// The `ServiceAccount` that Flux installs with. `None` is Flux's own, which may do everything.
    pub account: Option<String>,
}

pub(crate) fn helm_repository(instance: &str, repository: &ChartRepository, kind: &ServedKind) -> Value {
    let mut spec = json!({ "interval": "1h0m0s", "url": repository.url });
    if repository.url.starts_with("oci://") {
        spec["type"] = json!("oci");
    }
    if let Some(secret) = &repository.credentials_secret {
        spec["secretRef"] = json!({ "name": secret });
    }
    json!({
        "apiVersion": kind.resource.api_version,
        "kind": kind.resource.kind,
        "metadata": { "name": name(instance) },
        "spec": spec,
    })
}

/// The release. Flux's default timeout is too short for GitLab's migrations, and its default remediation of a failed
/// upgrade, a rollback, is wrong after them, because the database is newer by then.
pub(crate) fn helm_release(instance: &str, chart: &Chart, kind: &ServedKind) -> Value {
    let mut spec = json!({
        "interval": "10m0s",
        "timeout": "45m0s",
        "maxHistory": 5,
        "chart": { "spec": {
            "chart": "gitlab",
            "version": chart.version,
            "interval": "1h0m0s",
            "sourceRef": { "kind": "HelmRepository", "name": name(instance) },
        }},
        "values": chart.values,
    });
    if retries_without_rollback(kind) {
        let strategy = json!({ "strategy": { "name": "RetryOnFailure", "retryInterval": "5m0s" } });
        spec["install"] = strategy.clone();
        spec["upgrade"] = strategy;
    } else {
        // No retry after an upgrade, because it would roll back.
        spec["install"] = json!({ "remediation": { "retries": -1 } });
        spec["upgrade"] = json!({ "remediation": { "retries": 0 } });
    }
    if let Some(account) = &chart.account {
        spec["serviceAccountName"] = json!(account);
    }
    if let Some(release) = &chart.release {
        spec["releaseName"] = json!(release);
    }
    json!({
        "apiVersion": kind.resource.api_version,
        "kind": kind.resource.kind,
        "metadata": { "name": chart.object },
        "spec": spec,
    })
}

/// Whether this Flux has the strategy `RetryOnFailure`. It came with the first version that no longer serves `v2beta1`,
/// and is in every one that serves only `v2`; an API server that does not know the field drops it silently.
fn retries_without_rollback(kind: &ServedKind) -> bool {
    kind.versions == ["v2"]
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;
    use crate::flux::{HELM_RELEASE, HELM_REPOSITORY};

    fn served(versions: &[&'static str]) -> ServedKind {
        ServedKind {
            resource: HELM_RELEASE.at(versions[0]),
            versions: versions.to_vec(),
        }
    }

    fn chart() -> Chart {
        Chart {
            object: "shop-gitlab".into(),
            release: Some("shop".into()),
            version: "8.11.8".into(),
            values: Map::from_iter([("global".to_owned(), json!({ "edition": "ce" }))]),
            account: Some("shop-gitlab-release".into()),
        }
    }

    #[test]
    fn the_release_for_the_newest_flux() {
        insta::assert_yaml_snapshot!(helm_release("shop", &chart(), &served(&["v2"])));
    }

    #[test]
    fn an_older_flux_gets_only_known_fields_and_never_rolls_back() {
        for (versions, api_version) in [
            (&["v2", "v2beta2"][..], "helm.toolkit.fluxcd.io/v2"),
            (&["v2", "v2beta2", "v2beta1"], "helm.toolkit.fluxcd.io/v2"),
            (&["v2beta1"], "helm.toolkit.fluxcd.io/v2beta1"),
        ] {
            let release = helm_release("shop", &chart(), &served(versions));
            assert_eq!(release["apiVersion"], api_version);
            assert_eq!(
                release["spec"]["upgrade"],
                json!({ "remediation": { "retries": 0 } })
            );
            assert_eq!(release.pointer("/spec/install/strategy"), None);
        }
    }

    #[test]
    fn a_release_that_somebody_else_named_keeps_its_name() {
        let unnamed = Chart {
            release: None,
            ..chart()
        };
        let release = helm_release("shop", &unnamed, &served(&["v2"]));
        assert_eq!(release["spec"].get("releaseName"), None);
    }

    #[test]
    fn trusted_tenants_get_the_account_of_flux() {
        let trusted = Chart {
            account: None,
            ..chart()
        };
        let release = helm_release("shop", &trusted, &served(&["v2"]));
        assert_eq!(release["spec"].get("serviceAccountName"), None);
    }

    #[test]
    fn charts_come_from_gitlab_or_from_a_mirror() {
        let kind = ServedKind {
            resource: HELM_REPOSITORY.at("v1"),
            versions: vec!["v1"],
        };
        let spec = |repository: &ChartRepository| helm_repository("shop", repository, &kind)["spec"].clone();
        let own = ChartRepository {
            url: "https://charts.gitlab.io".into(),
            credentials_secret: None,
        };
        assert_eq!(
            spec(&own),
            json!({ "interval": "1h0m0s", "url": "https://charts.gitlab.io" })
        );
        let mirror = ChartRepository {
            url: "oci://mirror.example.com/charts".into(),
            credentials_secret: Some("mirror".into()),
        };
        assert_eq!(
            spec(&mirror),
            json!({
                "interval": "1h0m0s", "type": "oci", "url": "oci://mirror.example.com/charts",
                "secretRef": { "name": "mirror" },
            })
        );
    }
}
