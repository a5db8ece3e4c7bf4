//! `PostgresUser` on a real API server and a real PostgreSQL, one module a subject.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod admission;
mod adoption;
mod around;
mod bed;
mod credentials;
mod drift;
mod goodbye;
mod hostile;
mod instances;
mod life;
mod modes;
mod passwords;
mod privileges;
mod rights;
mod roles;
mod webhook;
