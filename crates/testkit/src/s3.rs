//! An S3 server in the process, on loopback, with one access key and one bucket.

use std::{fs, net::SocketAddr, path::PathBuf};

use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use s3s::{auth::SimpleAuth, service::S3ServiceBuilder};
use s3s_fs::FileSystem;
use tokio::{
    net::TcpListener,
    task::{AbortHandle, JoinSet},
};

use crate::{scratch::Scratch, unique};

/// A running server; it ends with the value.
#[derive(Debug)]
pub struct S3 {
    address: SocketAddr,
    access_key: String,
    secret_key: String,
    bucket: String,
    task: AbortHandle,
    scratch: Scratch,
}

impl S3 {
    /// The region that every request must be signed for.
    pub const REGION: &str = "us-east-1";

    /// Starts a server with an empty bucket.
    pub async fn start() -> Self {
        let scratch = Scratch::new("stanchion-s3-").unwrap_or_else(|error| panic!("{error}"));
        let bucket = unique::name("bucket-");
        fs::create_dir(scratch.path().join(&bucket)).expect("create the bucket");
        let (access_key, secret_key) = (unique::name("key"), unique::name("secret"));
        let storage = FileSystem::new(scratch.path()).expect("storage in a directory that is there");
        let mut service = S3ServiceBuilder::new(storage);
        service.set_auth(SimpleAuth::from_single(access_key.clone(), secret_key.clone()));
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("bind a free port on loopback");
        let address = listener.local_addr().expect("a bound listener has an address");
        let service = service.build();
        let task = tokio::spawn(async move {
            // Dropped with the task, and the connections with it.
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                let service = service.clone();
                connections.spawn(async move {
                    // A client that goes away is its own business.
                    let _ = auto::Builder::new(TokioExecutor::new())
                        .serve_connection(TokioIo::new(socket), service)
                        .await;
                });
                while connections.try_join_next().is_some() {}
            }
        });
        Self {
            address,
            access_key,
            secret_key,
            bucket,
            task: task.abort_handle(),
            scratch,
        }
    }

    /// Where it listens, for a [`crate::proxy::Proxy`].
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL; buckets are in the path.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The access key's id.
    pub fn access_key(&self) -> &str {
        &self.access_key
    }

    /// The access key's secret.
    pub fn secret_key(&self) -> &str {
        &self.secret_key
    }

    /// The bucket that is there from the start.
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    /// The file that holds an object of the bucket.
    pub fn file(&self, key: &str) -> PathBuf {
        self.scratch.path().join(&self.bucket).join(key)
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        self.task.abort();
    }
}
