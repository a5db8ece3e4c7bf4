#![doc = include_str!("../README.md")]
//! ## Inside
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
//! The built-in kinds (discovery, schemas, list types, merge keys) are not part of the code: they are dumped from a
//! real server (`examples/dump.rs`) and embedded. Comments call the real kube-apiserver *the original*;
//! `docs/sandbox.md` lists the differences.

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
pub mod fake_operators;
mod faults;
mod handlers;
mod lifecycle;
mod nonresource;
mod openapi;
mod patch;
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
mod write_locks;

pub use answer::Body;
pub use auth::{MASTERS, User};
pub use error::ApiError;
pub use faults::{Effect, Faults, Match};
pub use sandbox::{Builder, Sandbox, StartError};
pub use service::InProcessService;
pub use tls::TlsError;
