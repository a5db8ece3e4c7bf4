//! A user who may write an instance cannot install other charts, and gets no permissions beyond the namespace.

use std::sync::Arc;

use kube::api::{DeleteParams, Patch, PatchParams, PostParams, PropagationPolicy};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use stanchion_api::GitlabProfile;
use stanchion_api::gitlab::Phase;
use stanchion_gitlab::account;
use stanchion_gitlab::charts::Tenants;
use stanchion_gitlab::flux::{HELM_RELEASE, HELM_REPOSITORY};

use crate::prepared::ACCOUNT;
use crate::test_env::{TestEnv, ready};

impl TestEnv {
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
            .external(&HELM_RELEASE)
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
    let (env, _operator) = TestEnv::operated().await;
    env.instance("shop", json!({})).await;
    let release = env.release("shop").await;
    assert_eq!(
        release.data.pointer("/spec/serviceAccountName"),
        Some(&json!(ACCOUNT))
    );
    let account = env.accounts().get(ACCOUNT).await.unwrap();
    let binding = env.bindings().get(ACCOUNT).await.unwrap();
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
            Some(env.namespace.clone()),
            ACCOUNT.to_owned()
        )]
    );
    env.installed("shop", "17.11.7").await;
    env.phase("shop", Phase::Ready).await;
    // A deleted ServiceAccount is created again: without it, Flux would leave GitLab behind.
    env.accounts()
        .delete(ACCOUNT, &DeleteParams::default())
        .await
        .unwrap();
    env.wait()
        .until(&env.accounts(), ACCOUNT, |again| again.uid() != account.uid())
        .await;
}

#[tokio::test]
async fn charts_of_strangers_are_refused() {
    let (env, _operator) = TestEnv::operated().await;
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
        env.instance("shop", repository).await;
        let refused = env
            .shows("shop", Phase::Failed, "ChartRepositoryNotAllowed")
            .await;
        assert!(
            ready(&refused).1.contains("helm.repository.url"),
            "{:?}",
            ready(&refused)
        );
        env.no_release("shop").await;
        let repositories = env.external(&HELM_REPOSITORY);
        assert!(repositories.get_opt("shop-gitlab").await.unwrap().is_none());
    }
    env.respec("shop", json!({ "helm": { "repository": null } }))
        .await;
    env.release("shop").await;
}

/// A release of an earlier version had Flux's permissions. It loses them, even if the chart is now refused.
#[tokio::test]
async fn an_old_release_gets_an_account_without_a_reinstall() {
    let env = TestEnv::new().await;
    env.create_provided_secrets().await;
    let evil = json!({ "helm": { "repository": { "url": "http://charts.example.com" } } });
    let instance = env.instance("shop", evil).await;
    let uid = env.old_release(&instance).await;
    let _operator = env.operator().await;
    env.shows("shop", Phase::Failed, "ChartRepositoryNotAllowed")
        .await;
    let restricted = env
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
    env.accounts().get(ACCOUNT).await.unwrap();
    env.respec("shop", json!({ "helm": { "repository": null } }))
        .await;
    let ours = env
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
    let (env, _operator) = TestEnv::operated().await;
    env.instance("shop", json!({})).await;
    env.release("shop").await;
    env.flux_holds_the_release().await;
    // Foreground deletion: everything that the instance owns is deleted at once.
    let params = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Foreground),
        ..DeleteParams::default()
    };
    env.instances().delete("shop", &params).await.unwrap();
    env.phase("shop", Phase::Terminating).await;
    let before = env.accounts().get(ACCOUNT).await.expect("Flux uninstalls as it");
    env.bindings().get(ACCOUNT).await.expect("with its rights");
    env.accounts()
        .delete(ACCOUNT, &DeleteParams::default())
        .await
        .unwrap();
    env.wait()
        .until(&env.accounts(), ACCOUNT, |again| again.uid() != before.uid())
        .await;
    env.flux_releases_it().await;
    env.wait().gone(&env.instances(), "shop").await;
    env.wait().gone(&env.accounts(), ACCOUNT).await;
    env.wait().gone(&env.bindings(), ACCOUNT).await;
}

/// A `ServiceAccount` that somebody else created under this name may have any permissions.
#[tokio::test]
async fn an_account_of_somebody_else_is_not_used() {
    let (env, _operator) = TestEnv::operated().await;
    env.account_named(ACCOUNT).await;
    env.instance("shop", json!({})).await;
    let refused = env.shows("shop", Phase::Failed, "NotOurs").await;
    assert!(ready(&refused).1.contains(&format!("ServiceAccount {ACCOUNT}")));
    env.no_release("shop").await;
    assert!(env.bindings().get_opt(ACCOUNT).await.unwrap().is_none());
    env.delete("shop").await;
    env.wait().gone(&env.instances(), "shop").await;
    env.accounts()
        .get(ACCOUNT)
        .await
        .expect("it is not ours to delete");
}

