//! The target of an instance. The schema checks everything that can be checked without a connection.

use stanchion_api::PostgresInstance;
use stanchion_kernel::Problem;

/// The target is the object itself.
pub fn validate(instance: &PostgresInstance) -> Result<PostgresInstance, Problem> {
    Ok(instance.clone())
}

/// An instance that is being deleted has nothing to clean up: the operator creates nothing for it.
pub fn cleanup_target(instance: &PostgresInstance) -> PostgresInstance {
    instance.clone()
}
