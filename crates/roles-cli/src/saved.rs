//! Saved plans, so that the applied plan is the reviewed one.
//!
//! A saved plan contains the desired state and the identity of the plan, and no passwords. `apply` computes the plan
//! again from the current database, and stops unless it is the same plan.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::source::Source;
use super::{Failure, While as _};
use stanchion_roles::diff;
use stanchion_roles::expand::{Desired, Scope, expand};
use stanchion_roles::manifest::Manifest;
use stanchion_roles::plan::{Mode, Plan, Summary};

const VERSION: &str = "stanchion.roles_plan.v1";

/// A plan in a file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedPlan {
    schema_version: String,
    /// The database of the plan.
    pub(super) database: String,
    /// The identity of its changes.
    pub(super) digest: String,
    mode: String,
    allow_schema_owner_transfers: bool,
    manifest: Manifest,
    /// The scope of a bundle; a manifest manages what it mentions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scope: Option<Scope>,
    /// Informative only.
    #[serde(default, skip_deserializing)]
    summary: Summary,
    /// Informative only.
    #[serde(default, skip_deserializing)]
    sql: Vec<String>,
}

impl SavedPlan {
    pub(super) fn new(plan: &Plan, database: String, source: &Source, options: &diff::Options) -> Self {
        Self {
            schema_version: VERSION.to_owned(),
            database,
            digest: plan.digest(),
            mode: options.mode.name().to_owned(),
            allow_schema_owner_transfers: options.allow_schema_owner_transfers,
            manifest: source.manifest.clone(),
            scope: source.bundle.as_ref().map(|bundle| bundle.composed.scope.clone()),
            summary: plan.summary(),
            sql: stanchion_roles::render::script(plan)
                .lines()
                .map(str::to_owned)
                .collect(),
        }
    }

    pub(super) fn write(&self, path: &Path) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(self).doing("failed to write the plan")?;
        std::fs::write(path, text + "\n")
            .doing(format_args!("failed to write the plan to {}", path.display()))
    }

    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let doing = format!("failed to read the plan {}", path.display());
        let text = std::fs::read_to_string(path).doing(&doing)?;
        let plan: Self = serde_json::from_str(&text).doing(&doing)?;
        if plan.schema_version != VERSION {
            return Err(Failure::new(format!(
                "{doing}: it is a `{}`, not a `{VERSION}`",
                plan.schema_version
            )));
        }
        Ok(plan)
    }

    pub(super) fn mode(&self) -> Result<Mode, Failure> {
        [Mode::Authoritative, Mode::Additive, Mode::Adopt]
            .into_iter()
            .find(|mode| mode.name() == self.mode)
            .ok_or_else(|| Failure::new(format!("the plan has the unknown mode `{}`", self.mode)))
    }

    pub(super) fn allows_schema_owner_transfers(&self) -> bool {
        self.allow_schema_owner_transfers
    }

    pub(super) fn desired(&self) -> Desired {
        let mut desired = expand(&self.manifest);
        if let Some(scope) = &self.scope {
            desired.scope = scope.clone();
        }
        desired
    }
}
