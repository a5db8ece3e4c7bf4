//! The interface that the kernel needs from every status type.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde::{Deserialize, Deserializer, Serialize};

/// A status with conditions that describes one generation of the spec.
pub trait Status: Serialize + Clone + Default + PartialEq + Send + Sync {
    /// The list-map of conditions.
    fn conditions(&self) -> &[Condition];
    /// Mutable access to the conditions.
    fn conditions_mut(&mut self) -> &mut Vec<Condition>;
    /// Sets the generation of the spec that this status describes.
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

/// Deserializes conditions that another operator wrote: with other names for the times, and with missing fields.
pub(crate) fn lenient_conditions<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Condition>, D::Error> {
    #[derive(Deserialize)]
    struct Lenient {
        #[serde(rename = "type")]
        type_: String,
        status: String,
        #[serde(default)]
        reason: Option<String>,
        #[serde(default)]
        message: Option<String>,
        #[serde(default, rename = "observedGeneration")]
        observed_generation: Option<i64>,
        #[serde(default, rename = "lastTransitionTime", alias = "last_transition_time")]
        last_transition_time: Option<Timestamp>,
    }
    let read = Option::<Vec<Lenient>>::deserialize(from)?.unwrap_or_default();
    let condition = |read: Lenient| Condition {
        type_: read.type_,
        status: read.status,
        reason: read.reason.unwrap_or_default(),
        message: read.message.unwrap_or_default(),
        observed_generation: read.observed_generation,
        last_transition_time: Time(read.last_transition_time.unwrap_or(Timestamp::UNIX_EPOCH)),
    };
    Ok(read.into_iter().map(condition).collect())
}
