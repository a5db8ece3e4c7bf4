//! Options for upgrades.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Options for upgrades. The operator installs every required upgrade stop of GitLab on the way to the target version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Upgrade {
    /// Whether the next upgrade step waits until the database reports that the background migrations of the previous
    /// step are finished. If false, the next step starts as soon as the release is ready.
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
