//! A user who may write an instance cannot install other charts, and gets no permissions beyond the namespace.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, PropagationPolicy};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use stanchion_api::GitlabProfile;
use stanchion_api::gitlab::Phase;
use stanchion_gitlab::account;
use stanchion_gitlab::charts::Tenants;
use stanchion_gitlab::flux::{HELM_RELEASE, HELM_REPOSITORY};

use crate::bed::{Bed, ready};

const ACCOUNT: &str = "shop-gitlab-release";

impl Bed {
    fn accounts(&self) -> Api<ServiceAccount> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    fn bindings(&self) -> Api<RoleBinding> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Applies a profile; profiles are cluster-scoped, so its name contains the namespace.
    async fn profile(&self, release: Value) -> String {
        let name = format!("{}-profile", self.namespace);
        let profile = json!({
            "apiVersion": "k8s.bnerd.com/v1alpha1", "kind": "GitlabProfile",
            "metadata": { "name": name }, "spec": { "release": release },
        });
        let api: Api<GitlabProfile> = Api::all(self.client.clone());
        let params = PatchParams::apply("test").force();
        api.patch(&name, &params, &Patch::Apply(&profile)).await.unwrap();
        name
    }

    async fn account_named(&self, name: &str) {
        let account = serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
        self.accounts()
            .create(&PostParams::default(), &account)
            .await
            .unwrap();
    }

    /// A release of an earlier version of the operator: without a `ServiceAccount`.
    async fn old_release(&self, instance: &stanchion_api::GitlabInstance) -> String {
        let release = serde_json::from_value(json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": { "name": "shop-gitlab", "ownerReferences": [{
                "apiVersion": "k8s.bnerd.com/v1alpha1", "kind": "GitlabInstance", "name": "shop",
                "uid": instance.uid().unwrap(), "controller": true,
            }]},
            "spec": {
                "interval": "10m", "releaseName": "shop", "chart": { "spec": {
                    "chart": "gitlab", "version": "8.11.8",
                    "sourceRef": { "kind": "HelmRepository", "name": "shop-gitlab" },
                }},
            },
        }))
        .unwrap();
        let made = self
            .foreign(&HELM_RELEASE)
            .create(&PostParams::default(), &release)
            .await;
        made.unwrap().uid().unwrap()
    }
}

fn version(object: &impl kube::ResourceExt) -> u64 {
    object.resource_version().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_release_is_installed_as_an_account_of_its_namespace() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    bed.brought().await;
    bed.instance("shop", json!({})).await;
    let release = bed.release("shop").await;
    assert_eq!(
        release.data.pointer("/spec/serviceAccountName"),
        Some(&json!(ACCOUNT))
    );
    let account = bed.accounts().get(ACCOUNT).await.unwrap();
    let binding = bed.bindings().get(ACCOUNT).await.unwrap();
    assert!(
        version(&account) < version(&release),
        "it is there before the release"
    );
    assert!(version(&binding) < version(&release), "and so are its rights");
    assert_eq!(account.automount_service_account_token, Some(false));
    assert_eq!(
        (binding.role_ref.kind.as_str(), binding.role_ref.name.as_str()),
        ("ClusterRole", account::ROLE)
    );
    let subjects: Vec<_> = binding
        .subjects
        .unwrap()
        .into_iter()
        .map(|subject| (subject.kind, subject.namespace, subject.name))
        .collect();
    assert_eq!(
        subjects,
        [(
            "ServiceAccount".to_owned(),
            Some(bed.namespace.clone()),
            ACCOUNT.to_owned()
        )]
    );
    bed.installed("shop", "17.11.7").await;
    bed.phase("shop", Phase::Ready).await;
    // A deleted ServiceAccount is created again: without it, Flux would leave GitLab behind.
    bed.accounts()
        .delete(ACCOUNT, &DeleteParams::default())
        .await
        .unwrap();
    bed.wait()
        .until(&bed.accounts(), ACCOUNT, |again| again.uid() != account.uid())
        .await;
}

#[tokio::test]
async fn charts_of_strangers_are_refused() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    bed.brought().await;
    for url in [
        "http://charts.gitlab.io",
        "http://10.0.0.1/charts",
        "https://charts.example.com",
        "https://charts.gitlab.io.example.com",
        "https://charts.gitlab.io@evil.example.com",
        "oci://registry.example.com/gitlab-org/charts",
        "oci://registry.gitlab.com/somebody/charts",
    ] {
        let repository = json!({ "helm": { "repository": { "url": url } } });
        bed.instance("shop", repository).await;
        let refused = bed
            .shows("shop", Phase::Failed, "ChartRepositoryNotAllowed")
            .await;
        assert!(
            ready(&refused).1.contains("helm.repository.url"),
            "{:?}",
            ready(&refused)
        );
        bed.no_release("shop").await;
        let repositories = bed.foreign(&HELM_REPOSITORY);
        assert!(repositories.get_opt("shop-gitlab").await.unwrap().is_none());
    }
    bed.respec("shop", json!({ "helm": { "repository": null } }))
        .await;
    bed.release("shop").await;
}

