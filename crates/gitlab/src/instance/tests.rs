//! Plans and reports of single cases, without a cluster.

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::core::DynamicObject;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use stanchion_api::GitlabInstance;
use stanchion_api::gitlab::{GitlabInstanceStatus, Phase};
use stanchion_kernel::apply::{Intent, ObjectChange};
use stanchion_kernel::condition::find;
use stanchion_kernel::external::{ExternalKind, ServedKind};
use stanchion_kernel::{Done, Inputs, Outcome};

use super::apply::Applied;
use super::observe::{Backend, Current, Observed};
use super::plan::{Plan, plan};
use super::prerequisites::{Blocker, Prerequisites};
use super::report::report;
use super::target::Wanted;
use super::validate::validate;
use super::{EXTERNAL_KINDS, GitlabController};
use crate::flux::{HELM_RELEASE, HELM_REPOSITORY};
use crate::storage::Buckets;

mod backups;

fn served(kind: &'static ExternalKind) -> ServedKind {
    ServedKind {
        resource: kind.at(kind.versions[0]),
        versions: vec![kind.versions[0]],
    }
}

fn secret(name: &str, values: &[(&str, &str)]) -> (String, Secret) {
    let data = values
        .iter()
        .map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec())));
    let mut secret = Secret {
        data: Some(data.collect()),
        ..Secret::default()
    };
    secret.metadata.name = Some(name.to_owned());
    (name.to_owned(), secret)
}

/// An instance on provided backends, with everything that it needs.
#[derive(Clone)]
struct Case {
    instance: GitlabInstance,
    current: Current,
}

impl Case {
    fn new(more: &Value) -> Self {
        let mut object = json!({
            "apiVersion": "k8s.bnerd.com/v1alpha1", "kind": "GitlabInstance",
            "metadata": { "name": "shop", "namespace": "gl", "uid": "1", "generation": 1 },
            "spec": {
                "version": "17", "domains": { "gitlab": "git.example.com" },
                "postgres": { "credentialsSecret": "pg" }, "redis": { "credentialsSecret": "redis" },
                "objectStorage": { "credentialsSecret": "s3" },
            },
        });
        for (key, value) in more.as_object().unwrap() {
            object["spec"][key] = value.clone();
        }
        let instance: GitlabInstance = serde_json::from_value(object).unwrap();
        let login = [("host", "h"), ("port", "1"), ("password", "p")];
        let mut buckets = vec![
            ("accessKey", "a"),
            ("secretKey", "s"),
            ("endpoint", "e.example.com"),
            ("region", "r"),
        ];
        let names = Buckets::NAMES.map(|name| format!("bucket.{name}"));
        buckets.extend(names.iter().map(|name| (name.as_str(), "b")));
        let map = json!({ "versions": { "17.11.7": { "chartVersion": "8.11.8" } } });
        let objects = EXTERNAL_KINDS.iter().map(|kind| {
            let backend = Backend {
                served: Some(served(kind)),
                object: None,
            };
            (*kind, backend)
        });
        let mut current = Current {
            map: Some(serde_json::from_value(map).unwrap()),
            secrets: [
                secret("pg", &login),
                secret("redis", &login),
                secret("s3", &buckets),
            ]
            .into(),
            ..Current::alone(&instance)
        };
        current.backends.objects = objects.collect();
        current.flux.repository_kind = Some(served(&HELM_REPOSITORY));
        current.flux.release_kind = Some(served(&HELM_RELEASE));
        Self { instance, current }
    }

    /// The plan, and its input.
    fn plan(self) -> (Plan, Box<Wanted>, Box<Observed>, GitlabInstance) {
        let wanted = Box::new(validate(&self.instance).unwrap());
        let observed = Box::new(Observed {
            prerequisites: Prerequisites::of(&wanted, &self.current),
            current: self.current,
        });
        let mut inputs = Inputs {
            now: Timestamp::UNIX_EPOCH,
            random: &mut StdRng::seed_from_u64(1),
        };
        let plan = plan(&wanted, &observed, &mut inputs).unwrap();
        (plan, wanted, observed, self.instance)
    }

