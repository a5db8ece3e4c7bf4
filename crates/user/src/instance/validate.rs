//! The schema of an instance has no rule that it does not enforce itself.

use stanchion_api::PostgresInstance;

/// The target is the object itself.
pub(super) fn validate(instance: &PostgresInstance) -> PostgresInstance {
    instance.clone()
}
