//! What a project leaves behind.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What becomes of what was made in the database when a project is deleted. `Retain` leaves everything. `Delete` takes
/// away the logins, roles, schemas and extensions that were made for the project, with everything that its services keep in
/// them, and leaves what was there before and what others use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum DeletionPolicy {
    #[default]
    Retain,
    Delete,
}
