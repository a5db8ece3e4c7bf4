//! A project and its dependencies: the database and the bucket on real servers, the controller on a cluster.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod acceptance;
mod auth;
mod bed;
mod contact_postgres;
mod contact_s3;
mod crash;
mod departure;
mod deputy;
mod examples;
mod existing;
mod extensions;
mod extra_env;
mod hostile;
mod imgproxy;
mod interrupted;
mod jwt;
mod meanwhile;
mod mending;
mod meta;
mod neighbours;
mod objects;
mod optional;
mod phases;
mod plain_admin;
mod quiet;
mod remembered;
mod rights;
mod rotation;
mod service;
mod stage;
mod state;
mod storage;
mod upgrade;
mod walls;