    /// The status after a reconcile that wrote nothing.
    fn status(self) -> GitlabInstanceStatus {
        let (plan, wanted, observed, instance) = self.plan();
        let problem = match Blocker::done(plan.blocker.as_ref()) {
            Done::Blocked(problem) => Some(problem),
            Done::Complete => None,
        };
        let outcome: Outcome<'_, GitlabController> = Outcome {
            target: Some(&wanted),
            observed: Some(&observed),
            applied: &Applied::default(),
            problem: problem.as_ref(),
            blocked: problem.is_some(),
        };
        report(&instance, &outcome, Timestamp::UNIX_EPOCH).status
    }

    /// The state after the whole plan was written.
    fn written(self) -> Self {
        let Self {
            instance,
            mut current,
        } = self.clone();
        for change in self.plan().0.changes {
            let (ObjectChange::Apply(intent) | ObjectChange::AdoptFields(intent, _)) = change else {
                continue;
            };
            match intent.kind() {
                "Secret" => drop(current.secrets.insert(intent.name().to_owned(), live(&intent))),
                "ConfigMap" => current.init = Some(live::<ConfigMap>(&intent)),
                "ServiceAccount" => current.account.account = Some(live(&intent)),
                "RoleBinding" => current.account.binding = Some(live(&intent)),
                "HelmRepository" => current.flux.repository = Some(live(&intent)),
                "HelmRelease" => current.flux.release = Some(live(&intent)),
                kind => {
                    let mut backends = current.backends.objects.iter_mut();
                    let (_, backend) = backends.find(|(known, _)| known.kind == kind).unwrap();
                    backend.object = Some(live(&intent));
                }
            }
        }
        Self { instance, current }
    }
}

/// An intent as the API server stores it.
fn live<K: serde::de::DeserializeOwned>(intent: &Intent) -> K {
    let mut body = intent.body().clone();
    body["metadata"]["uid"] = json!("of the child");
    body["metadata"]["generation"] = json!(1);
    serde_json::from_value(body).unwrap()
}

fn names(plan: &Plan) -> Vec<String> {
    let name = |change: &ObjectChange| match change {
        ObjectChange::Apply(intent) | ObjectChange::AdoptFields(intent, _) => {
            let owned = intent.body().pointer("/metadata/ownerReferences").is_some();
            let kept = if owned { "" } else { ", to keep" };
            format!("{} {}{kept}", intent.kind(), intent.name())
        }
        other => format!("{other:?}"),
    };
    plan.changes.iter().map(name).collect()
}

const MANAGED: &str = r#"{
    "edition": "ee", "licenseSecret": "license", "elasticsearch": { "managed": true },
    "postgres": { "managed": true }, "redis": { "managed": true, "topology": "ha" }
}"#;

#[test]
fn everything_that_can_be_made_is_made_at_once_and_in_order() {
    let provided = names(&Case::new(&json!({})).plan().0);
    assert_eq!(
        provided,
        [
            "ServiceAccount shop-gitlab-release, to keep",
            "RoleBinding shop-gitlab-release, to keep",
            "Secret shop-gitlab-registry-storage",
            "Secret shop-gitlab-rails-storage",
            "Secret shop-gitlab-backup-storage",
            "HelmRepository shop-gitlab",
            "HelmRelease shop-gitlab",
        ]
    );
    let managed = names(&Case::new(&serde_json::from_str(MANAGED).unwrap()).plan().0);
    assert_eq!(
        managed,
        [
            "ServiceAccount shop-gitlab-release, to keep",
            "RoleBinding shop-gitlab-release, to keep",
            "ConfigMap shop-pg-init, to keep",
            "PerconaPGCluster shop-pg, to keep",
            "Secret shop-redis-auth, to keep",
            "RedisReplication shop-redis, to keep",
            "RedisSentinel shop-redis, to keep",
            "Elasticsearch shop-es, to keep",
            "Secret shop-gitlab-registry-storage",
            "Secret shop-gitlab-rails-storage",
            "Secret shop-gitlab-backup-storage",
        ]
    );
}

#[test]
fn what_was_written_is_not_written_again() {
    for more in [json!({}), serde_json::from_str(MANAGED).unwrap()] {
        let again = Case::new(&more).written();
        assert_eq!(names(&again.plan().0), Vec::<String>::new(), "{more}");
    }
}

