//! Plans the writes for an instance. Backends are created in parallel; the release waits for everything that it needs.

use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::core::DynamicObject;
use rand::CryptoRng;
use serde_json::{Value, json};
use stanchion_kernel::apply::{Intent, ObjectChange, Takeover, decide, is_owned};
use stanchion_kernel::context::Parent;
use stanchion_kernel::external::ExternalKind;
use stanchion_kernel::{Inputs, Problem};

use super::observe::{Current, Observed, is_made_here};
use super::prerequisites::{
    Account, BackendInputs, Blocker, Prerequisites, ReleaseInputs, UpgradePlan, database,
};
use super::target::Wanted;
use crate::account;
use crate::backends::kinds::{ELASTICSEARCH, PERCONA};
use crate::backends::{elasticsearch, percona, redis};
use crate::flux::{self, Chart, Release};
use crate::record::Versions;
use crate::storage::{Buckets, Derived};
use crate::values::{self, ChartVersion, Input};
use crate::versions;

pub struct Plan {
    /// The writes, in this order.
    pub changes: Vec<ObjectChange>,
    /// What blocks the instance after these writes.
    pub blocker: Option<Blocker>,
    /// Whether the Secrets of the buckets are up to date after these writes.
    pub storage_resolved: bool,
}

/// Plans the writes.
pub(crate) fn plan(wanted: &Wanted, observed: &Observed, inputs: &mut Inputs<'_>) -> Result<Plan, Problem> {
    let Observed {
        current,
        prerequisites,
    } = observed;
    let planner = Planner {
        wanted,
        current,
        prerequisites,
    };
    let mut changes = planner.account()?;
    let mut storage_resolved = false;
    if let Ok(ready) = prerequisites.for_backends() {
        changes.extend(planner.backends(&ready, inputs.random)?);
        storage_resolved = prerequisites.storage.is_ok();
        if let Ok(Some(buckets)) = &prerequisites.storage {
            changes.extend(planner.storage(buckets)?);
        }
        changes.extend(planner.record(ready.upgrade)?);
    }
    if let Ok(ready) = prerequisites.for_release() {
        changes.extend(planner.release(&ready)?);
    }
    Ok(Plan {
        changes,
        blocker: prerequisites.before_ready().cloned(),
        storage_resolved,
    })
}

/// What the plan is made from.
struct Planner<'a> {
    wanted: &'a Wanted,
    current: &'a Current,
    prerequisites: &'a Prerequisites,
}