/// Every namespace can name a profile: its `ServiceAccount` is used only where the administrator created it.
#[tokio::test]
async fn the_account_of_a_profile_must_be_in_the_namespace() {
    let (env, _operator) = TestEnv::operated().await;
    let profile = env.profile(json!({ "serviceAccountName": "gitlab-admin" })).await;
    env.instance("shop", json!({ "profile": profile })).await;
    let waits = env.shows("shop", Phase::Pending, "ServiceAccountMissing").await;
    assert!(ready(&waits).1.contains("gitlab-admin") && ready(&waits).1.contains(&env.namespace));
    env.no_release("shop").await;
    env.account_named("gitlab-admin").await;
    let release = env.release("shop").await;
    assert_eq!(
        release.data.pointer("/spec/serviceAccountName"),
        Some(&json!("gitlab-admin"))
    );
    assert!(
        env.accounts().get_opt(ACCOUNT).await.unwrap().is_none(),
        "none is made"
    );
    env.respec("shop", json!({ "profile": null })).await;
    env.release_where("shop", |release| {
        release.data.pointer("/spec/serviceAccountName") == Some(&json!(ACCOUNT))
    })
    .await;
    env.respec("shop", json!({ "profile": profile })).await;
    env.release_where("shop", |release| {
        release.data.pointer("/spec/serviceAccountName") == Some(&json!("gitlab-admin"))
    })
    .await;
    env.accounts()
        .get(ACCOUNT)
        .await
        .expect("Flux may still be at work as it");
    env.installed("shop", "17.11.7").await;
    env.wait().gone(&env.accounts(), ACCOUNT).await;
    env.wait().gone(&env.bindings(), ACCOUNT).await;
}

#[tokio::test]
async fn an_account_of_another_namespace_cannot_be_named() {
    let env = TestEnv::new().await;
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
        let api: Api<GitlabProfile> = Api::all(env.client.clone());
        let refused = api
            .patch("never", &PatchParams::apply("test"), &Patch::Apply(&profile))
            .await
            .unwrap_err();
        assert!(refused.to_string().contains("serviceAccountName"), "{refused}");
    }
}

#[tokio::test]
async fn a_profile_may_bring_its_own_repository() {
    let (env, _operator) = TestEnv::operated().await;
    let url = "oci://mirror.example.com/charts";
    let profile = env.profile(json!({ "repository": { "url": url } })).await;
    env.instance("shop", json!({ "profile": profile })).await;
    env.release("shop").await;
    let repository = env.external(&HELM_REPOSITORY).get("shop-gitlab").await.unwrap();
    assert_eq!(repository.data.pointer("/spec/url"), Some(&json!(url)));
}

#[tokio::test]
async fn what_the_account_may_not_create_is_named_with_the_ways_out() {
    let (env, _operator) = TestEnv::operated().await;
    env.instance(
        "shop",
        json!({ "helm": { "values": { "nginx-ingress": { "enabled": true } } } }),
    )
    .await;
    env.release("shop").await;
    let words = format!(
        "Helm install failed for release {0}/shop with chart gitlab@8.11.8: ingressclasses.networking.k8s.io is forbidden: \
         User \"system:serviceaccount:{0}:{ACCOUNT}\" cannot create resource \"ingressclasses\" in API group \
         \"networking.k8s.io\" at the cluster scope",
        env.namespace
    );
    env.failed("shop", "InstallFailed", &words).await;
    let refused = env.shows("shop", Phase::Failed, "ReleaseForbidden").await;
    let reported = ready(&refused).1;
    for way in [
        "ingressclasses",
        "helm.values",
        "GitlabProfile.spec.release.serviceAccountName",
    ] {
        assert!(reported.contains(way), "{reported}");
    }
}

/// `--trust-tenants` allows any chart, with Flux's permissions.
#[tokio::test]
async fn trusted_tenants_get_what_the_original_gave() {
    let mut env = TestEnv::new().await;
    env.tenants = Arc::new(Tenants {
        trusted: true,
        ..Tenants::default()
    });
    let _operator = env.operator().await;
    env.create_provided_secrets().await;
    let url = "http://charts.example.com";
    env.instance("shop", json!({ "helm": { "repository": { "url": url } } }))
        .await;
    let release = env.release("shop").await;
    assert_eq!(release.data.pointer("/spec/serviceAccountName"), None);
    let repository = env.external(&HELM_REPOSITORY).get("shop-gitlab").await.unwrap();
    assert_eq!(repository.data.pointer("/spec/url"), Some(&json!(url)));
    assert!(env.accounts().get_opt(ACCOUNT).await.unwrap().is_none());
}