#[test]
fn each_blocker_has_its_phase() {
    type Change = fn(&mut Current);
    let cases: &[(&str, Change, Phase, &str)] = &[
        (
            "{}",
            |current| current.map = None,
            Phase::Pending,
            "VersionMapMissing",
        ),
        (r#"{ "version": "99" }"#, |_| {}, Phase::Failed, "VersionUnknown"),
        (r#"{ "profile": "x" }"#, |_| {}, Phase::Pending, "ProfileMissing"),
        (
            "{}",
            |current| drop(current.secrets.remove("pg")),
            Phase::Pending,
            "PostgresSecretMissing",
        ),
        (
            "{}",
            |current| drop(current.secrets.remove("redis")),
            Phase::Pending,
            "RedisSecretMissing",
        ),
        (
            "{}",
            |current| drop(current.secrets.remove("s3")),
            Phase::Pending,
            "S3SecretMissing",
        ),
        (MANAGED, |_| {}, Phase::Provisioning, "PostgresProvisioning"),
        (
            MANAGED,
            |current| current.backends.objects.clear(),
            Phase::Failed,
            "PostgresOperatorMissing",
        ),
        (
            "{}",
            |current| current.flux.release_kind = None,
            Phase::Failed,
            "FluxMissing",
        ),
        (
            r#"{ "objectStorage": {}, "helm": { "version": "10.1.1" } }"#,
            |_| {},
            Phase::Failed,
            "ObjectStorageMissing",
        ),
        (
            r#"{ "smtp": { "credentialsSecret": "x" } }"#,
            |_| {},
            Phase::Pending,
            "SmtpSecretMissing",
        ),
        (
            r#"{ "edition": "ee", "licenseSecret": "x" }"#,
            |_| {},
            Phase::Pending,
            "LicenseMissing",
        ),
        (
            r#"{ "helm": { "repository": { "url": "http://charts.gitlab.io" } } }"#,
            |_| {},
            Phase::Failed,
            "ChartRepositoryNotAllowed",
        ),
        (
            r#"{ "profile": "x" }"#,
            |current| {
                current.profile =
                    serde_json::from_str(r#"{ "release": { "serviceAccountName": "admin" } }"#).unwrap();
            },
            Phase::Pending,
            "ServiceAccountMissing",
        ),
    ];
    for (more, change, phase, reason) in cases {
        let mut case = Case::new(&serde_json::from_str(more).unwrap());
        change(&mut case.current);
        let status = case.status();
        let ready = find(&status.conditions, "Ready").unwrap();
        assert_eq!(
            (status.phase, ready.reason.as_str()),
            (Some(*phase), *reason),
            "{more}"
        );
        assert_eq!(
            (ready.status.as_str(), status.message.as_deref()),
            ("False", Some(ready.message.as_str()))
        );
    }
}

#[test]
fn storage_that_the_profile_or_the_map_names_is_known() {
    let values =
        json!({ "global": { "appConfig": { "object_store": { "connection": { "secret": "s3" } } } } });
    let by_profile = json!({ "objectStorage": {}, "profile": "x", "helm": { "version": "10.1.1" } });
    let mut by_profile = Case::new(&by_profile);
    by_profile.current.profile = serde_json::from_value(json!({ "defaults": { "values": values } })).unwrap();
    let mut by_map = Case::new(&json!({ "objectStorage": {} }));
    let map = json!({ "versions": { "17.11.7": { "chartVersion": "10.1.1", "values": values } } });
    by_map.current.map = serde_json::from_value(map).unwrap();
    for case in [by_profile, by_map] {
        let status = case.status();
        let stored = find(&status.conditions, "ObjectStorageReady").unwrap();
        assert_eq!(
            (stored.status.as_str(), stored.reason.as_str()),
            ("Unknown", "InValues")
        );
        let ready = find(&status.conditions, "Ready").unwrap();
        assert_ne!(ready.reason, "ObjectStorageMissing", "{}", ready.message);
    }
}

/// What the profile requests may leave less room than the spec alone.
#[test]
fn a_name_that_is_too_long_for_its_profile_is_refused_before_anything_is_made() {
    let redis = json!({ "profile": "x", "redis": { "managed": true } });
    let mut case = Case::new(&redis);
    case.instance.metadata.name = Some("x".repeat(38));
    case.current.profile =
        serde_json::from_str(r#"{ "defaults": { "redis": { "topology": "ha" } } }"#).unwrap();
    let status = case.clone().status();
    let ready = find(&status.conditions, "Ready").unwrap();
    assert_eq!(
        (status.phase, ready.reason.as_str()),
        (Some(Phase::Failed), "InvalidSpec")
    );
    assert!(ready.message.contains("at most 37"), "{}", ready.message);
    let made = names(&case.plan().0);
    assert!(!made.iter().any(|name| name.contains("Redis")), "{made:?}");
}

#[test]
fn storage_that_the_chart_does_not_bring_is_not_said_to_be_brought() {
    let said = |chart: &str| {
        let status = Case::new(&json!({ "objectStorage": {}, "helm": { "version": chart } })).status();
        find(&status.conditions, "ObjectStorageReady")
            .unwrap()
            .reason
            .clone()
    };
    assert_eq!(
        (said("9.2.8").as_str(), said("10.1.1").as_str()),
        ("Bundled", "ObjectStorageMissing")
    );
}

#[test]
fn only_flux_makes_an_instance_ready() {
    let mut case = Case::new(&json!({})).written();
    let described = case.clone().status();
    assert_eq!(described.phase, Some(Phase::Deploying));
    let release: &mut DynamicObject = case.current.flux.release.as_mut().unwrap();
    release.data["status"] = json!({
        "observedGeneration": 1, "history": [{ "chartVersion": "8.11.8", "appVersion": "v17.11.7", "status": "deployed" }],
        "conditions": [{ "type": "Ready", "status": "True", "reason": "InstallSucceeded", "observedGeneration": 1 }],
    });
    let done = case.status();
    assert_eq!(done.phase, Some(Phase::Ready));
    assert_eq!(done.installed_version.as_deref(), Some("17.11.7"));
    assert!(
        done.conditions.iter().all(|condition| condition.status == "True"),
        "{:?}",
        done.conditions
    );
}
