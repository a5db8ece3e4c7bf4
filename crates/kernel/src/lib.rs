//! The kernel: everything a controller needs and that is not its subject.

pub mod client;
pub mod events;
pub mod lease;
pub mod redact;
pub mod telemetry;