impl Planner<'_> {
    /// The `ServiceAccount` is written before everything for Flux, and deleted when no release names it.
    fn account(&self) -> Result<Vec<ObjectChange>, Problem> {
        let (current, name) = (self.current, &self.wanted.name);
        let Ok(account) = &self.prerequisites.account else {
            return Ok(Vec::new());
        };
        let release = self.prerequisites.release.as_ref();
        let used = release.and_then(|release| release.account.as_ref());
        let mut changes = if matches!(account, Account::Own(_)) {
            make_account(name, &current.account, &current.parent)?
        } else if used != Some(&account::name(name)) && release.is_none_or(Release::is_done) {
            remove_account(name, &current.account)
        } else {
            Vec::new()
        };
        // A release that waits for something else must not keep Flux's permissions.
        let waits = used.is_none() && self.prerequisites.for_release().is_err();
        if let (true, Some(account), Some(kind), Some(release)) = (
            waits,
            account.name(),
            &current.flux.release_kind,
            &current.flux.release,
        ) && is_owned(&release.metadata, &current.parent)
        {
            changes.push(ObjectChange::merge::<DynamicObject>(
                &release.metadata,
                &kind.resource,
                json!({ "serviceAccountName": account }),
            ));
        }
        Ok(changes)
    }

    /// The objects of the backends that other operators run.
    fn backends(
        &self,
        inputs: &BackendInputs<'_>,
        random: &mut dyn CryptoRng,
    ) -> Result<Vec<ObjectChange>, Problem> {
        let (current, parent) = (self.current, &self.current.parent);
        let requests = self
            .wanted
            .requests(inputs.profile.map(|profile| &profile.defaults));
        let spec = requests.spec;
        let mut changes = Vec::new();
        if spec.postgres.managed && current.backends.of(&PERCONA).served.is_some() {
            let init = of_instance(percona::init(requests.instance), parent);
            let init = Intent::to_keep(&init, parent)?;
            changes.extend(keep_map(init, current.init.as_ref(), parent)?);
            let request = requests.postgres(self.postgres_version(inputs.upgrade));
            changes.extend(self.keep(&PERCONA, &percona::cluster(&request))?);
        }
        if spec.redis.managed {
            changes.extend(self.redis(&redis::objects(&requests.redis()), random)?);
        }
        if self.wanted.needs_elasticsearch() {
            let object = elasticsearch::object(&requests.elasticsearch());
            changes.extend(self.keep(&ELASTICSEARCH, &object)?);
        }
        Ok(changes)
    }

    /// A Redis, and its password before it. The password of somebody else's Redis is not generated.
    fn redis(
        &self,
        objects: &[(&'static ExternalKind, Value)],
        random: &mut dyn CryptoRng,
    ) -> Result<Vec<ObjectChange>, Problem> {
        let (current, parent) = (self.current, &self.current.parent);
        let mut changes = Vec::new();
        let of = |kind: &'static ExternalKind| current.backends.of(kind);
        if objects.iter().any(|(kind, _)| of(kind).served.is_none()) {
            return Ok(changes);
        }
        let name = &self.wanted.name;
        let is_theirs = objects.iter().any(|(kind, _)| of(kind).is_somebody_elses());
        if !is_theirs && !current.secrets.contains_key(&redis::auth_name(name)) {
            let auth = of_instance(redis::auth(name, &redis::password(random)), parent);
            changes.push(ObjectChange::Apply(Intent::to_keep(&auth, parent)?));
        }
        for (kind, object) in objects {
            changes.extend(self.keep(kind, object)?);
        }
        Ok(changes)
    }

    /// The derived Secrets of the buckets.
    fn storage(&self, buckets: &Buckets) -> Result<Vec<ObjectChange>, Problem> {
        let (wanted, current) = (self.wanted, self.current);
        let mut changes = Vec::new();
        // The Secrets are only shapes, and derived from what they are.
        if current.storage_resolved {
            return Ok(changes);
        }
        for derived in Derived::ALL {
            let secret = derived.object(&wanted.name, buckets).map_err(|error| {
                Problem::permanent("Unserializable", "a Secret could not be serialized").caused_by(error)
            })?;
            let name = derived.name(&wanted.name);
            // A predecessor's Secret has the same name and no owner, and is listed in the status.
            let takeover = if wanted.secrets.contains(&name) {
                Takeover::Adopt
            } else {
                Takeover::Refuse
            };
            let intent = Intent::new(&secret, &current.parent)?;
            let intent = decide(intent, current.secrets.get(&name), &current.parent, takeover)?;
            changes.extend(intent.map(ObjectChange::Apply));
        }
        Ok(changes)
    }

    /// The record of the versions of this database.
    fn record(&self, upgrade: &UpgradePlan) -> Result<Option<ObjectChange>, Problem> {
        let (wanted, current) = (self.wanted, self.current);
        let Some(database) = database(wanted, current) else {
            return Ok(None);
        };
        let versions = Versions {
            ran: upgrade.running,
            begun: upgrade.begun,
        };
        keep_record(
            versions,
            &wanted.name,
            &database,
            current.record.as_ref(),
            &current.parent,
        )
    }

    /// The chart repository and the release.
    fn release(&self, inputs: &ReleaseInputs<'_>) -> Result<Vec<ObjectChange>, Problem> {
        let (wanted, flux, parent) = (self.wanted, &self.current.flux, &self.current.parent);
        let kinds = inputs.flux;
        let repository = flux::helm_repository(&wanted.name, inputs.repository, &kinds.repositories);
        let repository = Intent::new(&repository, parent)?.served_as(&kinds.repositories.resource);
        let repository = decide(repository, flux.repository.as_ref(), parent, Takeover::Refuse)?;
        let release = flux::helm_release(&wanted.name, &self.chart(inputs), &kinds.releases);
        let release = Intent::new(&release, parent)?.served_as(&kinds.releases.resource);
        let release = decide(release, flux.release.as_ref(), parent, Takeover::Adopt)?;
        let mut changes = Vec::new();
        changes.extend(repository.map(ObjectChange::Apply));
        let is_done = self.prerequisites.release.as_ref().is_some_and(Release::is_done);
        if release.is_none() && is_done {
            changes.extend(self.unused_secrets());
        }
        let live = flux.release.as_ref().map(|release| &release.metadata);
        changes.extend(release.map(|intent| ObjectChange::adopting(intent, live)));
        Ok(changes)
    }

    /// The chart to install, and its values.
    fn chart(&self, inputs: &ReleaseInputs<'_>) -> Chart {
        let wanted = self.wanted;
        let profile = inputs.profile.map(|profile| profile.defaults.clone());
        let version = &inputs.upgrade.now.chart;
        let values = values::compose(&Input {
            name: &wanted.name,
            spec: &wanted.spec,
            profile: &profile.unwrap_or_default(),
            step_values: &inputs.upgrade.now.values,
            written: &self.prerequisites.written,
            chart: &ChartVersion::of(version),
            psql: inputs.postgres,
            redis: inputs.redis,
            buckets: inputs.storage,
            mail: inputs.mail,
            checksums: &self.current.checksums,
        });
        let (object, release) = match &self.prerequisites.release {
            Some(release) => (release.object.clone(), release.name.clone()),
            None => (flux::name(&wanted.name), Some(wanted.name.clone())),
        };
        Chart {
            object,
            release,
            version: version.clone(),
            values,
            account: inputs.account.name().map(str::to_owned),
        }
    }

    /// The Secrets of a storage that is no longer named: nothing reads them once Flux has installed GitLab without them.
    fn unused_secrets(&self) -> Vec<ObjectChange> {
        let (wanted, current) = (self.wanted, self.current);
        if wanted.spec.object_storage.credentials_secret.is_some() {
            return Vec::new();
        }
        let names = Derived::names(&wanted.name);
        let live = names.iter().filter_map(|name| current.secrets.get(name));
        live.filter(|secret| is_owned(&secret.metadata, &current.parent))
            .map(|secret| ObjectChange::delete::<Secret>(&secret.metadata, &()))
            .collect()
    }

    /// The major version of the database: an existing one stays, because an upgrade needs more than a new number.
    fn postgres_version(&self, upgrade: &UpgradePlan) -> u32 {
        percona::version(self.current.backends.of(&PERCONA).object.as_ref())
            .or(self.wanted.spec.postgres.version)
            .unwrap_or_else(|| *versions::postgres(&upgrade.now.version).end())
    }

    /// An object that outlives the instance. An existing one that the operator did not create is used unchanged: it may
    /// be somebody's database.
    fn keep(&self, kind: &'static ExternalKind, object: &Value) -> Result<Option<ObjectChange>, Problem> {
        let (backend, parent) = (self.current.backends.of(kind), &self.current.parent);
        let Some(served) = backend.served.as_ref().filter(|_| !backend.is_somebody_elses()) else {
            return Ok(None);
        };
        let intent = Intent::to_keep(&of_instance(object.clone(), parent), parent)?;
        let intent = intent.served_as(&served.resource);
        let intent = decide(intent, backend.object.as_ref(), parent, Takeover::Adopt)?;
        Ok(intent.map(ObjectChange::Apply))
    }
}

/// The writes that create an instance's `ServiceAccount`.
pub(super) fn make_account(
    instance: &str,
    found: &account::Found,
    parent: &Parent,
) -> Result<Vec<ObjectChange>, Problem> {
    let account = Intent::to_keep(&account::account(instance), parent)?;
    let account = decide(account, found.account.as_ref(), parent, Takeover::Adopt)?;
    let binding = Intent::to_keep(&account::binding(instance, &parent.key.namespace), parent)?;
    let binding = decide(binding, found.binding.as_ref(), parent, Takeover::Adopt)?;
    let changes = [account, binding].into_iter().flatten();
    Ok(changes.map(ObjectChange::Apply).collect())
}

/// The writes that delete an instance's `ServiceAccount`. Objects of somebody else stay.
pub(super) fn remove_account(instance: &str, found: &account::Found) -> Vec<ObjectChange> {
    let binding = found.binding.as_ref().map(|binding| &binding.metadata);
    let binding = binding.filter(|meta| account::is_ours(meta, instance));
    let account = found.account.as_ref().map(|account| &account.metadata);
    let account = account.filter(|meta| account::is_ours(meta, instance));
    let changes = [
        binding.map(|meta| ObjectChange::delete::<RoleBinding>(meta, &())),
        account.map(|meta| ObjectChange::delete::<ServiceAccount>(meta, &())),
    ];
    changes.into_iter().flatten().collect()
}

/// The write of the record of an instance's versions, if there is something to record.
pub(super) fn keep_record(
    versions: Versions,
    instance: &str,
    database: &str,
    live: Option<&ConfigMap>,
    parent: &Parent,
) -> Result<Option<ObjectChange>, Problem> {
    match versions.object(instance, database) {
        Some(record) => keep_map(Intent::to_keep(&record, parent)?, live, parent),
        None => Ok(None),
    }
}

/// A `ConfigMap` that outlives the instance. One that somebody else created under this name stays as it is.
fn keep_map(
    intent: Intent,
    live: Option<&ConfigMap>,
    parent: &Parent,
) -> Result<Option<ObjectChange>, Problem> {
    let takeover = match live {
        Some(live) if !is_made_here(&live.metadata) => Takeover::Refuse,
        _ => Takeover::Adopt,
    };
    Ok(decide(intent, live, parent, takeover)?.map(ObjectChange::Apply))
}

/// Adds the instance's name as a label, so that objects that outlive it name it.
fn of_instance(mut object: Value, parent: &Parent) -> Value {
    let label = json!({ "metadata": { "labels": { account::INSTANCE: parent.key.name } } });
    if let (Value::Object(object), Value::Object(label)) = (&mut object, &label) {
        values::merge(object, label);
    }
    object
}
