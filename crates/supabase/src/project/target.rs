//! What a `SupabaseProject` requests, validated.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::EnvVar;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use stanchion_api::instance::{CaSecretRef, TlsMode};
use stanchion_api::supabase::{Phase, SecretReference};
use stanchion_api::{SupabaseProject, SupabaseProjectSpec};

use crate::components::{self, Needs, environment};
use crate::database::{Login, Names};

/// An active project.
pub struct Wanted {
    pub name: String,
    pub namespace: String,
    pub uid: String,
    /// The valid spec.
    pub spec: SupabaseProjectSpec,
    /// The Secrets that it names.
    pub secrets: References,
    /// The spec's generation.
    pub generation: Option<i64>,
    /// The value of the annotation that requests new keys.
    pub rotate: Option<String>,
    /// How long old keys are accepted.
    pub grace: SignedDuration,
    /// The status of earlier reconciles.
    pub before: Before,
}

/// The Secrets that a project names, all in its own namespace.
pub struct References {
    /// The database's administrator.
    pub database: String,
    /// The bucket's key.
    pub storage: String,
    /// The mail server.
    pub smtp: Option<String>,
    /// OAuth providers.
    pub oauth: Option<String>,
    /// The dashboard's password.
    pub dashboard: Option<String>,
}

/// The administrator's login, as far as the spec describes it. A deleted project needs nothing else of its spec.
pub(crate) struct Administrator {
    pub namespace: String,
    /// The Secret with the address and the password.
    pub secret: String,
    /// The server's authority.
    pub ca: Option<CaSecretRef>,
    pub mode: TlsMode,
}

impl Administrator {
    /// The administrator of an object that may be invalid otherwise. `None` if it names no Secret of its namespace.
    pub(crate) fn of(project: &SupabaseProject) -> Option<Self> {
        let (database, namespace) = (&project.spec.database, project.metadata.namespace.clone()?);
        let other = database.secret_ref.namespace.as_deref();
        let is_other = other.is_some_and(|other| !other.is_empty() && other != namespace);
        let secret = name(&database.secret_ref).filter(|_| !is_other)?;
        Some(Self {
            secret,
            namespace,
            ca: database.ca_secret_ref.clone(),
            mode: database.ssl_mode,
        })
    }

    /// What is read for it.
    pub(crate) fn to_read(&self) -> ToRead {
        let ca = self.ca.as_ref().map(|ca| ca.name.clone());
        ToRead {
            secrets: ca.into_iter().chain([self.secret.clone()]).collect(),
            ..ToRead::default()
        }
    }
}

/// The objects that a pass reads. Of those that only `extraEnv` names, nothing but the named keys matters.
#[derive(Debug, Default)]
pub(crate) struct ToRead {
    pub secrets: BTreeSet<String>,
    pub secret_keys: BTreeMap<String, BTreeSet<String>>,
    pub config_maps: BTreeSet<String>,
    pub config_keys: BTreeMap<String, BTreeSet<String>>,
}

impl ToRead {
    /// Every Secret.
    pub(crate) fn all_secrets(&self) -> BTreeSet<&String> {
        self.secrets.iter().chain(self.secret_keys.keys()).collect()
    }

    /// Every `ConfigMap`.
    pub(crate) fn all_config_maps(&self) -> BTreeSet<&String> {
        self.config_maps.iter().chain(self.config_keys.keys()).collect()
    }
}

impl Wanted {
    /// Everything that a reconcile reads.
    pub(crate) fn to_read(&self) -> ToRead {
        let needed = self.needs().flat_map(|needs| needs.config_maps);
        ToRead {
            secrets: self.own_secrets().collect(),
            secret_keys: by_name(self.extra_env(environment::secrets)),
            config_maps: needed.map(|needed| needed.name).collect(),
            config_keys: by_name(self.extra_env(environment::config_maps)),
        }
    }

    /// The administrator of its database.
    pub(crate) fn administrator(&self) -> Administrator {
        let database = &self.spec.database;
        Administrator {
            namespace: self.namespace.clone(),
            secret: self.secrets.database.clone(),
            ca: database.ca_secret_ref.clone(),
            mode: database.ssl_mode,
        }
    }