/// A release of an earlier version had Flux's permissions. It loses them, even if the chart is now refused.
#[tokio::test]
async fn an_old_release_gets_an_account_without_a_reinstall() {
    let bed = Bed::new().await;
    bed.brought().await;
    let evil = json!({ "helm": { "repository": { "url": "http://charts.example.com" } } });
    let instance = bed.instance("shop", evil).await;
    let uid = bed.old_release(&instance).await;
    let _operator = bed.operator().await;
    bed.shows("shop", Phase::Failed, "ChartRepositoryNotAllowed")
        .await;
    let restricted = bed
        .release_where("shop", |release| {
            release.data.pointer("/spec/serviceAccountName") == Some(&json!(ACCOUNT))
        })
        .await;
    assert_eq!(restricted.uid().unwrap(), uid);
    assert_eq!(
        restricted.data.pointer("/spec/values"),
        None,
        "nothing else changes"
    );
    bed.accounts().get(ACCOUNT).await.unwrap();
    bed.respec("shop", json!({ "helm": { "repository": null } }))
        .await;
    let ours = bed
        .release_where("shop", |release| {
            release.data.pointer("/spec/values/global").is_some()
        })
        .await;
    assert_eq!(ours.uid().unwrap(), uid);
    assert_eq!(ours.data.pointer("/spec/releaseName"), Some(&json!("shop")));
    assert_eq!(
        ours.data.pointer("/spec/serviceAccountName"),
        Some(&json!(ACCOUNT))
    );
}

/// Flux uninstalls with the `ServiceAccount`, and silently uninstalls nothing if it is gone.
#[tokio::test]
async fn the_account_is_there_until_the_release_is_gone() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    bed.brought().await;
    bed.instance("shop", json!({})).await;
    bed.release("shop").await;
    let releases = bed.foreign(&HELM_RELEASE);
    let holds = Patch::Merge(json!({ "metadata": { "finalizers": ["finalizers.fluxcd.io"] } }));
    releases
        .patch("shop-gitlab", &PatchParams::default(), &holds)
        .await
        .unwrap();
    // Foreground deletion: everything that the instance owns is deleted at once.
    let params = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Foreground),
        ..DeleteParams::default()
    };
    bed.instances().delete("shop", &params).await.unwrap();
    bed.phase("shop", Phase::Terminating).await;
    let before = bed.accounts().get(ACCOUNT).await.expect("Flux uninstalls as it");
    bed.bindings().get(ACCOUNT).await.expect("with its rights");
    bed.accounts()
        .delete(ACCOUNT, &DeleteParams::default())
        .await
        .unwrap();
    bed.wait()
        .until(&bed.accounts(), ACCOUNT, |again| again.uid() != before.uid())
        .await;
    let release = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    releases
        .patch("shop-gitlab", &PatchParams::default(), &release)
        .await
        .unwrap();
    bed.wait().gone(&bed.instances(), "shop").await;
    bed.wait().gone(&bed.accounts(), ACCOUNT).await;
    bed.wait().gone(&bed.bindings(), ACCOUNT).await;
}

/// A `ServiceAccount` that somebody else created under this name may have any permissions.
#[tokio::test]
async fn an_account_of_somebody_else_is_not_used() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    bed.brought().await;
    bed.account_named(ACCOUNT).await;
    bed.instance("shop", json!({})).await;
    let refused = bed.shows("shop", Phase::Failed, "NotOurs").await;
    assert!(ready(&refused).1.contains(&format!("ServiceAccount {ACCOUNT}")));
    bed.no_release("shop").await;
    assert!(bed.bindings().get_opt(ACCOUNT).await.unwrap().is_none());
    bed.delete("shop").await;
    bed.wait().gone(&bed.instances(), "shop").await;
    bed.accounts()
        .get(ACCOUNT)
        .await
        .expect("it is not ours to delete");
}

