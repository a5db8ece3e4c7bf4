//! What the kernel needs of every status.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::Serialize;

/// A status with conditions that speaks of one generation of the spec.
pub trait Status: Serialize + Clone + Default + PartialEq + Send + Sync {
    /// The list-map of conditions.
    fn conditions(&self) -> &[Condition];
    /// The same, to write.
    fn conditions_mut(&mut self) -> &mut Vec<Condition>;
    /// Which generation of the spec this status speaks of.
    fn set_observed_generation(&mut self, generation: Option<i64>);
}

/// Implements [`Status`] for a type with the fields `conditions` and `observed_generation`.
macro_rules! impl_status {
    ($type:ty) => {
        impl $crate::status::Status for $type {
            fn conditions(&self) -> &[k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition] {
                &self.conditions
            }
            fn conditions_mut(
                &mut self,
            ) -> &mut Vec<k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition> {
                &mut self.conditions
            }
            fn set_observed_generation(&mut self, generation: Option<i64>) {
                self.observed_generation = generation;
            }
        }
    };
}
pub(crate) use impl_status;