    /// Every Secret that is read, including the project's own.
    pub(crate) fn secret_names(&self) -> Vec<String> {
        self.to_read().all_secrets().into_iter().cloned().collect()
    }

    /// The Secrets that fields of the spec name, and the project's own.
    fn own_secrets(&self) -> impl Iterator<Item = String> {
        let named = &self.secrets;
        let ca = self
            .spec
            .database
            .ca_secret_ref
            .as_ref()
            .map(|ca| ca.name.clone());
        let own = self.spec.jwt.secret_ref.as_ref().map(|own| own.name.clone());
        [named.database.clone(), named.storage.clone(), self.key_secret()]
            .into_iter()
            .chain(
                [&named.smtp, &named.oauth, &named.dashboard]
                    .into_iter()
                    .flatten()
                    .cloned(),
            )
            .chain(ca)
            .chain(own)
            .chain(
                self.needs()
                    .flat_map(|needs| needs.secrets)
                    .map(|needed| needed.name),
            )
    }

    /// A digest of everything that decides which Secrets are read and what is taken from them.
    pub fn reading(&self) -> [u8; 32] {
        let (spec, named) = (&self.spec, &self.secrets);
        let needs: Vec<_> = self
            .needs()
            .flat_map(|needs| needs.secrets)
            .map(|needed| json!([needed.name, needed.keys]))
            .collect();
        let logins: Vec<_> = components::logins(spec).into_iter().map(Login::role).collect();
        let generated: Vec<_> = components::generated(spec).into_iter().map(|it| it.key).collect();
        let reading = json!([
            [spec.database, spec.storage, spec.jwt],
            [named.smtp, named.oauth, named.dashboard],
            [self.secret_names(), needs, logins, generated],
            self.rotate,
        ]);
        Sha256::digest(reading.to_string()).into()
    }

    /// The objects of the user that the components need.
    pub fn needs(&self) -> impl Iterator<Item = Needs> {
        components::wanted(&self.spec).map(|(component, _)| (component.needs)(&self.spec))
    }

    /// The Secrets that `extraEnv` refers to.
    pub(crate) fn extra_secrets(&self) -> BTreeSet<String> {
        self.to_read().secret_keys.into_keys().collect()
    }

    /// Names and keys of the objects of one kind that `extraEnv` refers to.
    fn extra_env<'a, I: Iterator<Item = (String, String)>>(
        &'a self,
        of: impl Fn(&'a [EnvVar]) -> I,
    ) -> impl Iterator<Item = (String, String)> {
        components::wanted(&self.spec).flat_map(move |(_, options)| of(&options.extra_env))
    }

    /// The `ConfigMaps` that pods use.
    pub(crate) fn config_maps(&self) -> BTreeSet<String> {
        self.to_read().all_config_maps().into_iter().cloned().collect()
    }

    /// The project's name in its database.
    pub(crate) fn project_id(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// The Secret with the project's keys.
    pub(crate) fn key_secret(&self) -> String {
        format!("{}-jwt", self.name)
    }
}

/// The status of earlier reconciles.
#[derive(Default)]
pub struct Before {
    /// Whether an `HTTPRoute` may exist.
    pub routed: bool,
    pub phase: Option<Phase>,
    /// The names of the project's logins, if that reconcile had this spec.
    pub logins: Option<Names>,
    /// Whether that reconcile knew its components. Only then there is something to repair.
    pub deployed: bool,
    /// When the status was last written.
    pub said: Option<Timestamp>,
    /// Until when old keys are accepted.
    pub previous_until: Option<Timestamp>,
}

impl Before {
    /// The names of the logins of a project that was deployed with this spec.
    pub(crate) fn deployed_as(&self) -> Option<&Names> {
        self.logins.as_ref().filter(|_| self.deployed)
    }
}

fn by_name(named: impl Iterator<Item = (String, String)>) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, key) in named {
        all.entry(name).or_default().insert(key);
    }
    all
}

/// The name in a reference.
pub(crate) fn name(reference: &SecretReference) -> Option<String> {
    reference.name.clone().filter(|name| !name.is_empty())
}
