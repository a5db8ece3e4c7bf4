//! What a `SupabaseProject` requests, validated.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use stanchion_api::SupabaseProjectSpec;
use stanchion_api::supabase::{Phase, SecretReference};

use crate::components::{self, Needs, environment};
use crate::database::{Login, Names};

/// An active project.
pub struct Wanted {
    pub name: String,
    pub namespace: String,
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

impl Wanted {
    /// Every Secret that is read, including the project's own.
    pub(crate) fn secret_names(&self) -> Vec<String> {
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
            .chain(self.extra_secrets())
            .chain(
                self.needs()
                    .flat_map(|needs| needs.secrets)
                    .map(|needed| needed.name),
            )
            .collect()
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
        let variables = components::wanted(&self.spec).map(|(_, options)| &options.extra_env);
        let named = variables.flat_map(|variables| environment::secrets(variables));
        named.map(|(name, _)| name).collect()
    }

    /// The `ConfigMaps` that pods use.
    pub(crate) fn config_maps(&self) -> BTreeSet<String> {
        let variables = components::wanted(&self.spec).map(|(_, options)| &options.extra_env);
        let named = variables.flat_map(|variables| environment::config_maps(variables));
        let needed = self.needs().flat_map(|needs| needs.config_maps);
        named
            .map(|(name, _)| name)
            .chain(needed.map(|needed| needed.name))
            .collect()
    }

    /// The project's name in its database.
    pub(crate) fn project_id(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// The Secrets with the administrator's login.
    pub(crate) fn administrator_secrets(&self) -> BTreeSet<String> {
        let ca = self.spec.database.ca_secret_ref.as_ref();
        ca.map(|ca| ca.name.clone())
            .into_iter()
            .chain([self.secrets.database.clone()])
            .collect()
    }

    /// The Secret with the project's keys.
    pub(crate) fn key_secret(&self) -> String {
        format!("{}-jwt", self.name)
    }
}

/// The status of earlier reconciles.
#[derive(Default)]
pub struct Before {
    /// Whether an `HTTPRoute` existed.
    pub routed: bool,
    pub phase: Option<Phase>,
    /// The names of the project's logins, if that reconcile had this spec.
    pub logins: Option<Names>,
    /// When the status was last written.
    pub said: Option<Timestamp>,
    /// Until when old keys are accepted.
    pub previous_until: Option<Timestamp>,
}

/// The name in a reference.
pub(crate) fn name(reference: &SecretReference) -> Option<String> {
    reference.name.clone().filter(|name| !name.is_empty())
}
