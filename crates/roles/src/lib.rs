//! The role engine: access control as code, without Kubernetes in it.

pub mod expand;
pub mod facts;
pub mod guc;
pub mod inspect;
pub mod manifest;
pub mod model;
pub mod yaml;
