//! Records the versions of a database, beyond the life of an instance: database migrations cannot be undone, and the
//! database stays when the instance is deleted.
//!
//! GitLab's database does not contain its version. So a `ConfigMap` records the version that ran last, and a newer one
//! that Flux has begun to install, which may have migrated the database without ever running. It also records the
//! identity of the database: another database has another history.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::core::DynamicObject;
use serde_json::{Value, json};
use stanchion_api::gitlab::{GitlabInstanceSpec, GitlabVersionMapSpec};

use crate::account::INSTANCE;
use crate::backends::external;
use crate::flux::Release;
use crate::values;
use crate::versions::{Version, installed_by};

const VERSION: &str = "version";
const BEGUN: &str = "begun";
const DATABASE: &str = "database";

/// The versions of one database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Versions {
    /// The one that ran last.
    pub ran: Option<Version>,
    /// A newer one that Flux has begun to install.
    pub begun: Option<Version>,
}

/// The name of an instance's record.
pub(crate) fn name(instance: &str) -> String {
    format!("{instance}-gitlab-installed")
}

/// A unique identifier of an instance's database: of the object of a managed one, of the login in the Secret of a
/// provided one. `None` while it is unknown.
pub(crate) fn database(
    spec: &GitlabInstanceSpec,
    managed: Option<&DynamicObject>,
    provided: Option<&Secret>,
) -> Option<String> {
    // The values override the fields of the spec.
    if let Some(host) = values::psql_host(&spec.helm.values) {
        return Some(format!("values/{host}"));
    }
    if spec.postgres.managed {
        return Some(format!("PerconaPGCluster/{}", managed?.metadata.uid.as_deref()?));
    }
    let psql = external::psql(provided?).ok()?;
    Some(format!(
        "{}:{}/{}",
        psql.address.host, psql.address.port, psql.database
    ))
}

impl Versions {
    /// What is recorded about this database.
    pub(crate) fn read(record: Option<&ConfigMap>, database: &str) -> Self {
        let data = record.and_then(|record| record.data.as_ref());
        let is_same = |data: &&_| of(data, DATABASE) == Some(database);
        let Some(data) = data.filter(is_same) else {
            return Self::default();
        };
        let version = |key| of(data, key)?.parse().ok();
        Self {
            ran: version(VERSION),
            begun: version(BEGUN),
        }
    }

    /// Adds what is known now. What Flux has begun stays recorded until a release is complete: the version of that one
    /// runs then.
    pub(crate) fn now(
        self,
        running: Option<Version>,
        release: Option<&Release>,
        map: Option<&GitlabVersionMapSpec>,
    ) -> Self {
        let ran = running.or(self.ran);
        let begins = release.filter(|release| release.has_begun());
        let begun = begins.and_then(|release| installed_by(map, &release.chart));
        let is_done = release.is_some_and(Release::is_done);
        let begun = self
            .begun
            .max(begun)
            .filter(|begun| !is_done && Some(*begun) > ran);
        Self { ran, begun }
    }

    /// The record; `None` if there is nothing to record.
    pub(crate) fn object(self, instance: &str, database: &str) -> Option<Value> {
        let mut data = json!({ DATABASE: database });
        let versions = [(VERSION, self.ran), (BEGUN, self.begun)];
        if versions.iter().all(|(_, version)| version.is_none()) {
            return None;
        }
        if let Value::Object(data) = &mut data {
            let known = versions
                .iter()
                .filter_map(|(key, version)| Some((*key, version.as_ref()?)));
            data.extend(known.map(|(key, version)| (key.to_owned(), version.to_string().into())));
        }
        Some(json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "name": name(instance), "labels": { INSTANCE: instance } },
            "data": data,
        }))
    }
}

fn of<'a>(data: &'a std::collections::BTreeMap<String, String>, key: &str) -> Option<&'a str> {
    data.get(key).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: Option<Version> = Some(Version::new(17, 11, 7));
    const NEW: Option<Version> = Some(Version::new(18, 2, 8));
    const HERE: &str = "PerconaPGCluster/1";

    fn release(ready: &str, reason: &str) -> Release {
        Release::of(
            &serde_json::from_value(json!({
                "metadata": { "name": "shop-gitlab", "generation": 1 },
                "spec": { "chart": { "spec": { "version": "9.2.8" } } },
                "status": { "observedGeneration": 1, "conditions": [{
                    "type": "Ready", "status": ready, "reason": reason, "lastTransitionTime": "2026-01-01T00:00:00Z",
                }]},
            }))
            .unwrap(),
        )
    }

    #[test]
    fn a_record_speaks_of_one_database() {
        for versions in [
            Versions {
                ran: OLD,
                begun: None,
            },
            Versions {
                ran: None,
                begun: NEW,
            },
            Versions { ran: OLD, begun: NEW },
        ] {
            let record: ConfigMap = serde_json::from_value(versions.object("shop", HERE).unwrap()).unwrap();
            assert_eq!(Versions::read(Some(&record), HERE), versions);
            assert_eq!(
                Versions::read(Some(&record), "PerconaPGCluster/2"),
                Versions::default()
            );
        }
        assert_eq!(
            Versions::read(Some(&ConfigMap::default()), HERE),
            Versions::default()
        );
        assert_eq!(Versions::default().object("shop", HERE), None);
    }

    #[test]
    fn what_flux_has_begun_is_recorded_until_a_release_is_complete() {
        let map = json!({ "versions": { "18.2.8": { "chartVersion": "9.2.8" } } });
        let map = serde_json::from_value(map).unwrap();
        let before = Versions {
            ran: OLD,
            begun: None,
        };
        let after = |versions: Versions, running, ready: &str, reason: &str| {
            versions.now(running, Some(&release(ready, reason)), Some(&map))
        };
        let begun = Versions { ran: OLD, begun: NEW };
        for (ready, reason, expected) in [
            ("Unknown", "Progressing", begun),
            ("False", "UpgradeFailed", begun),
            ("False", "SourceNotReady", before),
            ("False", "ArtifactFailed", before),
        ] {
            assert_eq!(after(before, OLD, ready, reason), expected, "{reason}");
        }
        assert_eq!(after(begun, OLD, "False", "SourceNotReady"), begun, "it stays");
        assert_eq!(begun.now(None, None, None), begun);
        let ran = Versions {
            ran: NEW,
            begun: None,
        };
        assert_eq!(after(begun, NEW, "True", "UpgradeSucceeded"), ran);
        assert_eq!(
            after(begun, OLD, "True", "UpgradeSucceeded"),
            before,
            "somebody went back"
        );
    }
}
