//! A project and its dependencies: the database and the bucket on real servers, the controller on a cluster.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod acceptance;
mod auth;
mod cached_reads;
mod concurrent_child_changes;
mod crash;
mod database_dump;
mod database_env;
mod database_isolation;
mod database_objects;
mod database_privileges;
mod deletion;
mod dropped_database;
mod examples;
mod existing_objects;
mod extensions;
mod extra_env;
mod imgproxy;
mod internal_database;
mod interrupted_initialisation;
mod jwt;
mod meta;
mod optional_components;
mod phases;
mod plain_admin;
mod pod_permissions;
mod postgres_probe;
mod quoting;
mod repair_before_check;
mod rotation;
mod s3_probe;
mod service_process;
mod shared_server;
mod storage;
mod storage_urls;
mod test_env;
mod unchanged_database;
mod upgrade;
