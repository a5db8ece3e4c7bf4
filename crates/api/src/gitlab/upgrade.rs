//! How a new version is reached.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a new version is reached. GitLab names versions that no upgrade may leave out; each is installed on the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Upgrade {
    /// Whether the next step waits until the database says that the background migrations of the last one are done.
    /// Without it, the next step follows as soon as the release is ready.
    #[serde(default = "yes")]
    pub wait_for_migrations: bool,
}

impl Default for Upgrade {
    fn default() -> Self {
        Self {
            wait_for_migrations: yes(),
        }
    }
}

fn yes() -> bool {
    true
}
