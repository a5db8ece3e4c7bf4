//! An embedded Kubernetes API server, for trying and for testing. **Never for production**: it keeps everything
//! in memory, checks built-in objects superficially, and only simulates workloads.
//!
//! ```text
//!   kube::Client ──► service (in process)  ┐
//!                                          ├─► server: authenticate → authorize → faults → handlers → audit
//!   kubectl, Helm ─► tls (HTTP/1.1, h2)    ┘                                          │
//!                                             request, body: what is asked for        │
//!                                             schema: what an object looks like ◄─────┤
//!                                             lifecycle, admission: what may enter ◄──┤
//!                                             apply, patch: who owns what ◄───────────┤
//!                                             store: the objects and their changes ◄──┘
//!                                                  ▲
//!                  controllers: CRDs, namespaces, garbage, simulated workloads
//! ```
//!
//! Beside it, [`players`] stand in for operators that a sandbox does not have.
//!
//! What the built-in kinds are (discovery, schemas, list types, merge keys) is not written here: it is dumped
//! from a real server (`examples/dump.rs`) and embedded. `docs/sandbox.md` lists what differs from the original.

#![allow(
    clippy::indexing_slicing,
    reason = "JSON is indexed by key: an absent key reads as null, and only objects that were read by their schema or \
              made here are written to"
)]

mod admission;
mod answer;
mod apply;
mod audit;
mod auth;
mod clock;
mod controllers;
mod data;
mod deprecation;
mod discovery;
mod error;
mod events;
mod faults;
mod handlers;
mod lifecycle;
mod nonresource;
mod openapi;
mod patch;
pub mod players;
mod private;
mod protobuf;
mod request;
mod resource;
mod sandbox;
mod schema;
mod selector;
mod server;
mod service;
mod store;
mod table;
mod tls;
mod turns;

pub use answer::Body;
pub use auth::{MASTERS, User};
pub use error::ApiError;
pub use faults::{Effect, Faults, Match};
pub use sandbox::{Builder, Sandbox, StartError};
pub use service::Door;
pub use tls::TlsError;