/// Every namespace can name a profile: its `ServiceAccount` is used only where the administrator created it.
#[tokio::test]
async fn the_account_of_a_profile_must_be_in_the_namespace() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    bed.brought().await;
    let profile = bed.profile(json!({ "serviceAccountName": "gitlab-admin" })).await;
    bed.instance("shop", json!({ "profile": profile })).await;
    let waits = bed.shows("shop", Phase::Pending, "ServiceAccountMissing").await;
    assert!(ready(&waits).1.contains("gitlab-admin") && ready(&waits).1.contains(&bed.namespace));
    bed.no_release("shop").await;
    bed.account_named("gitlab-admin").await;
    let release = bed.release("shop").await;
    assert_eq!(
        release.data.pointer("/spec/serviceAccountName"),
        Some(&json!("gitlab-admin"))
    );
    assert!(
        bed.accounts().get_opt(ACCOUNT).await.unwrap().is_none(),
        "none is made"
    );
    bed.respec("shop", json!({ "profile": null })).await;
    bed.release_where("shop", |release| {
        release.data.pointer("/spec/serviceAccountName") == Some(&json!(ACCOUNT))
    })
    .await;
    bed.respec("shop", json!({ "profile": profile })).await;
    bed.release_where("shop", |release| {
        release.data.pointer("/spec/serviceAccountName") == Some(&json!("gitlab-admin"))
    })
    .await;
    bed.accounts()
        .get(ACCOUNT)
        .await
        .expect("Flux may still be at work as it");
    bed.installed("shop", "17.11.7").await;
    bed.wait().gone(&bed.accounts(), ACCOUNT).await;
    bed.wait().gone(&bed.bindings(), ACCOUNT).await;
}

#[tokio::test]
async fn an_account_of_another_namespace_cannot_be_named() {
    let bed = Bed::new().await;
    for name in [
        "other/admin",
        "../other/admin",
        "system:serviceaccount:other:admin",
        "a b",
        "A",
    ] {
        let profile = json!({
            "apiVersion": "k8s.bnerd.com/v1alpha1", "kind": "GitlabProfile",
            "metadata": { "name": "never" }, "spec": { "release": { "serviceAccountName": name } },
        });
        let api: Api<GitlabProfile> = Api::all(bed.client.clone());
        let refused = api
            .patch("never", &PatchParams::apply("test"), &Patch::Apply(&profile))
            .await
            .unwrap_err();
        assert!(refused.to_string().contains("serviceAccountName"), "{refused}");
    }
}

#[tokio::test]
async fn a_profile_may_bring_its_own_repository() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    bed.brought().await;
    let url = "oci://mirror.example.com/charts";
    let profile = bed.profile(json!({ "repository": { "url": url } })).await;
    bed.instance("shop", json!({ "profile": profile })).await;
    bed.release("shop").await;
    let repository = bed.foreign(&HELM_REPOSITORY).get("shop-gitlab").await.unwrap();
    assert_eq!(repository.data.pointer("/spec/url"), Some(&json!(url)));
}

#[tokio::test]
async fn what_the_account_may_not_create_is_named_with_the_ways_out() {
    let bed = Bed::new().await;
    let _operator = bed.operator().await;
    bed.brought().await;
    bed.instance(
        "shop",
        json!({ "helm": { "values": { "nginx-ingress": { "enabled": true } } } }),
    )
    .await;
    bed.release("shop").await;
    let words = format!(
        "Helm install failed for release {0}/shop with chart gitlab@8.11.8: ingressclasses.networking.k8s.io is forbidden: \
         User \"system:serviceaccount:{0}:{ACCOUNT}\" cannot create resource \"ingressclasses\" in API group \
         \"networking.k8s.io\" at the cluster scope",
        bed.namespace
    );
    bed.failed("shop", "InstallFailed", &words).await;
    let refused = bed.shows("shop", Phase::Failed, "ReleaseForbidden").await;
    let told = ready(&refused).1;
    for way in [
        "ingressclasses",
        "helm.values",
        "GitlabProfile.spec.release.serviceAccountName",
    ] {
        assert!(told.contains(way), "{told}");
    }
}

/// `--trust-tenants` allows any chart, with Flux's permissions.
#[tokio::test]
async fn trusted_tenants_get_what_the_original_gave() {
    let mut bed = Bed::new().await;
    bed.tenants = Arc::new(Tenants {
        trusted: true,
        ..Tenants::default()
    });
    let _operator = bed.operator().await;
    bed.brought().await;
    let url = "http://charts.example.com";
    bed.instance("shop", json!({ "helm": { "repository": { "url": url } } }))
        .await;
    let release = bed.release("shop").await;
    assert_eq!(release.data.pointer("/spec/serviceAccountName"), None);
    let repository = bed.foreign(&HELM_REPOSITORY).get("shop-gitlab").await.unwrap();
    assert_eq!(repository.data.pointer("/spec/url"), Some(&json!(url)));
    assert!(bed.accounts().get_opt(ACCOUNT).await.unwrap().is_none());
}
