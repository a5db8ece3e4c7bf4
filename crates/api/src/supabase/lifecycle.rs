//! What happens to a project's database objects on deletion.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What happens to the project's database objects when the project is deleted. `Retain` keeps everything. `Delete`
/// drops the logins, roles, schemas and extensions that the operator created for the project, including the data of its
/// services, and keeps everything that existed before or that others use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum DeletionPolicy {
    #[default]
    Retain,
    Delete,
}
