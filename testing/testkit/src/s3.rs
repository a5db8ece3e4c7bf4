//! An S3 server in the process, on loopback, with one access key and one bucket.

use std::{net::SocketAddr, path::PathBuf};

use stanchion_local::s3::{AccessKey, REGION, Server};

use crate::{scratch::Scratch, unique};

/// A running server. Dropping the value ends it.
#[derive(Debug)]
pub struct S3 {
    server: Server,
    access_key: String,
    secret_key: String,
    bucket: String,
    scratch: Scratch,
}

impl S3 {
    /// The region that every request must be signed for.
    pub const REGION: &str = REGION;

    /// Starts a server with an empty bucket.
    pub async fn start() -> Self {
        Self::start_with_key(&unique::name("key"), &unique::name("secret")).await
    }

    /// Starts a server with an empty bucket and this access key, such as that of a manifest.
    pub async fn start_with_key(access_key: &str, secret_key: &str) -> Self {
        let scratch = Scratch::new("stanchion-s3-").unwrap_or_else(|error| panic!("{error}"));
        let bucket = unique::name("bucket-");
        let (access_key, secret_key) = (access_key.to_owned(), secret_key.to_owned());
        let key = AccessKey {
            id: &access_key,
            secret: &secret_key,
        };
        let server = Server::start(scratch.path(), &bucket, key)
            .await
            .unwrap_or_else(|error| panic!("{error}"));
        Self {
            server,
            access_key,
            secret_key,
            bucket,
            scratch,
        }
    }

    /// The address, for a [`crate::proxy::Proxy`].
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The URL; buckets are in the path.
    pub fn endpoint(&self) -> String {
        self.server.endpoint()
    }

    /// The access key's id.
    pub fn access_key(&self) -> &str {
        &self.access_key
    }

    /// The access key's secret.
    pub fn secret_key(&self) -> &str {
        &self.secret_key
    }

    /// The bucket that exists from the start.
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    /// Creates another bucket.
    pub fn create_bucket(&self, name: &str) {
        std::fs::create_dir_all(self.scratch.path().join(name))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    /// The file that holds an object of the bucket.
    pub fn file(&self, key: &str) -> PathBuf {
        self.scratch.path().join(&self.bucket).join(key)
    }
}
