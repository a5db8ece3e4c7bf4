//! The served resources: built-in ones from the embedded discovery documents, custom ones from CRDs.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use serde_json::Value;

use crate::data;
use crate::deprecation;
use crate::schema::{Schema, custom::Custom};

/// The group, version and plural of a resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Address {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
}

#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) kind: String,
    pub(crate) namespaced: bool,
    /// The entry in aggregated discovery; it also contains verbs and subresources.
    pub(crate) discovery: Value,
    /// The key in the store that all versions of this resource share: `group/plural`.
    pub(crate) storage: Arc<str>,
    /// Warnings in every response about it.
    pub(crate) warnings: Vec<String>,
    /// Set for custom resources.
    pub(crate) custom: Option<Custom>,
}

impl Resource {
    fn builtin(group: &str, version: &str, entry: &Value) -> Option<Self> {
        let text = |key: &str| entry.get(key).and_then(Value::as_str);
        let plural = text("resource")?.to_owned();
        let storage = match (group, plural.as_str()) {
            // Two representations of the same objects.
            ("events.k8s.io", "events") => "/events".into(),
            _ => format!("{group}/{plural}").into(),
        };
        let kind = entry.get("responseKind")?.get("kind")?.as_str()?;
        Some(Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            namespaced: text("scope") == Some("Namespaced"),
            discovery: entry.clone(),
            warnings: deprecation::of_built_in(group, kind).into_iter().collect(),
            custom: None,
            plural,
            storage,
        })
    }

    /// The group in validation errors: events are validated as the older of their two versions.
    pub(crate) fn group_in_errors(&self) -> &str {
        if &*self.storage == "/events" {
            ""
        } else {
            &self.group
        }
    }

    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    pub(crate) fn list_kind(&self) -> String {
        let declared = self.custom.as_ref().and_then(|custom| custom.list_kind.clone());
        declared.unwrap_or_else(|| format!("{}List", self.kind))
    }

    pub(crate) fn schema(&self) -> Option<Schema<'_>> {
        match &self.custom {
            Some(custom) => Some(Schema::custom(&custom.schema)),
            None => Schema::of_kind(&self.group, &self.version, &self.kind),
        }
    }

    pub(crate) fn allows(&self, verb: &str) -> bool {
        has_verb(&self.discovery, verb)
    }

    pub(crate) fn subresource(&self, name: &str) -> Option<&Value> {
        self.discovery
            .get("subresources")?
            .as_array()?
            .iter()
            .find(|entry| entry.get("subresource").and_then(Value::as_str) == Some(name))
    }

    pub(crate) fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    pub(crate) fn address(&self) -> Address {
        Address {
            group: self.group.clone(),
            version: self.version.clone(),
            plural: self.plural.clone(),
        }
    }
}

pub(crate) fn has_verb(entry: &Value, verb: &str) -> bool {
    entry
        .get("verbs")
        .and_then(Value::as_array)
        .is_some_and(|verbs| verbs.iter().any(|known| known.as_str() == Some(verb)))
}

/// All resources that are currently served.
#[derive(Debug)]
pub(crate) struct Registry {
    builtin: BTreeMap<Address, Arc<Resource>>,
    custom: RwLock<BTreeMap<Address, Arc<Resource>>>,
}

impl Registry {
    pub(crate) fn new() -> Self {
        let mut builtin = BTreeMap::new();
        for group in data::groups() {
            let name = group["metadata"]
                .get("name")
                .and_then(Value::as_str)
                .unwrap_or_default();
            for version in group
                .get("versions")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                let Some(v) = version.get("version").and_then(Value::as_str) else {
                    continue;
                };
                for entry in version
                    .get("resources")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten()
                {
                    if let Some(resource) = Resource::builtin(name, v, entry) {
                        builtin.insert(resource.address(), Arc::new(resource));
                    }
                }
            }
        }
        Self {
            builtin,
            custom: RwLock::default(),
        }
    }

    pub(crate) fn get(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        let address = Address {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: plural.to_owned(),
        };
        self.builtin
            .get(&address)
            .cloned()
            .or_else(|| self.read().get(&address).cloned())
    }

    /// The resource of a kind; without a version any served one.
    pub(crate) fn of_kind(&self, group: &str, version: Option<&str>, kind: &str) -> Option<Arc<Resource>> {
        self.all().into_iter().find(|resource| {
            resource.group == group
                && resource.kind == kind
                && version.is_none_or(|version| resource.version == version)
        })
    }

    /// Any served version of the objects under `storage`.
    pub(crate) fn of_storage(&self, storage: &str) -> Option<Arc<Resource>> {
        self.all()
            .into_iter()
            .find(|resource| *resource.storage == *storage)
    }

    /// The other served versions of a resource.
    pub(crate) fn others(&self, of: &Resource) -> Vec<Arc<Resource>> {
        let is_other = |resource: &&Arc<Resource>| {
            resource.plural == of.plural && resource.group == of.group && resource.version != of.version
        };
        let custom = self.read();
        let all = self.builtin.values().chain(custom.values());
        all.filter(is_other).cloned().collect()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Resource>> {
        self.builtin
            .values()
            .chain(self.read().values())
            .cloned()
            .collect()
    }

    pub(crate) fn custom(&self) -> Vec<Arc<Resource>> {
        self.read().values().cloned().collect()
    }

    /// Whether anything is served under a group and version.
    pub(crate) fn serves(&self, group: &str, version: &str) -> bool {
        let within = |address: &Address| address.group == group && address.version == version;
        self.builtin.keys().any(within) || self.read().keys().any(within)
    }

    /// Whether a group is one of custom resources.
    pub(crate) fn is_custom(&self, group: &str) -> bool {
        self.read().keys().any(|address| address.group == group)
    }

    /// Serves exactly these versions of the CRD `name`.
    pub(crate) fn set_custom(&self, name: &str, mut versions: Vec<Resource>, revision: u64) {
        let mut custom = self.custom.write();
        for resource in &mut versions {
            let before = custom
                .get(&resource.address())
                .and_then(|known| known.custom.as_ref());
            if let Some(own) = &mut resource.custom {
                let same = before.filter(|before| before.declared == own.declared);
                own.since = same.map_or(revision, |same| same.since);
            }
        }
        custom.retain(|_, resource| format!("{}.{}", resource.plural, resource.group) != name);
        for resource in versions {
            custom.insert(resource.address(), Arc::new(resource));
        }
    }

    fn read(&self) -> parking_lot::RwLockReadGuard<'_, BTreeMap<Address, Arc<Resource>>> {
        self.custom.read()
    }
}
